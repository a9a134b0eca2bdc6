/* SPDX-License-Identifier: Apache-2.0 */
/* The samples of one target. Reads its row below /proc and /sys, writes its ring in the state directory. */

#include "samples.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/file.h"
#include "tierprobe/log.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define LAST_WAIT_MS 1000      /* for the disk, when the ring is closed */
#define OBSERVED_AT_A_TIME 200 /* records read back: a millisecond */

static int open_ring(Samples *samples, uint64_t capacity)
{
        _cleanup_free_ char *name = path_format("%s.ring", samples->target);
        bool damaged = false;

        if (!name)
                return -ENOMEM;
        int r = ring_open(&samples->ring, samples->state_fd, name, capacity, &damaged);
        if (damaged)
                log_warning("target %s: its samples in %s were damaged and are set aside", samples->target,
                            name);
        return r < 0 ? r : ring_write_behind(samples->ring);
}

static void say_ring_state(Samples *samples, int r)
{
        if (r < 0 && !samples->ring_failed)
                log_error("target %s: samples cannot be kept: %s", samples->target,
                          r == -EINPROGRESS ? "the disk of the state directory does not answer"
                                            : strerror(-r));
        if (r >= 0 && samples->ring_failed)
                log_info("target %s: samples are kept again", samples->target);
        samples->ring_failed = r < 0;
}

void samples_init(Samples *samples, const char *target, int state_fd, uint64_t capacity)
{
        *samples = (Samples){ .state_fd = state_fd, .gap = GAP_FIRST };
        (void) snprintf(samples->target, sizeof samples->target, "%s", target);
        say_ring_state(samples, open_ring(samples, capacity));
}

static void close_ring(Samples *samples)
{
        size_t n_lost = samples->ring ? ring_finish(samples->ring, LAST_WAIT_MS) : 0;

        if (n_lost > 0)
                log_error(
                        "target %s: the last %zu samples did not get to the disk of the state directory and "
                        "are lost",
                        samples->target, n_lost);
        samples->ring = ring_free(samples->ring);
}

void samples_done(Samples *samples)
{
        samples->sampler = sampler_free(samples->sampler);
        close_ring(samples);
        samples->observed = observed_free(samples->observed);
}

void samples_reopen(Samples *samples, uint64_t capacity)
{
        close_ring(samples);
        say_ring_state(samples, open_ring(samples, capacity));
}

int samples_follow(Samples *samples, const DeviceRoots *roots, const Device *device)
{
        const char *names[64];

        samples->sampler = sampler_free(samples->sampler);
        if (!device)
                return 0;
        (void) snprintf(samples->device, sizeof samples->device, "%.31s", device->name);
        return sampler_new(&samples->sampler, roots->procfs, roots->sysfs, names,
                           device_row_names(device, names, ELEMENTSOF(names)));
}

bool samples_read(Samples *samples, Snapshot *ret)
{
        if (!samples->sampler)
                return false;
        sampler_read(samples->sampler, ret);
        return true;
}

/* ---- what production shows ---- */

static void observe(Samples *samples, const RingRecord *record, Gap gap, const Delta *delta)
{
        bool is_test = record->run_id[0] != '\0';

        if (!samples->observed)
                return;
        /* The interval after a test's last sample begins within the test. */
        if (gap != GAP_NONE || is_test || samples->observed_after_test)
                observed_break(samples->observed);
        else
                observed_add(samples->observed, &(ObservedSample){ .real_ns = record->snapshot.real_ns,
                                                                   .interval_ns = delta->interval_ns,
                                                                   .writes = delta->w_ios,
                                                                   .write_ms = delta->w_ms,
                                                                   .sectors = delta->w_sectors });
        samples->observed_after_test = is_test;
}

void samples_observe(Samples *samples, double limit_ms)
{
        if (samples->observed && samples->observed_limit_ms >= limit_ms &&
            samples->observed_limit_ms <= limit_ms)
                return;
        samples->observed = observed_free(samples->observed);
        samples->observed_limit_ms = limit_ms;
        if (observed_new(&samples->observed, limit_ms) < 0)
                log_error("target %s: what its disk does between tests is not summed up: out of memory",
                          samples->target);
        samples->observed_after_test = false;
        samples->observed_behind = samples->ring != NULL && samples->observed;
        if (samples->observed_behind)
                samples->observed_seq = ring_find_time(
                        samples->ring,
                        observed_begin_real_ns(OBSERVED_DAY, (int64_t) clock_ns(CLOCK_REALTIME)));
}

bool samples_observe_more(Samples *samples)
{
        for (unsigned i = 0; samples->observed_behind && i < OBSERVED_AT_A_TIME; i++) {
                RingRecord record;
                Delta delta;
                Gap gap = GAP_NONE;

                if (samples->ring && samples->observed_seq < ring_first_seq(samples->ring))
                        samples->observed_seq = ring_first_seq(samples->ring);
                if (!samples->ring || samples->observed_seq >= ring_next_seq(samples->ring))
                        samples->observed_behind = false;
                else if (ring_read_delta(samples->ring, samples->observed_seq++, &record, &delta, &gap) < 0)
                        observed_break(samples->observed);
                else
                        observe(samples, &record, gap, &delta);
        }
        return samples->observed_behind;
}

const Observed *samples_observed(const Samples *samples)
{
        return samples->observed_behind ? NULL : samples->observed;
}

/* ---- samples ---- */

void samples_keep(Samples *samples, const Snapshot *snapshot, const char *run_id)
{
        RingRecord previous = samples->newest, *newest = &samples->newest;
        bool first = previous.seq == 0 || strcmp(previous.device, samples->device) != 0;

        *newest = (RingRecord){ .snapshot = *snapshot };
        memcpy(newest->device, samples->device, sizeof newest->device);
        (void) snprintf(newest->run_id, sizeof newest->run_id, "%s", run_id ? run_id : "");
        /* The interval after a test's last sample begins within the test. */
        samples->has_test = newest->run_id[0] != '\0' || previous.run_id[0] != '\0';
        /* The time before this start, or on another device, is not an interval of this row. */
        if (first && newest->snapshot.gap == GAP_NONE)
                newest->snapshot.gap = GAP_FIRST;
        samples->gap = delta_compute(first ? NULL : &previous.snapshot, &newest->snapshot, &samples->delta);
        if (samples->gap != GAP_NONE && samples->gap != GAP_FIRST)
                samples->gaps[samples->gap]++;

        int r = samples->ring ? ring_append(samples->ring, newest) : -EBADF;
        if (!samples->ring)
                newest->seq = previous.seq + 1; /* it is a sample all the same */
        int saved = samples->ring ? ring_save(samples->ring) : 0;
        say_ring_state(samples, saved < 0 ? saved : r);
        if (samples->ring)
                (void) ring_work(samples->ring);
        if (!samples->observed_behind)
                observe(samples, newest, samples->gap, &samples->delta);
}

void samples_work(Samples *samples)
{
        if (samples->ring)
                say_ring_state(samples, ring_save(samples->ring));
}

double samples_foreign_mb_per_s(const Samples *samples)
{
        return samples->has_test ? NAN : samples_write_mb_per_s(samples);
}

double samples_write_mb_per_s(const Samples *samples)
{
        Metrics metrics;

        if (samples->gap != GAP_NONE)
                return NAN;
        metrics_from_delta(&samples->delta, &metrics);
        return metrics.wkb_s / 1000;
}

int64_t samples_since_real_ns(const Samples *samples)
{
        RingRecord oldest;

        if (!samples->ring || ring_read(samples->ring, ring_first_seq(samples->ring), &oldest) < 0)
                return 0;
        return oldest.snapshot.real_ns;
}
