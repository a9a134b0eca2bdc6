/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded series of readings that covers any length of time: when it is full, every second one goes and
 * the spacing doubles. Counters are cumulative, so dropping a reading merges two intervals without loss.
 * Knows the judge's types. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tierprobe/verdict.h"

typedef struct Series {
        Reading *items; /* owned */
        size_t n, capacity;
        uint64_t stride;  /* every stride-th reading offered is kept */
        uint64_t offered; /* so far */
        Gap pending_gap;  /* of readings that were not kept: told by the next one that is */
} Series;

/* CAPACITY is even, so that what is kept stays evenly spaced, and at least 4. 0 or -ENOMEM. */
int series_init(Series *series, size_t capacity);
void series_done(Series *series);

/* The same in memory of the caller's: ITEMS of that CAPACITY. No series_done(). */
void series_place(Series *series, Reading *items, size_t capacity);

/* Offers a reading, which is kept when its number is a multiple of the stride. A gap is never lost: the next
 * reading kept has it. */
void series_add(Series *series, const Reading *reading);

/* Adds a reading that is always kept: the caller itself offers only every stride-th one. */
void series_add_spaced(Series *series, const Reading *reading);

/* Halves until fewer than 2 x WANTED (>= 1) intervals are left: the longest equal ones of which there are
 * enough. */
void series_thin(Series *series, size_t wanted);
