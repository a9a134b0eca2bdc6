/* SPDX-License-Identifier: Apache-2.0 */
/* A run as the API's RUN, and with its evidence. What run_record_from_json() must be able to read back. */

#include "json-internal.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* First what the verdict rests on, then the rest of the columns in iostat's order. */
static json_t *measured(const Judgement *judgement)
{
        static const char *const first[] = { "wkB/s", "w_await", "w/s", "aqu-sz", "util" };
        json_auto_t *all = json_metrics(&judgement->measured);
        json_auto_t *object = json_object();

        if (!all || !object)
                return NULL;
        for (size_t i = 0; i < ELEMENTSOF(first); i++)
                if (!json_put(object, first[i], json_incref(json_object_get(all, first[i]))))
                        return NULL;
        if (!json_put(object, "app_write_mb_per_s", json_figure(judgement->app_write_mb_per_s)) ||
            json_object_update_missing(object, all) < 0 ||
            !json_put(object, "first_third_mb_per_s", json_figure(judgement->first_third_mb_per_s)) ||
            !json_put(object, "last_third_mb_per_s", json_figure(judgement->last_third_mb_per_s)) ||
            !json_put(object, "worst_sample_mb_per_s", json_figure(judgement->worst_sample_mb_per_s)))
                return NULL;
        return TAKE_PTR(object);
}

static json_t *latency(const LatencySummary *l)
{
        return OBJECT({ "mean", json_figure(l->mean) }, { "p50", json_figure(l->p50) },
                      { "p90", json_figure(l->p90) }, { "p99", json_figure(l->p99) },
                      { "p99_9", json_figure(l->p99_9) }, { "max", json_figure(l->max) });
}

static json_t *test(const RunRecord *run)
{
        const Parameter *parameter = NULL;
        json_auto_t *object = json_object();

        if (!object)
                return NULL;
        for (size_t i = 0; (parameter = profile_parameter(i)); i++)
                if (!json_put_parameter(object, parameter, &run->profile))
                        return NULL;
        if (!json_put(object, "max_duration_s",
                      run->max_duration_ns ? json_seconds_from_ns(run->max_duration_ns) : json_null()))
                return NULL;
        return TAKE_PTR(object);
}

/* Null for a run that began alone. */
static json_t *together(const RunRecord *run)
{
        json_auto_t *array = json_array();

        if (run->n_companions == 0)
                return json_null();
        for (size_t i = 0; i < run->n_companions; i++)
                if (json_array_append_new(array, OBJECT({ "target", json_text(run->companions[i].target) },
                                                        { "run_id", json_text(run->companions[i].run_id) })) <
                    0)
                        return NULL;
        return TAKE_PTR(array);
}

/* Null where the verdict counts as it is. */
static json_t *to_confirm(const RunRecord *run)
{
        if (run->confirm_at_real_ns == 0)
                return json_null();
        return OBJECT({ "at", json_time_or_null(run->confirm_at_real_ns) },
                      { "counts_from", json_time_or_null(run->counts_from_real_ns) });
}

/* Null until it ends. */
static json_t *severity(const RunRecord *run)
{
        Verdict verdict = run->judgement.verdict;

        if (verdict == VERDICT_NEVER_RUN || !run_state_ended(run->state))
                return json_null();
        return json_integer(verdict_severity(verdict, false));
}

/* The curve: what the device did with 1, 2, 4, ... writers. Null for other runs. */
static json_t *steps(const RunRecord *run)
{
        json_auto_t *array = json_array();

        if (!run->profile.ramp)
                return json_null();
        if (!array)
                return NULL;
        for (size_t i = 0; i < run->n_steps; i++) {
                const RampStep *step = &run->steps[i];
                const Metrics *m = &step->measured;
                json_t *object =
                        OBJECT({ "streams", json_u64(step->streams) },
                               { "meets_latency", json_boolean(step->meets_latency) },
                               { "wkB/s", json_figure(m->wkb_s) }, { "w_await", json_figure(m->w_await) },
                               { "w/s", json_figure(m->w_s) }, { "aqu-sz", json_figure(m->aqu_sz) },
                               { "util", json_figure(m->util) },
                               { "app_write_mb_per_s", json_figure(step->app_write_mb_per_s) },
                               { "latency_ms", latency(&step->latency) });

                if (json_array_append_new(array, object) < 0)
                        return NULL;
        }
        return TAKE_PTR(array);
}

/* The most that still meets the latency, and with how many writers; null where no step did. */
static json_t *headroom(const RunRecord *run)
{
        const RampStep *best = run_record_headroom(run);

        if (!best)
                return json_null();
        return OBJECT({ "write_mb_per_s", json_figure(best->measured.wkb_s / 1000) },
                      { "streams", json_u64(best->streams) },
                      { "w_await_ms", json_figure(best->measured.w_await) });
}

static double progress(const RunRecord *run)
{
        if (run->profile.ramp)
                return run_state_ended(run->state) ? 1 : NAN; /* how many steps there will be is not known */
        if (run->profile.duration_ns > 0)
                return fmin(1, (double) run->elapsed_ns / (double) run->profile.duration_ns);
        if (run->bytes_total == 0)
                return NAN;
        return fmin(1, (double) run->bytes_written / (double) run->bytes_total);
}

static json_t *samples(const Judgement *judgement)
{
        json_auto_t *object = OBJECT({ "total", json_u64(judgement->samples_total) },
                                     { "passing", json_u64(judgement->samples_passing) },
                                     { "dropped", json_u64(judgement->samples_dropped) });

        for (size_t i = 0; object && i < N_CRITERIA; i++)
                if (!json_put(object, criterion_rules[i].samples_key,
                              json_u64(judgement->samples_missing[i])))
                        return NULL;
        return TAKE_PTR(object);
}

json_t *json_run(const RunRecord *run, bool evidence)
{
        const Judgement *judgement = &run->judgement;
        json_auto_t *object = json_object();

        if (!object || (evidence && !json_put(object, "schema", json_integer(JSON_SCHEMA))))
                return NULL;
        json_auto_t *body = OBJECT(
                { "id", json_text(run->id) }, { "target", json_text(run->target) },
                { "profile", json_text(run->profile.name) }, { "certifying", json_boolean(run->certifying) },
                { "trigger", json_text(run_trigger_to_string(run->trigger)) },
                { "state", json_text(run_state_to_string(run->state)) },
                { "verdict", judgement->verdict == VERDICT_NEVER_RUN || !run_state_ended(run->state)
                                     ? json_null()
                                     : json_text(verdict_to_string(judgement->verdict)) },
                { "reasons", json_reasons(&judgement->reasons) },
                { "started_at", json_time_or_null(run->started_real_ns) },
                { "finished_at", json_time_or_null(run->finished_real_ns) },
                { "elapsed_s", json_seconds_from_ns(run->elapsed_ns) }, { "test", test(run) },
                { "bytes_total", json_u64(run->bytes_total) },
                { "bytes_written", json_u64(run->bytes_written) }, { "progress", json_figure(progress(run)) },
                { "criteria", json_criteria_with_limits(judgement, &run->limits) },
                { "measured", measured(judgement) }, { "samples", samples(judgement) },
                { "latency_ms", run->has_latency ? latency(&run->latency) : json_null() },
                { "foreign_write_ratio", json_figure(judgement->foreign_write_ratio) },
                { "device", json_device(run->device) },
                /* Beyond the contract's fields, which stand first. */
                { "severity", severity(run) },
                { "started_epoch_s", json_epoch_or_null(run->started_real_ns) },
                { "finished_epoch_s", json_epoch_or_null(run->finished_real_ns) },
                { "official", json_boolean(run->official) }, { "path", json_text(run->path) },
                { "leads_to", json_text(run->place) },
                { "queued_at", json_time_or_null(run->queued_real_ns) },
                { "window_s", json_figure(judgement->elapsed_s) },
                { "stalled_s", run->stalled_ns ? json_seconds_from_ns(run->stalled_ns) : json_null() },
                { "together", together(run) },
                { "confirms", run->confirms[0] ? json_text(run->confirms) : json_null() },
                { "to_confirm", to_confirm(run) }, { "limits", json_limits(&run->limits) },
                { "ramp", steps(run) }, { "headroom", headroom(run) });
        if (!body || json_object_update(object, body) < 0)
                return NULL;
        if (evidence && !json_put(object, "evidence", json_evidence(run)))
                return NULL;
        return TAKE_PTR(object);
}
