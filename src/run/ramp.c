/* SPDX-License-Identifier: Apache-2.0 */
/* A ramp: 1, 2, 4, ... writers until w_await reaches the limit. One writer with direct and synchronous writes
 * never has more than its one block in flight (Little's law), so only several show the device's headroom.
 * Touches the run's own memory only. */

#include "run-internal.h"

#include "tierprobe/clock.h"

#include <stdlib.h>
#include <string.h>

unsigned ramp_first_streams(const Profile *profile)
{
        return profile->ramp ? 1 : profile->streams;
}

/* Every step of a ramp writes as much in all as one stream would, so that the space a step needs does not
 * grow. */
uint64_t ramp_count(const Profile *profile, unsigned streams)
{
        if (!profile->ramp)
                return profile->count;
        return profile->count / streams > 0 ? profile->count / streams : 1;
}

/* Takes over what a step has put into the record, so that the next one finds it empty. */
static void move_result(RunRecord *to, RunRecord *from)
{
        free(to->samples);
        to->samples = from->samples;
        to->n_samples = from->n_samples;
        to->first_is_tick = from->first_is_tick;
        to->last_is_tick = from->last_is_tick;
        to->interval_ns = from->interval_ns;
        to->judgement = from->judgement;
        to->latency = from->latency;
        to->has_latency = from->has_latency;
        to->n_slowest = from->n_slowest;
        memcpy(to->slowest, from->slowest, sizeof to->slowest);
        from->samples = NULL;
        run_record_forget_result(from);
}

/* The highest throughput that still meets the latency; while none does, the first step. */
static bool is_better(const RunRecord *best, const Judgement *judgement)
{
        const Criterion *before = best->judgement.criteria, *now = judgement->criteria;

        if (!now[CRITERION_WRITE_LATENCY].pass)
                return false;
        return !before[CRITERION_WRITE_LATENCY].pass ||
               now[CRITERION_WRITE_THROUGHPUT].value > before[CRITERION_WRITE_THROUGHPUT].value;
}

static void keep_if_best(Run *run)
{
        bool first = !run->best;

        if (first && run_record_new(&run->best) < 0)
                return;
        if (first || is_better(run->best, &run->record->judgement))
                move_result(run->best, run->record);
        else
                run_record_forget_result(run->record);
}

bool ramp_take_step(Run *run)
{
        RunRecord *record = run->record;
        uint64_t limit_ns = run->guard.max_duration_ns;

        run_judge(run);
        if (run->longest_stall_ns > run->worst_stall_ns)
                run->worst_stall_ns = run->longest_stall_ns;
        bool meets = record->judgement.criteria[CRITERION_WRITE_LATENCY].pass;
        RampStep *step = &record->steps[record->n_steps++];

        *step = (RampStep){ .streams = run->streams,
                            .meets_latency = meets,
                            .measured = record->judgement.measured,
                            .app_write_mb_per_s = record->judgement.app_write_mb_per_s,
                            .latency = record->latency };
        run->bytes_before = record->bytes_written;
        run->elapsed_before_ns = record->elapsed_ns;
        keep_if_best(run);
        if (!meets || run->streams * 2 > run->profile.streams || record->n_steps == RAMP_MAX_STEPS)
                return false;
        if (limit_ns > 0 && record->elapsed_ns >= limit_ns) {
                run->end = TEST_TIME_LIMIT;
                return false;
        }
        run->streams *= 2;
        return true;
}

void ramp_end(Run *run)
{
        RunRecord *record = run->record;

        if (!run->best || (run->end != TEST_COMPLETE && run->end != TEST_TIME_LIMIT))
                return;
        move_result(record, run->best);
        /* What happened in any step is worth knowing. */
        if (run->worst_stall_ns > STALL_LIMIT_NS)
                reasons_add(&record->judgement.reasons, REASON_STALLED,
                            "A write was outstanding for %.1f s in one of the %zu steps, longer than %.1f s. "
                            "Look for timeouts and resets in the kernel log.",
                            (double) run->worst_stall_ns / 1e9, record->n_steps,
                            (double) STALL_LIMIT_NS / 1e9);
        if (run->end == TEST_TIME_LIMIT)
                reasons_add(&record->judgement.reasons, REASON_TRUNCATED,
                            "The time limit of %.0f s ended the ramp at %u streams. Raise max_duration to "
                            "see more.",
                            (double) run->guard.max_duration_ns / 1e9, run->streams);
        run->judged = true;
}

void ramp_end_early(Run *run)
{
        unsigned streams = run->streams;
        bool more = run->end == TEST_COMPLETE && ramp_take_step(run);

        ramp_end(run);
        if (more && run->judged)
                reasons_add(
                        &run->record->judgement.reasons, REASON_TRUNCATED,
                        "The files of the step of %u streams were not freed in time, which ended the ramp. "
                        "See what keeps the file system busy, and run again.",
                        streams);
}
