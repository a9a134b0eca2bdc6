/* SPDX-License-Identifier: Apache-2.0 */
/* /status: the whole daemon as a poller sees it, from memory alone. */

#include "json-internal.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/json.h"
#include "tierprobe/run.h"

#include <math.h>

/* The newest sample; null when there is none yet. */
static json_t *newest_sample(const TargetView *view)
{
        if (!view->sample || view->sample_gap == GAP_FIRST)
                return json_null();
        return json_sample(view->sample, view->sample_delta, view->sample_gap);
}

static const char *target_state_name(const TargetView *view)
{
        if (!run_state_ended(view->state))
                return run_state_to_string(view->state);
        return view->looking ? "looking" : "idle";
}

static json_t *counts_by_gap(const uint64_t gaps[_GAP_MAX])
{
        json_auto_t *object = json_object();

        if (!object)
                return NULL;
        for (int gap = GAP_NONE + 1; gap < _GAP_MAX; gap++)
                if (!json_put(object, gap_to_string((Gap) gap), json_u64(gaps[gap])))
                        return NULL;
        return TAKE_PTR(object);
}

static json_t *counts_by_verdict(const uint64_t runs[_VERDICT_MAX])
{
        return OBJECT({ "pass", json_u64(runs[VERDICT_PASS]) }, { "fail", json_u64(runs[VERDICT_FAIL]) },
                      { "inconclusive", json_u64(runs[VERDICT_INCONCLUSIVE]) });
}

static json_t *current_run_or_null(const RunRecord *run)
{
        return run ? json_run(run, false) : json_null();
}

/* As it was written, by whatever release. */
static json_t *past_run_or_null(const PastRun *run)
{
        return run && run->run ? json_incref(run->run) : json_null();
}

static json_t *problems(const TargetView *view)
{
        return view->problems ? json_reasons(view->problems) : json_array();
}

/* Why the verdict is what it is, and what stands beside a pass; without one, what keeps it from being made.
 */
static json_t *reasons(const TargetView *view)
{
        const PastRun *run = view->standing_run;
        json_t *kept = run ? json_object_get(run->run, "reasons") : NULL;
        json_auto_t *warnings = view->warnings ? json_reasons(view->warnings) : json_array();
        json_auto_t *all = json_is_array(kept) ? json_copy(kept) : json_array();

        if (!run)
                return problems(view);
        if (!all || !warnings || (view->verdict == VERDICT_PASS && json_array_extend(all, warnings) < 0))
                return NULL;
        return TAKE_PTR(all);
}

static json_t *observed_span(const TargetView *view, ObservedSpan span)
{
        ObservedFigures figures;

        if (!view->observed)
                return json_null();
        observed_figures(view->observed, span, (int64_t) clock_ns(CLOCK_REALTIME), &figures);
        double n = (double) figures.samples_with_writes;
        return OBJECT(
                { "samples", json_u64(figures.samples) },
                { "samples_with_writes", json_u64(figures.samples_with_writes) },
                { "over_limit_ratio", json_figure(n > 0 ? (double) figures.samples_over_limit / n : NAN) },
                { "w_await",
                  OBJECT({ "p50", json_figure(figures.p50_ms) }, { "p95", json_figure(figures.p95_ms) },
                         { "p99", json_figure(figures.p99_ms) }, { "max", json_figure(figures.max_ms) }) },
                { "held_10s", OBJECT({ "wkB/s", json_figure(figures.held_wkb_s) },
                                     { "w_await", json_figure(figures.held_w_await_ms) },
                                     { "started_at", json_time_or_null(figures.held_begin_real_ns) }) },
                { "longest_over_limit",
                  OBJECT({ "duration_s", json_figure(figures.longest_over_s) },
                         { "started_at", json_time_or_null(figures.longest_begin_real_ns) }) });
}

/* Evidence beside the verdict, never one. */
static json_t *observed(const TargetView *view)
{
        json_auto_t *object = json_object();

        for (ObservedSpan span = 0; object && span < _OBSERVED_SPAN_MAX; span++)
                if (!json_put(object, observed_span_to_string(span), observed_span(view, span)))
                        return NULL;
        return TAKE_PTR(object);
}

static unsigned target_severity(const TargetView *view)
{
        return verdict_severity(view->verdict, view->stale || view->degraded);
}

/* Of the worst target: a fail comes before what is not known. */
static unsigned severity(const ServiceView *view, const TargetView *targets)
{
        unsigned worst = verdict_severity(view->verdict, false);

        for (size_t i = 0; worst == 0 && i < view->n_targets; i++)
                worst = target_severity(&targets[i]);
        return worst;
}

static json_t *target(const TargetView *view)
{
        return OBJECT(
                { "name", json_text(view->name) }, { "path", json_text(view->path) },
                { "state", json_text(target_state_name(view)) },
                { "verdict", json_text(verdict_to_string(view->verdict)) }, { "reasons", reasons(view) },
                { "age_s", json_figure(view->age_s) }, { "stale", json_boolean(view->stale) },
                { "next_run_at", json_time_or_null(view->next_run_real_ns) },
                { "device", json_device(view->device) },
                { "standing_run", past_run_or_null(view->standing_run) },
                { "last_run", past_run_or_null(view->last_run) },
                { "current_run", current_run_or_null(view->current_run) }, { "sample", newest_sample(view) },
                { "degraded", json_boolean(view->degraded) }, { "observed", observed(view) },
                /* Beyond the contract's fields, which stand first. */
                { "severity", json_integer(target_severity(view)) },
                { "next_run_epoch_s", json_epoch_or_null(view->next_run_real_ns) },
                { "next_run_why", json_text(next_why_to_string(view->next_run_why)) },
                { "heat", json_heat(view->heat) }, { "profile", json_text(view->profile) },
                { "problems", problems(view) },
                { "free_bytes", view->free_bytes ? json_u64(view->free_bytes) : json_null() },
                { "samples_missed", json_u64(view->samples_missed) }, { "gaps", counts_by_gap(view->gaps) },
                { "runs_ended", counts_by_verdict(view->runs_ended) },
                { "test_written_bytes", json_u64(view->test_written_bytes) },
                { "disk_written_day_bytes", json_u64(view->disk_written_day_bytes) },
                { "disk_written_lifetime_bytes", json_u64(view->disk_written_lifetime_bytes) },
                { "budget_left_bytes",
                  view->budget_left_bytes != UINT64_MAX ? json_u64(view->budget_left_bytes) : json_null() },
                { "test_bytes", json_u64(view->test_bytes) });
}

static json_t *all_targets(const TargetView *targets, size_t n)
{
        json_auto_t *array = json_array();

        if (!array)
                return NULL;
        for (size_t i = 0; i < n; i++)
                if (json_array_append_new(array, target(&targets[i])) < 0)
                        return NULL;
        return TAKE_PTR(array);
}

/* What a client may ask for, and what that writes and takes at most. */
static json_t *profiles(const Config *config)
{
        json_auto_t *array = json_array();

        if (!array)
                return NULL;
        for (size_t i = 0; i < config->n_profiles; i++) {
                const Profile *profile = &config->profiles[i];
                uint64_t most_ns = profile->duration_ns && !profile->ramp ? profile->duration_ns
                                                                          : config->guard.max_duration_ns;

                if (json_array_append_new(array, OBJECT({ "name", json_text(profile->name) },
                                                        { "certifying", json_boolean(run_is_certifying(
                                                                                profile, &config->limits)) },
                                                        { "bytes", json_u64(profile_bytes(profile)) },
                                                        { "seconds", json_seconds_from_ns(most_ns) })) < 0)
                        return NULL;
        }
        return TAKE_PTR(array);
}

/* Days are whole ones, and below zero once it has expired: what a monitoring rule compares. */
static json_t *certificate(int64_t expiry_real_ns)
{
        int64_t left_ns = expiry_real_ns - (int64_t) clock_ns(CLOCK_REALTIME);

        if (expiry_real_ns == 0)
                return json_null();
        return OBJECT({ "expires_at", json_time_or_null(expiry_real_ns) },
                      { "days_left", json_integer(left_ns / (int64_t) NS_PER_DAY - (left_ns < 0)) });
}

json_t *json_status(const ServiceView *view, const TargetView *targets)
{
        return OBJECT(
                { "schema", json_integer(JSON_SCHEMA) },
                { "service",
                  OBJECT({ "name", json_text("tierprobed") }, { "version", json_text(TIERPROBE_VERSION) },
                         { "pid", json_integer(view->pid) },
                         { "started_at", json_time_or_null(view->started_real_ns) },
                         { "uptime_s", json_seconds_from_ns(view->uptime_ns) },
                         { "certificate", certificate(view->certificate_expiry_real_ns) },
                         { "tick_lateness_p99_ms", json_figure((double) view->tick_lateness_p99_ns / 1e6) },
                         { "tick_lateness_max_ms",
                           json_figure((double) view->tick_lateness_max_ns / 1e6) }) },
                { "state", json_text(view->running ? "running" : "idle") },
                { "verdict", json_text(verdict_to_string(view->verdict)) },
                { "limits", json_limits(&view->config->limits) }, { "profiles", profiles(view->config) },
                { "targets", all_targets(targets, view->n_targets) },
                /* Beyond the contract's fields. */
                { "severity", json_integer(severity(view, targets)) },
                { "set_aside", json_u64(view->set_aside) },
                { "config_error", json_text_or_null(view->config_error) });
}

/* ---- in brief ---- */

/* Of reasons as they were kept, or as they are now, the codes alone. */
static json_t *codes_of(const TargetView *view)
{
        json_auto_t *all = reasons(view), *codes = json_array();
        json_t *reason = NULL;
        size_t i = 0;

        json_array_foreach(all, i, reason)
        {
                json_t *code = json_object_get(reason, "code");

                if (json_is_string(code) && json_array_append(codes, code) < 0)
                        return NULL;
        }
        return TAKE_PTR(codes);
}

static json_t *target_in_brief(const TargetView *view)
{
        const PastRun *run = view->standing_run;

        return OBJECT(
                { "name", json_text(view->name) }, { "state", json_text(target_state_name(view)) },
                { "verdict", json_text(verdict_to_string(view->verdict)) },
                { "severity", json_integer(target_severity(view)) }, { "reasons", codes_of(view) },
                { "stale", json_boolean(view->stale) }, { "degraded", json_boolean(view->degraded) },
                { "run_id", run ? json_text(run->id) : json_null() },
                { "finished_at", run ? json_time_or_null(run->finished_real_ns) : json_null() },
                { "finished_epoch_s", run ? json_epoch_or_null(run->finished_real_ns) : json_null() },
                { "next_run_at", json_time_or_null(view->next_run_real_ns) },
                { "current_run_id", view->current_run ? json_text(view->current_run->id) : json_null() });
}

json_t *json_status_brief(const ServiceView *view, const TargetView *targets)
{
        json_auto_t *all = json_array();

        for (size_t i = 0; all && i < view->n_targets; i++)
                if (json_array_append_new(all, target_in_brief(&targets[i])) < 0)
                        return NULL;
        return OBJECT({ "schema", json_integer(JSON_SCHEMA) },
                      { "state", json_text(view->running ? "running" : "idle") },
                      { "verdict", json_text(verdict_to_string(view->verdict)) },
                      { "severity", json_integer(severity(view, targets)) }, { "targets", json_incref(all) },
                      { "config_error", json_boolean(view->config_error != NULL) });
}
