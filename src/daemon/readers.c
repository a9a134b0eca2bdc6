/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon as its readers see it. Changes nothing. */

#include "readers.h"

#include "tierprobe/clock.h"

#include <math.h>
#include <string.h>

static const PastRun *last_run(const Parts *parts, const Target *target)
{
        return past_last_run(parts->past, target->config->name);
}

bool readers_is_stale(const Parts *parts, const Target *target, int64_t now_real_ns)
{
        const PastRun *last = last_run(parts, target);

        if (!last)
                return false;
        int64_t finished_ns = last->finished_real_ns;
        /* One from the future is of unknown age: the clock was wrong then, or is now. A small step back must
         * not spoil a good verdict, though. */
        uint64_t age_ns = now_real_ns > finished_ns ? (uint64_t) now_real_ns - (uint64_t) finished_ns
                                                    : (uint64_t) finished_ns - (uint64_t) now_real_ns;
        return age_ns > schedule_stale_after_ns(&parts->config->schedule);
}

Verdict readers_verdict(const Parts *parts, const Target *target)
{
        const PastRun *last = last_run(parts, target);

        return last ? last->verdict : VERDICT_NEVER_RUN;
}

void readers_view_target(const Parts *parts, const Target *target, TargetView *ret)
{
        int64_t now_ns = (int64_t) clock_ns(CLOCK_REALTIME);
        const PastRun *last = last_run(parts, target);
        const RunRecord *current = runs_of(parts->runs, target);
        const Samples *samples = &target->samples;
        const RunTally tally = runs_tally(parts->runs, target);
        const LedgerFacts ledger = ledger_file_facts(parts->ledger, target->device, 0, 0);

        *ret = (TargetView){
                .name = target->config->name,
                .path = target->config->path,
                .state = current ? current->state : RUN_FINISHED,
                .looking = target_is_unseen(target),
                .problems = &target->problems,
                .verdict = readers_verdict(parts, target),
                .reasons = last ? NULL : &target->problems,
                .age_s = last ? ((double) now_ns - (double) last->finished_real_ns) / 1e9 : NAN,
                .stale = readers_is_stale(parts, target, now_ns),
                .next_run_real_ns = timetable_next_real_ns(parts->timetable, target),
                .device = target->device,
                .last_run = last,
                .current_run = current,
                .ring = samples->ring,
                .sample = samples->newest.seq ? &samples->newest : NULL,
                .sample_delta = &samples->delta,
                .sample_gap = samples->gap,
                .samples_missed = parts->ticker.missed,
                .test_written_bytes = tally.written_bytes,
                .write_latency = tally.latency,
                .disk_written_day_bytes = ledger.last_day_bytes,
                .disk_written_lifetime_bytes = ledger.lifetime_bytes,
                .free_bytes = target->facts.error == 0 ? target->facts.free_bytes : 0,
        };
        if (ret->age_s < 0)
                ret->age_s = 0; /* the clock was set back */
        memcpy(ret->gaps, samples->gaps, sizeof ret->gaps);
        memcpy(ret->runs_ended, tally.ended, sizeof ret->runs_ended);
}

void readers_view_service(const Parts *parts, ServiceView *ret)
{
        int64_t now_ns = (int64_t) clock_ns(CLOCK_REALTIME);
        const Histogram *lateness = &parts->ticker.lateness;

        *ret = (ServiceView){ .verdict = parts->n_targets ? VERDICT_PASS : VERDICT_NEVER_RUN,
                              .running = runs_count(parts->runs) > 0,
                              .ready = parts->n_targets > 0,
                              .config = parts->config,
                              .tick_lateness_p99_ns = histogram_quantile_ns(lateness, 0.99),
                              .tick_lateness_max_ns = lateness->max_ns,
                              .n_targets = parts->n_targets,
                              .set_aside = parts->n_set_aside + past_set_aside(parts->past) };
        for (size_t i = 0; i < parts->n_targets; i++) {
                const Target *target = parts->targets[i];
                Verdict verdict = readers_verdict(parts, target);

                ret->verdict = verdict_worst(ret->verdict, verdict);
                ret->ready =
                        ret->ready && verdict == VERDICT_PASS && !readers_is_stale(parts, target, now_ns);
        }
}
