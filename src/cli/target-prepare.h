/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a directory ready for the service, as root: a working folder inside that its user owns, a way through
 * for this user, and a write that proves it. Inside the cli room. Touches the directory in a child. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

typedef enum PrepareResult {
        PREPARED,       /* a block was written and synced as the user */
        PREPARE_WAITS,  /* a mount of fstab is missing there: nothing was done */
        PREPARE_FAILED, /* SENTENCE says why */
        PREPARE_HANGS,  /* no answer in time */
} PrepareResult;

typedef struct Preparation {
        PrepareResult result;
        char sentence[1024]; /* what was done, or why not; no control characters but in paths */
} Preparation;

/* Prepares PATH for USER (a name of the password file) within TIMEOUT_NS. */
void target_prepare(const char *path, const char *user, uint64_t timeout_ns, Preparation *ret);
