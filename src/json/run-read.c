/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a kept RUN document back into a record. The file may have been damaged or written by anybody: every
 * member is checked for its type and range, and the first fault is told in a sentence. */

#include "json-reader.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/json.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>

static void read_word(Reader *reader, const json_t *object, const char *key,
                      bool (*is_valid)(const char *text), char *buf, size_t size)
{
        const char *text = read_string(reader, object, key, false);

        if (!text)
                return;
        if (!is_valid(text) || strlen(text) >= size)
                reader_fail(reader, "\"%s\" is not a valid name", key);
        else
                memcpy(buf, text, strlen(text) + 1);
}

static void read_verdict(Reader *reader, const json_t *object, RunRecord *run)
{
        const char *text = read_string(reader, object, "verdict", true);
        Verdict verdict = VERDICT_NEVER_RUN;

        if (reader->error)
                return;
        if (text && (verdict_from_string(text, &verdict) < 0 || verdict == VERDICT_NEVER_RUN))
                reader_fail(reader, "\"verdict\" is none of pass, fail, inconclusive");
        else if (text && !run_state_ended(run->state))
                reader_fail(reader, "a run that has not ended has a verdict");
        else if (!text && run_state_ended(run->state))
                reader_fail(reader, "a run that has ended has no verdict");
        run->judgement.verdict = verdict;
}

static void read_reasons(Reader *reader, const json_t *object, Reasons *reasons)
{
        const json_t *array = read_array(reader, object, "reasons", MAX_REASONS);
        const json_t *item = NULL;
        size_t i = 0;

        json_array_foreach(array, i, item)
        {
                const char *code_text = read_string(reader, item, "code", false);
                ReasonCode code = 0;

                if (!code_text)
                        return;
                if (reason_from_string(code_text, &code) < 0) {
                        reader_fail(reader, "reason %zu has an unknown code", i);
                        return;
                }
                Reason *reason = &reasons->items[reasons->n++];
                reason->code = code;
                read_text(reader, item, "detail", reason->detail, sizeof reason->detail);
        }
}

static void read_test(Reader *reader, const json_t *object, RunRecord *run)
{
        const json_t *test = read_object(reader, object, "test", false);
        const char *pattern = read_string(reader, test, "pattern", false);
        uint64_t streams = 0;

        read_u64(reader, test, "block_size", UINT64_MAX, &run->block_size);
        read_u64(reader, test, "count", UINT64_MAX, &run->count);
        read_u64(reader, test, "streams", PROBE_MAX_STREAMS, &streams);
        run->streams = (unsigned) streams;
        read_ns_from_seconds(reader, test, "duration_s", &run->duration_ns);
        run->ramp = read_flag(reader, test, "ramp") > 0;
        read_ns_from_seconds(reader, test, "max_duration_s", &run->max_duration_ns);
        if (pattern && probe_pattern_from_string(pattern, &run->pattern) < 0)
                reader_fail(reader, "\"pattern\" is none of zero, random");
}

static void read_criteria(Reader *reader, const json_t *object, Judgement *judgement)
{
        const json_t *array = read_array(reader, object, "criteria", N_CRITERIA);
        const json_t *item = NULL;
        size_t i = 0;

        json_array_foreach(array, i, item)
        {
                const char *name = read_string(reader, item, "name", false);
                size_t c = 0;

                while (name && c < N_CRITERIA && strcmp(name, criterion_rules[c].name) != 0)
                        c++;
                if (!name || c == N_CRITERIA) {
                        reader_fail(reader, "criterion %zu is not one of ours", i);
                        return;
                }
                Criterion *criterion = &judgement->criteria[c];
                read_number(reader, item, "value", &criterion->value);
                read_number(reader, item, "limit", &criterion->limit);
                criterion->pass = read_flag(reader, item, "pass") > 0;
                judgement->criteria_known |= isfinite(criterion->value);
        }
}

static void read_measured(Reader *reader, const json_t *object, Judgement *judgement)
{
        const json_t *measured = read_object(reader, object, "measured", false);

        for (size_t i = 0; i < N_METRIC_COLUMNS; i++) {
                double value = NAN;

                read_number(reader, measured, metric_columns[i].key, &value);
                memcpy((char *) &judgement->measured + metric_columns[i].offset, &value, sizeof value);
        }
        read_number(reader, measured, "app_write_mb_per_s", &judgement->app_write_mb_per_s);
        read_number(reader, measured, "first_third_mb_per_s", &judgement->first_third_mb_per_s);
        read_number(reader, measured, "last_third_mb_per_s", &judgement->last_third_mb_per_s);
        read_number(reader, measured, "worst_sample_mb_per_s", &judgement->worst_sample_mb_per_s);
}

static void read_samples(Reader *reader, const json_t *object, Judgement *judgement)
{
        const json_t *samples = read_object(reader, object, "samples", false);
        uint64_t total = 0, passing = 0, dropped = 0;

        read_u64(reader, samples, "total", UINT_MAX, &total);
        read_u64(reader, samples, "passing", UINT_MAX, &passing);
        read_u64(reader, samples, "dropped", UINT_MAX, &dropped);
        for (size_t i = 0; i < N_CRITERIA; i++) {
                uint64_t missing = 0;

                read_u64(reader, samples, criterion_rules[i].samples_key, UINT_MAX, &missing);
                judgement->samples_missing[i] = (unsigned) missing;
        }
        if (!reader->error && passing > total)
                reader_fail(reader, "more samples pass than there are");
        judgement->samples_total = (unsigned) total;
        judgement->samples_passing = (unsigned) passing;
        judgement->samples_dropped = (unsigned) dropped;
}

static void read_latency(Reader *reader, const json_t *latency, LatencySummary *ret)
{
        read_number(reader, latency, "mean", &ret->mean);
        read_number(reader, latency, "p50", &ret->p50);
        read_number(reader, latency, "p90", &ret->p90);
        read_number(reader, latency, "p99", &ret->p99);
        read_number(reader, latency, "p99_9", &ret->p99_9);
        read_number(reader, latency, "max", &ret->max);
}

static void read_run_latency(Reader *reader, const json_t *object, RunRecord *run)
{
        const json_t *latency = read_object(reader, object, "latency_ms", true);

        if (!latency)
                return;
        run->has_latency = true;
        read_latency(reader, latency, &run->latency);
}

static void read_step(Reader *reader, const json_t *item, RampStep *step)
{
        Metrics *m = &step->measured;
        uint64_t streams = 0;

        read_u64(reader, item, "streams", PROBE_MAX_STREAMS, &streams);
        step->streams = (unsigned) streams;
        step->meets_latency = read_flag(reader, item, "meets_latency") > 0;
        read_number(reader, item, "wkB/s", &m->wkb_s);
        read_number(reader, item, "w_await", &m->w_await);
        read_number(reader, item, "w/s", &m->w_s);
        read_number(reader, item, "aqu-sz", &m->aqu_sz);
        read_number(reader, item, "util", &m->util);
        read_number(reader, item, "app_write_mb_per_s", &step->app_write_mb_per_s);
        read_latency(reader, read_object(reader, item, "latency_ms", false), &step->latency);
}

static void read_steps(Reader *reader, const json_t *object, RunRecord *run)
{
        const json_t *item = NULL;
        size_t i = 0;

        if (!run->ramp)
                return;
        const json_t *array = read_array(reader, object, "ramp", RAMP_MAX_STEPS);
        json_array_foreach(array, i, item) read_step(reader, item, &run->steps[run->n_steps++]);
}

static void read_limits(Reader *reader, const json_t *object, Limits *limits)
{
        const json_t *member = read_object(reader, object, "limits", false);

        for (size_t i = 0; i < N_CRITERIA; i++)
                read_number(reader, member, criterion_rules[i].limit.name, &limits->value[i]);
        read_number(reader, member, "pass_ratio", &limits->pass_ratio);
}

static void read_run(Reader *reader, const json_t *object, RunRecord *run)
{
        const char *trigger = read_string(reader, object, "trigger", false);
        const char *state = read_string(reader, object, "state", false);

        if (!trigger || !state)
                return;
        if (run_trigger_from_string(trigger, &run->trigger) < 0)
                reader_fail(reader, "\"trigger\" is none of manual, schedule, start");
        if (run_state_from_string(state, &run->state) < 0)
                reader_fail(reader, "\"state\" is none of queued, running, finished, aborted, failed");
        read_word(reader, object, "id", run_id_is_valid, run->id, sizeof run->id);
        read_word(reader, object, "target", name_is_valid, run->target, sizeof run->target);
        read_word(reader, object, "profile", name_is_valid, run->profile, sizeof run->profile);
        run->certifying = read_flag(reader, object, "certifying") > 0;
        read_verdict(reader, object, run);
        read_reasons(reader, object, &run->judgement.reasons);
        read_time(reader, object, "queued_at", &run->queued_real_ns);
        read_time(reader, object, "started_at", &run->started_real_ns);
        read_time(reader, object, "finished_at", &run->finished_real_ns);
        read_ns_from_seconds(reader, object, "elapsed_s", &run->elapsed_ns);
        read_ns_from_seconds(reader, object, "stalled_s", &run->stalled_ns);
        read_test(reader, object, run);
        read_u64(reader, object, "bytes_total", UINT64_MAX, &run->bytes_total);
        read_u64(reader, object, "bytes_written", UINT64_MAX, &run->bytes_written);
        read_limits(reader, object, &run->limits);
        read_criteria(reader, object, &run->judgement);
        read_measured(reader, object, &run->judgement);
        read_samples(reader, object, &run->judgement);
        read_run_latency(reader, object, run);
        read_steps(reader, object, run);
        read_number(reader, object, "foreign_write_ratio", &run->judgement.foreign_write_ratio);
        read_number(reader, object, "window_s", &run->judgement.elapsed_s);
        run->path = read_text_or_null(reader, object, "path");
        read_device(reader, object, &run->device);
}

int run_record_from_json(const char *text, size_t size, RunRecord **ret, char *error, size_t error_size)
{
        _cleanup_(run_record_freep) RunRecord *run = NULL;
        Reader reader = { .text = error, .size = error_size };
        json_error_t where;

        /* Texts with U+0000 are refused by default; a repeated key is a sign of tampering or damage. */
        json_auto_t *document = json_loadb(text, size, JSON_REJECT_DUPLICATES, &where);
        if (!document) {
                reader_fail(&reader, "not JSON: line %d column %d: %s", where.line, where.column, where.text);
                return -EINVAL;
        }
        if (!json_is_object(document)) {
                reader_fail(&reader, "not a JSON object");
                return -EINVAL;
        }
        const json_t *schema = json_object_get(document, "schema");
        if (schema && (!json_is_integer(schema) || json_integer_value(schema) != JSON_SCHEMA)) {
                reader_fail(&reader, "\"schema\" is not %d, the one this version reads", JSON_SCHEMA);
                return -EINVAL;
        }
        int r = run_record_new(&run);
        if (r < 0)
                return r;
        read_run(&reader, document, run);
        if (reader.error)
                return reader.error;
        *ret = TAKE_PTR(run);
        return 0;
}
