/* SPDX-License-Identifier: Apache-2.0 */
/* The window of a run: fits it to the writers' time, adds up its intervals and counts its samples. Pure. */

#include "run-window.h"

#include "tierprobe/clock.h"

#include <math.h>
#include <string.h>

/* No block device of today writes 200 GB/s (PCIe 6 x16 carries 128); a single interval may be very short and
 * still see many large requests end, hence the bytes on top. */
#define IMPLAUSIBLE_BYTES_PER_S 200e9
#define IMPLAUSIBLE_BYTES_SLACK (double) (UINT64_C(1) << 30)

/* How far a reading may be from the window's edge, as a part of the writers' time: what others wrote
 * meanwhile, and cannot be told apart, is then no more than that. */
#define EDGE_PART 200
#define EDGE_NS (2 * NS_PER_MS) /* in short runs: reading takes its time */

/* ---- the writers' time ---- */

/* Moves a snapshot to another time: nothing of ours happened in between. */
static void move_to(Snapshot *snapshot, uint64_t mono_ns)
{
        uint64_t by_ns = mono_ns - snapshot->mono_ns; /* modulo 2^64 */

        snapshot->mono_ns += by_ns;
        snapshot->boot_ns += by_ns;
        snapshot->real_ns += (int64_t) by_ns;
}

/* Above this part of the writers' bytes, or of the requests that these take, somebody else wrote as well.
 * Some requests more or less are a matter of where the interval begins and ends. */
#define OTHERS_RATIO 0.02
#define OTHERS_REQUESTS 2

typedef struct Written {
        double own_bytes, device_bytes, requests;
} Written;

static bool written_between(const RunWindow *window, size_t from, size_t to, Written *ret)
{
        const Reading *a = &window->readings[from], *b = &window->readings[to];
        Delta delta;

        if (b->written_bytes < a->written_bytes || delta_compute(&a->row, &b->row, &delta) != GAP_NONE)
                return false;
        *ret = (Written){ .own_bytes = (double) (b->written_bytes - a->written_bytes),
                          .device_bytes = (double) delta.w_sectors * SECTOR_BYTES,
                          .requests = (double) delta.w_ios };
        return true;
}

/* Whether the device wrote between two readings at an edge what the writers did and no more, in as many
 * requests as between the samples INSIDE_FROM and INSIDE_TO. */
static bool is_ours_alone(const RunWindow *window, size_t edge, size_t inside_from, size_t inside_to)
{
        Written at_edge, inside;

        if (inside_to <= inside_from || !written_between(window, edge, edge + 1, &at_edge) ||
            !written_between(window, inside_from, inside_to, &inside) || inside.own_bytes <= 0)
                return false;
        double own_bytes = at_edge.own_bytes + (double) window->in_flight_bytes;
        double requests = inside.requests / inside.own_bytes * own_bytes;

        return at_edge.device_bytes <= own_bytes * (1 + OTHERS_RATIO + window->own_bytes_ratio) &&
               at_edge.requests <= requests * (1 + OTHERS_RATIO) + OTHERS_REQUESTS;
}

/* Finds the last reading before the writers began and the first one after they had ended; takes each for one
 * at the edge when it is near enough, else drops it. */
static void fit_edges(RunWindow *window, uint64_t tolerance_ns)
{
        Reading *readings = window->readings;
        size_t first = 0, last = window->n_readings - 1;

        while (first < last && readings[first + 1].row.mono_ns <= window->begin_ns)
                first++;
        while (last > first && readings[last - 1].row.mono_ns >= window->end_ns)
                last--;

        uint64_t first_ns = readings[first].row.mono_ns, last_ns = readings[last].row.mono_ns;
        bool early = first_ns<window->begin_ns, late = last_ns> window->end_ns;

        bool begins = window->begin_ns - first_ns <= tolerance_ns ||
                      (early && last > first && is_ours_alone(window, first, first + 1, last - 1));
        bool ends = last_ns - window->end_ns <= tolerance_ns ||
                    (late && last > first && is_ours_alone(window, last - 1, first + 1, last - 1));
        if (early && begins)
                move_to(&readings[first].row, window->begin_ns);
        else if (early && first < last)
                first++;
        if (late && ends)
                move_to(&readings[last].row, window->end_ns);
        else if (late && last > first) {
                last--;
                window->last_is_tick = true;
        }
        window->n_readings = last - first + 1;
        memmove(readings, readings + first, window->n_readings * sizeof *readings);
}

/* The last reading is not always the samples' reader's own: one who does not wait for it reads beside it, and
 * samples may come after. */
static void drop_later_samples(RunWindow *window)
{
        Reading *readings = window->readings, last = readings[window->n_readings - 1];
        size_t n = 1;

        for (size_t i = 1; i + 1 < window->n_readings; i++)
                if (readings[i].row.mono_ns < last.row.mono_ns)
                        readings[n++] = readings[i];
        readings[n++] = last;
        window->n_readings = n;
}

void window_settle(RunWindow *window)
{
        Reading *readings = window->readings;

        window->first_is_tick = true;
        window->last_is_tick = false;
        window->unseen_ns = 0;
        if (window->n_readings < 2)
                return;
        drop_later_samples(window);
        if (window->begin_ns == 0 || window->end_ns <= window->begin_ns)
                return;

        uint64_t time_ns = window->end_ns - window->begin_ns, tolerance_ns = time_ns / EDGE_PART;
        if (tolerance_ns < EDGE_NS)
                tolerance_ns = EDGE_NS;
        if (window->interval_ns > 0 && tolerance_ns > window->interval_ns)
                tolerance_ns = window->interval_ns;
        fit_edges(window, tolerance_ns);

        uint64_t from_ns = readings[0].row.mono_ns, to_ns = readings[window->n_readings - 1].row.mono_ns;
        uint64_t seen_ns = to_ns > from_ns ? to_ns - from_ns : 0;
        window->unseen_ns = time_ns > seen_ns ? time_ns - seen_ns : 0;
}

/* ---- the intervals ---- */

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

static bool is_blind(uint64_t interval_ns, uint64_t length_ns)
{
        return interval_ns > 0 && length_ns > interval_ns + interval_ns / 2;
}

bool window_has_sample(size_t n_readings, size_t end, bool first_is_tick, bool last_is_tick,
                       uint64_t interval_ns, uint64_t length_ns)
{
        return (end > 1 || first_is_tick) && (end < n_readings - 1 || last_is_tick) &&
               !is_blind(interval_ns, length_ns);
}

/* Walks over the intervals of the window. */
typedef struct Walk {
        const RunFacts *facts;
        size_t previous, current; /* snapshots of the interval at hand */
        bool is_sample;           /* window_has_sample() */
        bool blind;               /* it is too long to be one */
        Gap gap;
        Delta delta; /* when gap is GAP_NONE */
} Walk;

static bool walk_next(Walk *walk)
{
        const RunFacts *facts = walk->facts;
        const Reading *readings = facts->readings;

        walk->previous = walk->current;
        /* A tick at the very nanosecond of the edge is the same snapshot twice: no interval, and the next one
         * is full. */
        do
                walk->current++;
        while (walk->current < facts->n_readings && readings[walk->current].row.gap == GAP_NONE &&
               readings[walk->previous].row.gap == GAP_NONE &&
               readings[walk->current].row.mono_ns == readings[walk->previous].row.mono_ns);
        if (walk->current >= facts->n_readings)
                return false;
        walk->gap = delta_compute(&readings[walk->previous].row, &readings[walk->current].row, &walk->delta);
        uint64_t length_ns = walk->gap == GAP_NONE ? walk->delta.interval_ns : 0;
        walk->blind = is_blind(facts->interval_ns, length_ns);
        walk->is_sample = window_has_sample(facts->n_readings, walk->current, facts->first_is_tick,
                                            facts->last_is_tick, facts->interval_ns, length_ns);
        return true;
}

static uint64_t not_busy_ns(const Delta *delta)
{
        uint64_t busy_ns = delta->io_ms * NS_PER_MS;

        return busy_ns < delta->interval_ns ? delta->interval_ns - busy_ns : 0;
}

/* Whether nothing was on its way to the device from one reading to the other: no write was completed, and
 * none was under way at either end. A device that hangs has one. */
static bool is_idle(const Walk *walk)
{
        const Reading *readings = walk->facts->readings;

        return walk->delta.w_ios == 0 && !walk->delta.in_flight_suspect &&
               readings[walk->previous].row.counters.in_flight == 0 && walk->delta.in_flight == 0;
}

/* The writers wait for each of their blocks: when the device has nothing to do for a whole interval, they, or
 * what is between them and it, are held up. That begins and ends in the intervals beside. In one that is too
 * long to be a sample whoever reads the counters was held up as well; there the time without a request is all
 * that is known. */
static uint64_t find_idle_ns(const RunFacts *facts, uint64_t busy_ms)
{
        uint64_t idle_ns = 0, before_ns = 0;
        bool was_idle = false;

        for (Walk walk = { .facts = facts }; busy_ms > 0 && walk_next(&walk);) {
                if (walk.gap != GAP_NONE) {
                        was_idle = false;
                        before_ns = 0;
                        continue;
                }
                bool idle = is_idle(&walk), counted = idle || was_idle || walk.blind;
                if (idle && !was_idle)
                        idle_ns += before_ns;
                if (counted)
                        idle_ns += not_busy_ns(&walk.delta);
                before_ns = counted ? 0 : not_busy_ns(&walk.delta);
                was_idle = idle;
        }
        return idle_ns;
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
                        window->implausible_mb_s = bytes / 1024e3 / seconds;
                }
                if (walk.blind)
                        window->blind_ns += walk.delta.interval_ns;
                window->samples += walk.is_sample;
                delta_add(&window->sum, &walk.delta);
        }
        window->idle_ns = find_idle_ns(facts, window->sum.io_ms);
}

static void count_samples(const Limits *limits, const RunFacts *facts, Window *window)
{
        unsigned third = window->samples / 3, index = 0;
        uint64_t sectors[2] = { 0 }, ns[2] = { 0 };

        for (Walk walk = { .facts = facts }; walk_next(&walk);) {
                if (walk.gap != GAP_NONE || !walk.is_sample)
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
                if (!passes)
                        window->missing_ns += walk.delta.interval_ns;
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

        if (facts->n_readings >= 2) {
                add_up(facts, &window);
                uint64_t before = facts->readings[0].written_bytes;
                uint64_t after = facts->readings[facts->n_readings - 1].written_bytes;
                window.written_bytes = after > before ? after - before : 0;
                double written = (double) window.written_bytes;
                double seen = (double) window.sum.w_sectors * SECTOR_BYTES;
                if (facts->rows_summed && written > 0 && seen > written)
                        window.copies = seen / written;
                count_samples(limits, facts, &window);
        }
        judged_figures(&window.sum, window.copies, &window.figures);
        *ret = window;
}
