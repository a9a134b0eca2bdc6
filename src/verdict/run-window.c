/* SPDX-License-Identifier: Apache-2.0 */
/* Adds up the intervals of a run's window and counts its samples. Pure. */

#include "run-window.h"

#include <math.h>

/* No block device of today writes 200 GB/s (PCIe 6 x16 carries 128); a single interval may be very short and
 * still see many large requests end, hence the bytes on top. */
#define IMPLAUSIBLE_BYTES_PER_S 200e9
#define IMPLAUSIBLE_BYTES_SLACK (double) (UINT64_C(1) << 30)

double window_wkb_s(uint64_t sectors, uint64_t interval_ns)
{
        if (interval_ns == 0)
                return NAN;
        /* Half a kB a sector, 10^9 ns a second. The product is exact up to 2 TB of writes. */
        return (double) sectors * 5e8 / (double) interval_ns;
}

/* What is judged of an interval: iostat's columns, but for the throughput, which is rounded once and counts
 * each of the writers' bytes once. */
static void judged_figures(const Delta *delta, double copies, Metrics *ret)
{
        metrics_forget(ret);
        if (delta->interval_ns > 0)
                metrics_from_delta(delta, ret);
        ret->wkb_s = window_wkb_s(delta->w_sectors, delta->interval_ns) / copies;
}

static void delta_add(Delta *sum, const Delta *delta)
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

/* Walks over the intervals of the window. */
typedef struct Walk {
        const RunFacts *facts;
        size_t previous, current; /* snapshots of the interval at hand */
        bool full;                /* it lies inside the window, from tick to tick */
        Gap gap;
        Delta delta; /* when gap is GAP_NONE */
} Walk;

static bool walk_next(Walk *walk)
{
        const RunFacts *facts = walk->facts;
        const Snapshot *snapshots = facts->snapshots;

        walk->previous = walk->current;
        /* A tick at the very nanosecond of the edge is the same snapshot twice: no interval, and the next one
         * is full. */
        do
                walk->current++;
        while (walk->current < facts->n_snapshots && snapshots[walk->current].gap == GAP_NONE &&
               snapshots[walk->previous].gap == GAP_NONE &&
               snapshots[walk->current].mono_ns == snapshots[walk->previous].mono_ns);
        if (walk->current >= facts->n_snapshots)
                return false;
        walk->full = (walk->previous > 0 || facts->first_is_tick || walk->current > 1) &&
                     (walk->current < facts->n_snapshots - 1 || facts->last_is_tick);
        walk->gap = delta_compute(&snapshots[walk->previous], &snapshots[walk->current], &walk->delta);
        return true;
}

static void add_up(const RunFacts *facts, Window *window)
{
        for (Walk walk = { .facts = facts }; walk_next(&walk);) {
                if (walk.gap != GAP_NONE) {
                        window->dropped++;
                        window->broken[walk.gap] = true;
                        continue;
                }
                double seconds = (double) walk.delta.interval_ns / 1e9;
                double bytes = (double) walk.delta.w_sectors * SECTOR_BYTES;
                if (bytes > seconds * IMPLAUSIBLE_BYTES_PER_S + IMPLAUSIBLE_BYTES_SLACK) {
                        window->implausible = true;
                        window->implausible_mb_s = bytes / 1e6 / seconds;
                }
                window->samples += walk.full;
                delta_add(&window->sum, &walk.delta);
        }
}

static void count_samples(const Limits *limits, const RunFacts *facts, Window *window)
{
        unsigned third = window->samples / 3, index = 0;
        uint64_t sectors[2] = { 0 }, ns[2] = { 0 };

        for (Walk walk = { .facts = facts }; walk_next(&walk);) {
                if (walk.gap != GAP_NONE || !walk.full)
                        continue;
                bool passes = true;
                Metrics figures;

                judged_figures(&walk.delta, window->copies, &figures);
                for (CriterionName name = 0; name < N_CRITERIA; name++) {
                        bool met = criterion_met(limits, name, criterion_value(name, &figures));

                        window->missing[name] += !met;
                        passes &= met;
                }
                window->passing += passes;
                if (!(figures.wkb_s >= window->worst_wkb_s))
                        window->worst_wkb_s = figures.wkb_s;
                if (index < third || index >= window->samples - third) {
                        size_t part = index >= third;
                        sectors[part] += walk.delta.w_sectors;
                        ns[part] += walk.delta.interval_ns;
                }
                index++;
        }
        window->first_third_wkb_s = window_wkb_s(sectors[0], ns[0]) / window->copies;
        window->last_third_wkb_s = window_wkb_s(sectors[1], ns[1]) / window->copies;
}

void window_measure(const Limits *limits, const RunFacts *facts, Window *ret)
{
        Window window = {
                .copies = 1, .first_third_wkb_s = NAN, .last_third_wkb_s = NAN, .worst_wkb_s = NAN
        };

        if (facts->n_snapshots >= 2) {
                add_up(facts, &window);
                double written = (double) facts->bytes_written;
                double seen = (double) window.sum.w_sectors * SECTOR_BYTES;
                if (facts->rows_summed && written > 0 && seen > written)
                        window.copies = seen / written;
                count_samples(limits, facts, &window);
        }
        judged_figures(&window.sum, window.copies, &window.figures);
        *ret = window;
}
