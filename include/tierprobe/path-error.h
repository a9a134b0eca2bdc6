/* SPDX-License-Identifier: Apache-2.0 */
/* What an errno at a tested path means, and what mends it: the one place that puts it into words.
 *
 * Pure. Knows base and the verdict's reasons. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "tierprobe/verdict.h"

typedef struct PathError {
        const char *name; /* "EACCES"; "unknown error" */
        const char *says; /* a clause that can follow "PATH: " and "a write failed: " */
        const char *mend; /* a sentence or two: what to do; a command where there is one */
        ReasonCode code;  /* of a verdict that this keeps from being reached; of a write that fails,
                           * REASON_WRITE_ERROR and REASON_STALLED are the device's fault, others are not */
} PathError;

PathError path_error_find(int error);

/* Who may not do what on the way to a path, as far as owners and modes tell. Filled in a child. */
typedef struct PathDenial {
        char user[40];       /* who may not: "tierprobe", "uid 1234"; empty: not known */
        char directory[256]; /* where it ends; empty: owners and modes would let the user, or not known */
        char owner[40], group[40];
        mode_t mode;
        bool enter; /* may not go through DIRECTORY; false: may not make files in it */
} PathDenial;

#define PATH_ERROR_SIZE 400 /* as much as a reason holds */

/* Writes the whole sentence with its advice for ERROR, met when PATH was looked at or a file was made in it.
 * DENIAL (may be NULL) serves for EACCES and EPERM. */
void path_error_describe(char *ret, size_t size, const char *path, int error, const PathDenial *denial);
