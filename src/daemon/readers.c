/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon as its readers see it, and what they may ask of it. Changes nothing but through start.c and
 * runs.c. */

#include "readers.h"

#include "start.h"

#include "tierprobe/clock.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static uint64_t budget_left_bytes(const Parts *parts, const LedgerFacts *ledger)
{
        uint64_t budget_bytes = parts->config->guard.daily_write_budget_bytes;

        if (budget_bytes == 0)
                return UINT64_MAX;
        return budget_bytes > ledger->last_day_bytes ? budget_bytes - ledger->last_day_bytes : 0;
}

static void view_target(const Parts *parts, const Target *target, TargetView *ret)
{
        int64_t now_ns = (int64_t) clock_ns(CLOCK_REALTIME);
        const PastStanding *standing = past_standing(parts->past, target->config->name);
        const PastRun *run = standing ? standing->run : NULL;
        const TargetVerdict *verdict = verdicts_of(parts->verdicts, target);
        const RunRecord *current = runs_of(parts->runs, target);
        const Samples *samples = &target->samples;
        const RunTally tally = runs_tally(parts->runs, target);
        const LedgerFacts ledger = ledger_file_facts(parts->ledger, target->device, 0, 0);
        const Profile *official = config_find_profile(parts->config, target->config->profile);
        NextWhy why;
        int64_t next_run_real_ns = timetable_next_real_ns(parts->timetable, target, &why);

        *ret = (TargetView){
                .name = target->config->name,
                .path = target->config->path,
                .profile = target->config->profile,
                .state = current ? current->state : RUN_FINISHED,
                .looking = target_is_unseen(target),
                .problems = &target->problems,
                .verdict = verdict->verdict,
                .age_s = run ? ((double) now_ns - (double) run->finished_real_ns) / 1e9 : NAN,
                .stale = verdict->stale,
                .degraded = verdict->degraded,
                .warnings = &verdict->warnings,
                .standing_run = run,
                .next_run_real_ns = next_run_real_ns,
                .next_run_why = why,
                .device = target->device,
                .heat = target->heat,
                .last_run = past_last_run(parts->past, target->config->name),
                .current_run = current,
                .ring = samples->ring,
                .observed = samples_observed(samples),
                .sample = samples->newest.seq ? &samples->newest : NULL,
                .sample_delta = &samples->delta,
                .sample_gap = samples->gap,
                .samples_missed = parts->ticker.missed,
                .test_written_bytes = tally.written_bytes,
                .write_latency = tally.latency,
                .disk_written_day_bytes = ledger.last_day_bytes,
                .disk_written_lifetime_bytes = ledger.lifetime_bytes,
                .budget_left_bytes = budget_left_bytes(parts, &ledger),
                .test_bytes = official ? profile_bytes(official) : 0,
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

        *ret = (ServiceView){ .started_real_ns = parts->started_real_ns,
                              .uptime_ns = clock_ns(CLOCK_MONOTONIC) - parts->started_ns,
                              .pid = getpid(),
                              .verdict = parts->n_targets ? VERDICT_PASS : VERDICT_NEVER_RUN,
                              .running = runs_count(parts->runs) > 0,
                              .ready = parts->n_targets > 0,
                              .config = parts->config,
                              .config_error = parts->config_error,
                              .tick_lateness_p99_ns = histogram_quantile_ns(lateness, 0.99),
                              .tick_lateness_max_ns = lateness->max_ns,
                              .n_targets = parts->n_targets,
                              .set_aside = parts->n_set_aside + past_set_aside(parts->past) };
        if (parts->http)
                ret->certificate_expiry_real_ns = http_server_certificate_expiry_real_ns(parts->http);
        for (size_t i = 0; i < parts->n_targets; i++) {
                const TargetVerdict *verdict = verdicts_of(parts->verdicts, parts->targets[i]);

                ret->verdict = verdict_worst(ret->verdict, verdict->verdict);
                ret->ready = ret->ready && verdict_is_ready(verdict);
        }
}

/* ---- what http asks ---- */

static void get(void *userdata, ServiceView *ret)
{
        readers_view_service(userdata, ret);
}

static bool get_target(void *userdata, size_t index, TargetView *ret)
{
        const Parts *parts = userdata;

        if (index >= parts->n_targets)
                return false;
        view_target(parts, parts->targets[index], ret);
        return true;
}

static uint64_t get_generation(void *userdata)
{
        return ((const Parts *) userdata)->generation;
}

static int ask_for_run(void *userdata, const StartOrder *order, StartAnswer *ret)
{
        return start_run(userdata, order, ret);
}

static AbortResult abort_run(void *userdata, const char *id, const char *who)
{
        const Parts *parts = userdata;
        char detail[160];

        (void) snprintf(detail, sizeof detail, "Aborted by %s", who);
        if (runs_abort(parts->runs, id, detail))
                return ABORT_ACCEPTED;
        return past_has(parts->past, id) ? ABORT_ENDED : ABORT_NO_RUN;
}

static const RunRecord *current_run(void *userdata, size_t index)
{
        return runs_at(((const Parts *) userdata)->runs, index);
}

static const RunRecord *find_current(void *userdata, const char *id)
{
        return runs_find(((const Parts *) userdata)->runs, id);
}

static const char *older_run(void *userdata, const char *before)
{
        return past_older(((const Parts *) userdata)->past, before);
}

static int read_run(void *userdata, const char *id, PastRun **ret, char **ret_text, size_t *ret_size)
{
        return past_read(((const Parts *) userdata)->past, id, ret, ret_text, ret_size);
}

Service readers_service(Parts *parts)
{
        return (Service){ .userdata = parts,
                          .get = get,
                          .get_target = get_target,
                          .generation = get_generation,
                          .start_run = ask_for_run,
                          .abort_run = abort_run,
                          .current_run = current_run,
                          .find_current = find_current,
                          .older_run = older_run,
                          .read_run = read_run };
}
