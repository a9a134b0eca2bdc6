/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded series of snapshots that covers any length of time: when it is full, every second one goes and
 * the spacing doubles. Counters are cumulative, so dropping a snapshot merges two intervals without loss.
 * Knows iostat's types. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tierprobe/iostat.h"

typedef struct Series {
        Snapshot *items; /* owned */
        size_t n, capacity;
        uint64_t stride;  /* every stride-th snapshot offered is kept */
        uint64_t offered; /* so far */
        Gap pending_gap;  /* of snapshots that were not kept: told by the next one that is */
} Series;

/* CAPACITY is even, so that what is kept stays evenly spaced, and at least 4. 0 or -ENOMEM. */
int series_init(Series *series, size_t capacity);
void series_done(Series *series);

/* Offers a snapshot, which is kept when its number is a multiple of the stride. A gap is never lost: the next
 * snapshot kept has it. */
void series_add(Series *series, const Snapshot *snapshot);

/* Offers a snapshot of a caller who keeps the stride itself, i.e. who comes only every stride-th time: it is
 * always kept. */
void series_add_spaced(Series *series, const Snapshot *snapshot);

/* Halves until fewer than 2 x WANTED (>= 1) intervals are left: the longest equal ones of which there are
 * enough. */
void series_thin(Series *series, size_t wanted);
