/* SPDX-License-Identifier: Apache-2.0 */
/* Deltas: the difference of two snapshots, or the reason why there is none. Pure. */

#include "tierprobe/iostat.h"

#include "tierprobe/clock.h"

#define SUSPEND_TOLERANCE_NS (1 * NS_PER_MS)
#define WRAP_MIN_OLD (UINT32_C(1) << 31)
#define WRAP_SLACK_MS 1000

const char *gap_to_string(Gap gap)
{
        switch (gap) {
        case GAP_NONE:
                return "none";
        case GAP_FIRST:
                return "first";
        case GAP_ABSENT:
                return "absent";
        case GAP_RETURNED:
                return "returned";
        case GAP_REPLACED:
                return "replaced";
        case GAP_RESET:
                return "reset";
        case GAP_SUSPENDED:
                return "suspended";
        case GAP_CLOCK:
                return "clock";
        case GAP_UNREADABLE:
                return "unreadable";
        case _GAP_MAX:
                break;
        }
        return NULL;
}

static uint64_t saturating_add(uint64_t a, uint64_t b)
{
        uint64_t sum = 0;

        return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t saturating_mul(uint64_t a, uint64_t b)
{
        uint64_t product = 0;

        return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* 64-bit counters never wrap in practice (at 10 GB/s sectors last 29000 years): back is back. */
static bool step(uint64_t old, uint64_t now, uint64_t *ret)
{
        if (now < old)
                return false;
        *ret = now - old;
        return true;
}

/* The most a millisecond field can have grown: of every request of the interval (those that completed and
 * those still in flight) the whole interval. Long requests are charged when they complete, which may be
 * more; then a wrap is taken for a reset, and one interval is lost rather than believed. */
static uint64_t plausible_ms(const Snapshot *previous, const Snapshot *current, uint64_t interval_ns,
                             uint64_t completions)
{
        int32_t in_flight = previous->counters.in_flight > current->counters.in_flight
                                    ? previous->counters.in_flight
                                    : current->counters.in_flight;
        uint64_t interval_ms = interval_ns / NS_PER_MS + 1;
        uint64_t requests = saturating_add(completions, in_flight > 0 ? (uint64_t) in_flight : 0);

        return saturating_add(saturating_mul(interval_ms, requests), WRAP_SLACK_MS);
}

/* A step back of 1 ms is an artefact of reading without a lock, not a wrap: read as one it would make
 * 4294967295 ms of it, as iostat does. */
static bool step_ms(uint32_t old, uint32_t now, uint64_t plausible, uint64_t *ret)
{
        uint32_t difference = now - old; /* modulo 2^32 */

        if (now < old && (old < WRAP_MIN_OLD || difference > plausible))
                return false;
        *ret = difference;
        return true;
}

static Gap check_series(const Snapshot *previous, const Snapshot *current)
{
        if (!previous)
                return current->gap != GAP_NONE ? current->gap : GAP_FIRST;
        if (current->gap != GAP_NONE)
                return current->gap;
        /* Other gaps of the previous read lie before it: its counters are good to start from. */
        if (previous->gap == GAP_ABSENT)
                return GAP_RETURNED;
        if (previous->gap == GAP_UNREADABLE)
                return GAP_UNREADABLE;
        if (current->major != previous->major || current->minor != previous->minor ||
            current->diskseq != previous->diskseq)
                return GAP_REPLACED;
        return GAP_NONE;
}

static Gap check_clocks(const Snapshot *previous, const Snapshot *current)
{
        if (current->mono_ns <= previous->mono_ns || current->boot_ns <= previous->boot_ns)
                return GAP_CLOCK;
        uint64_t mono_ns = current->mono_ns - previous->mono_ns;
        uint64_t boot_ns = current->boot_ns - previous->boot_ns;
        if (boot_ns > mono_ns && boot_ns - mono_ns > SUSPEND_TOLERANCE_NS)
                return GAP_SUSPENDED;
        if (mono_ns > boot_ns && mono_ns - boot_ns > SUSPEND_TOLERANCE_NS)
                return GAP_CLOCK; /* no machine does that: two records of different boots */
        return GAP_NONE;
}

Gap delta_compute(const Snapshot *previous, const Snapshot *current, Delta *ret)
{
        Gap gap = check_series(previous, current);
        if (gap != GAP_NONE)
                return gap;
        gap = check_clocks(previous, current);
        if (gap != GAP_NONE)
                return gap;

        const Counters *p = &previous->counters, *c = &current->counters;
        Delta d = {
                .interval_ns = current->mono_ns - previous->mono_ns,
                .in_flight = c->in_flight,
                .has_discards = c->n_fields >= 15,
                .has_flushes = c->n_fields >= 17,
                .in_flight_suspect = p->in_flight < 0 || c->in_flight < 0,
        };

        /* A row of another shape comes from another kernel or another /proc. */
        if (p->n_fields != c->n_fields)
                return GAP_RESET;
        if (!step(p->r_ios, c->r_ios, &d.r_ios) || !step(p->r_merges, c->r_merges, &d.r_merges) ||
            !step(p->r_sectors, c->r_sectors, &d.r_sectors) || !step(p->w_ios, c->w_ios, &d.w_ios) ||
            !step(p->w_merges, c->w_merges, &d.w_merges) || !step(p->w_sectors, c->w_sectors, &d.w_sectors) ||
            !step(p->d_ios, c->d_ios, &d.d_ios) || !step(p->d_merges, c->d_merges, &d.d_merges) ||
            !step(p->d_sectors, c->d_sectors, &d.d_sectors) || !step(p->f_ios, c->f_ios, &d.f_ios))
                return GAP_RESET;

        uint64_t all = saturating_add(saturating_add(d.r_ios, d.w_ios), saturating_add(d.d_ios, d.f_ios));
        uint64_t interval_ns = d.interval_ns;
        uint64_t all_ms = plausible_ms(previous, current, interval_ns, all);
        if (!step_ms(p->r_ms, c->r_ms, plausible_ms(previous, current, interval_ns, d.r_ios), &d.r_ms) ||
            !step_ms(p->w_ms, c->w_ms, plausible_ms(previous, current, interval_ns, d.w_ios), &d.w_ms) ||
            !step_ms(p->d_ms, c->d_ms, plausible_ms(previous, current, interval_ns, d.d_ios), &d.d_ms) ||
            !step_ms(p->f_ms, c->f_ms, plausible_ms(previous, current, interval_ns, d.f_ios), &d.f_ms) ||
            !step_ms(p->io_ms, c->io_ms, all_ms, &d.io_ms) ||
            !step_ms(p->queue_ms, c->queue_ms, all_ms, &d.queue_ms))
                return GAP_RESET;

        *ret = d;
        return GAP_NONE;
}

void delta_add(Delta *sum, const Delta *delta)
{
        bool first = sum->interval_ns == 0;

        sum->interval_ns += delta->interval_ns;
        sum->r_ios += delta->r_ios;
        sum->r_merges += delta->r_merges;
        sum->r_sectors += delta->r_sectors;
        sum->r_ms += delta->r_ms;
        sum->w_ios += delta->w_ios;
        sum->w_merges += delta->w_merges;
        sum->w_sectors += delta->w_sectors;
        sum->w_ms += delta->w_ms;
        sum->d_ios += delta->d_ios;
        sum->d_merges += delta->d_merges;
        sum->d_sectors += delta->d_sectors;
        sum->d_ms += delta->d_ms;
        sum->f_ios += delta->f_ios;
        sum->f_ms += delta->f_ms;
        sum->io_ms += delta->io_ms;
        sum->queue_ms += delta->queue_ms;
        sum->in_flight = delta->in_flight;
        sum->has_discards = delta->has_discards && (first || sum->has_discards);
        sum->has_flushes = delta->has_flushes && (first || sum->has_flushes);
        sum->in_flight_suspect |= delta->in_flight_suspect;
}
