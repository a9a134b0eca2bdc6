/* SPDX-License-Identifier: Apache-2.0 */
/* The samples of one target: read from its device's row, kept in its ring. Knows iostat, device and history.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tierprobe/device.h"
#include "tierprobe/history.h"
#include "tierprobe/iostat.h"
#include "tierprobe/observed.h"
#include "tierprobe/profile.h"

/* To be read by anyone, changed by samples.c alone. */
typedef struct Samples {
        char target[NAME_SIZE];
        int state_fd; /* borrowed: where the ring lies */
        Ring *ring;   /* NULL: samples cannot be kept */
        bool ring_failed;
        Sampler *sampler; /* NULL: there is no row to read */
        char device[sizeof((RingRecord){ 0 }.device)];
        RingRecord newest; /* seq 0: none yet */
        Delta delta;       /* of the interval that ends at it; holds when gap is GAP_NONE */
        Gap gap;
        bool has_test;           /* the newest interval has some of a test in it */
        uint64_t gaps[_GAP_MAX]; /* intervals dropped since the start, by reason */
        Observed *observed;      /* what production shows; NULL: no memory for it */
        double observed_limit_ms;
        uint64_t observed_seq;    /* the record of the ring that comes next, while it is behind */
        bool observed_behind;     /* records of the ring are still to be gone through */
        bool observed_after_test; /* the newest sample gone through was one of a test */
} Samples;

/* Opens the ring TARGET.ring below STATE_FD for CAPACITY records; without one the disk is sampled all the
 * same. */
void samples_init(Samples *samples, const char *target, int state_fd, uint64_t capacity);
void samples_done(Samples *samples);

/* Opens the ring anew: its capacity has changed, or it could not be opened before. */
void samples_reopen(Samples *samples, uint64_t capacity);

/* Reads DEVICE's row from now on; NULL: none. 0 or negative errno, then none. */
int samples_follow(Samples *samples, const DeviceRoots *roots, const Device *device);

/* Takes a snapshot; false when there is no row. */
bool samples_read(Samples *samples, Snapshot *ret);

/* Keeps it as the newest sample, one in which the run RUN_ID wrote to the disk (NULL: none). */
void samples_keep(Samples *samples, const Snapshot *snapshot, const char *run_id);

/* Begins anew to see what production shows against LIMIT_MS of w_await, from the last day's samples on,
 * unless that is the limit already. */
void samples_observe(Samples *samples, double limit_ms);

/* Goes through some more of the last day's samples: a millisecond of the event loop. True while there are
 * more. */
bool samples_observe_more(Samples *samples);

/* What production shows; NULL while that is not known yet. Borrowed. */
const Observed *samples_observed(const Samples *samples);

/* What is to be done at a tick without a sample, as when its device has gone: what waits for the disk is
 * written, and the child that does it has its end seen. */
void samples_work(Samples *samples);

/* What others have written in the last sample, in wkB/s / 1000; NAN: not known, or a test was in it. */
double samples_foreign_mb_per_s(const Samples *samples);

/* What is written to the device, in wkB/s / 1000, as of the newest sample; NAN: not known. */
double samples_write_mb_per_s(const Samples *samples);

/* When the oldest sample that is kept was taken; 0: there is none. */
int64_t samples_since_real_ns(const Samples *samples);
