/* SPDX-License-Identifier: Apache-2.0 */
/* JSON without a tree: whether a text is JSON, and where the members of the object lie that it is. For
 * documents that are served as they were written, and that may be large. Pure. Private to src/json. */
#pragma once

#include <stddef.h>

#define SCAN_MAX_DEPTH 512

typedef struct JsonSpan {
        const char *text;
        size_t size;
} JsonSpan;

/* Called for each member of the outermost object, in order: NAME with its quotes, both as they are written.
 */
typedef void (*ScanMember)(JsonSpan name, JsonSpan value, void *userdata);

/* Checks that TEXT is one JSON object and nothing beside it, by the grammar of RFC 8259, in UTF-8, nested at
 * most SCAN_MAX_DEPTH deep. 0, or -EINVAL with *RET_AT at the byte where it stops being one; MEMBER was
 * called for those before it. */
int json_scan_object(const char *text, size_t size, ScanMember member, void *userdata, size_t *ret_at);
