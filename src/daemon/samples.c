/* SPDX-License-Identifier: Apache-2.0 */
/* The samples of one target. Reads its row below /proc and /sys, writes its ring in the state directory. */

#include "samples.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/file.h"
#include "tierprobe/log.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

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
        return r;
}

static void say_ring_state(Samples *samples, int r)
{
        if (r < 0 && !samples->ring_failed)
                log_error("target %s: samples cannot be kept: %s", samples->target, strerror(-r));
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

void samples_done(Samples *samples)
{
        samples->sampler = sampler_free(samples->sampler);
        samples->ring = ring_free(samples->ring);
}

void samples_reopen(Samples *samples, uint64_t capacity)
{
        samples->ring = ring_free(samples->ring);
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

void samples_keep(Samples *samples, const Snapshot *snapshot, const char *run_id)
{
        RingRecord previous = samples->newest, *newest = &samples->newest;
        bool first = previous.seq == 0 || strcmp(previous.device, samples->device) != 0;

        *newest = (RingRecord){ .snapshot = *snapshot };
        memcpy(newest->device, samples->device, sizeof newest->device);
        (void) snprintf(newest->run_id, sizeof newest->run_id, "%s", run_id ? run_id : "");
        /* The time before this start, or on another device, is not an interval of this row. */
        if (first && newest->snapshot.gap == GAP_NONE)
                newest->snapshot.gap = GAP_FIRST;
        samples->gap = delta_compute(first ? NULL : &previous.snapshot, &newest->snapshot, &samples->delta);
        if (samples->gap != GAP_NONE && samples->gap != GAP_FIRST)
                samples->gaps[samples->gap]++;

        int r = samples->ring ? ring_append(samples->ring, newest) : -EBADF;
        if (!samples->ring)
                newest->seq = previous.seq + 1; /* it is a sample all the same */
        say_ring_state(samples, r);
        if (samples->ring)
                (void) ring_work(samples->ring);
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
