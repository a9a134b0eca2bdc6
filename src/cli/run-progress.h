/* SPDX-License-Identifier: Apache-2.0 */
/* Progress of a run on stderr, private to this room. */
#pragma once

#include <stdbool.h>

#include "spare-output.h"

#include "tierprobe/iostat.h"
#include "tierprobe/record.h"

typedef struct Progress {
        SpareOutput output; /* the run does not wait for who reads this */
        bool terminal, bar_shown;
        unsigned rows;
} Progress;

void progress_begin(Progress *progress);

/* A line of its own: what the run will write and take, or what it has found. */
void progress_say(Progress *progress, const char *text);

/* A second's row of the device, on a terminal only. */
void progress_row(Progress *progress, const char *device, const Metrics *metrics, double elapsed_s);

/* How far it is; BYTES_PER_S is the writers' rate in the last second. */
void progress_bar(Progress *progress, const RunRecord *record, double bytes_per_s);

/* Leaves the terminal's line clean. */
void progress_end(Progress *progress);
