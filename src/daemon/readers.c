/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon as its readers see it. Changes nothing. */

#include "readers.h"

#include "tierprobe/clock.h"

#include <math.h>
#include <string.h>

void readers_view_target(const Parts *parts, const Target *target, TargetView *ret)
{
        int64_t now_ns = (int64_t) clock_ns(CLOCK_REALTIME);
        const PastStanding *standing = past_standing(parts->past, target->config->name);
        const PastRun *run = standing ? standing->run : NULL;
        const TargetVerdict *verdict = verdicts_of(parts->verdicts, target);
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
                .verdict = verdict->verdict,
                .age_s = run ? ((double) now_ns - (double) run->finished_real_ns) / 1e9 : NAN,
                .stale = verdict->stale,
                .degraded = verdict->degraded,
                .warnings = &verdict->warnings,
                .standing_run = run,
                .next_run_real_ns = timetable_next_real_ns(parts->timetable, target),
                .device = target->device,
                .last_run = past_last_run(parts->past, target->config->name),
                .current_run = current,
                .ring = samples->ring,
                .sample = samples->newest.seq ? &samples->newest : NULL,
                .sample_delta = &samples->delta,
                .sample_gap = samples->gap,
                .samples_missed = parts->ticker.missed,
                .test_written_bytes = tally.written_bytes,
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
                const TargetVerdict *verdict = verdicts_of(parts->verdicts, parts->targets[i]);

                ret->verdict = verdict_worst(ret->verdict, verdict->verdict);
                ret->ready = ret->ready && verdict_is_ready(verdict);
        }
}
