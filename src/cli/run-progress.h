/* SPDX-License-Identifier: Apache-2.0 */
/* Progress of a run on stderr, private to this room. */
#pragma once

#include <stdbool.h>

#include "tierprobe/iostat.h"
#include "tierprobe/record.h"

typedef struct Progress {
        bool terminal, quiet, bar_shown;
        unsigned rows;
} Progress;

void progress_begin(Progress *progress, bool quiet);

/* A second's row of the device, on a terminal only. */
void progress_row(Progress *progress, const char *device, const Metrics *metrics, double elapsed_s);

/* How far it is; LAST_MB_PER_S is the writers' rate in the last second (10^6 bytes/s). */
void progress_bar(Progress *progress, const RunRecord *record, double last_mb_per_s);

/* Leaves the terminal's line clean. */
void progress_end(Progress *progress);
