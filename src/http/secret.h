/* SPDX-License-Identifier: Apache-2.0 */
/* Files with secrets: read only when nobody else can read or change them. Private to src/http. */
#pragma once

#include <stddef.h>

#define SECRET_MAX_BYTES ((size_t) 1 << 20)

/* Reads the whole of PATH, NUL-terminated. It must be a regular file of root's or of our own user, without
 * rights for others, and the group must not write. 0 or negative errno with a sentence in RET_ERROR (NULL
 * when out of memory), owned by the caller. */
int secret_read(const char *path, char **ret, size_t *ret_size, char **ret_error);

/* Frees TEXT of SIZE bytes (NULL: nothing) and leaves no copy of it in memory. */
void secret_free(char *text, size_t size);
