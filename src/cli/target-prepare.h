/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a directory ready for the service, as root: a working folder inside that its user owns, a way through
 * for this user, and a write that proves it. Inside the cli room. Touches the directory in a child. */
#pragma once

#include <stddef.h>
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

/* Prepares the N PATHS for USER (a name of the password file), each in a child, all at the same time: one
 * that hangs keeps no other waiting. RET[i] says what came of PATHS[i], within TIMEOUT_NS for all of them
 * together. */
void target_prepare(const char *const *paths, size_t n, const char *user, uint64_t timeout_ns,
                    Preparation *ret);
