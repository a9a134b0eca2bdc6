/* A ramp: 1, 2, 4, ... writers until w_await reaches the limit. One writer with direct and synchronous writes
 * never has more than its one block in flight (Little's law), so only several show the device's headroom.
 * Touches the run's own memory only. */

#include "private.h"

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
        to->judgement = from->judgement;
        to->latency = from->latency;
        to->has_latency = from->has_latency;
        to->n_slowest = from->n_slowest;
        memcpy(to->slowest, from->slowest, sizeof to->slowest);
        from->samples = NULL;
        from->n_samples = 0;
        from->n_slowest = 0;
        from->has_latency = false;
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
}

bool ramp_take_step(Run *run)
{
        RunRecord *record = run->record;
        uint64_t limit_ns = run->guard.max_duration_ns;

        run_judge(run);
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

void ramp_finish(Run *run)
{
        RunRecord *record = run->record;

        if (!run->best)
                return;
        move_result(record, run->best);
        if (run->end == TEST_TIME_LIMIT)
                reasons_add(&record->judgement.reasons, REASON_TRUNCATED,
                            "The time limit of %.0f s ended the ramp at %u streams. Raise max_duration to "
                            "see more.",
                            (double) run->guard.max_duration_ns / 1e9, run->streams);
        run->judged = true;
}
