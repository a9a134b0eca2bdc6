/* SPDX-License-Identifier: Apache-2.0 */
/* Documents out: the only room that knows jansson, with the capture reader.
 *
 * Every function that makes a document returns a new jansson reference, or NULL when out of memory. Numbers
 * that are NAN become null. Texts that are not UTF-8 (a mount point may be anything) are made so: each bad
 * byte becomes U+FFFD. */
#pragma once

#include <jansson.h>

#include "tierprobe/ledger.h"
#include "tierprobe/record.h"
#include "tierprobe/views.h"

#define JSON_SCHEMA 1
#define JSON_TEXT_FLAGS (JSON_COMPACT | JSON_REAL_PRECISION(15))

json_t *json_number_or_null(double value);
json_t *json_text(const char *text);          /* NULL becomes null */
json_t *json_time_or_null(int64_t real_ns);   /* 0 and SCHEDULE_NEVER become null */
json_t *json_epoch_or_null(int64_t real_ns);  /* likewise, in whole seconds since 1970 */
json_t *json_reasons(const Reasons *reasons); /* [{"code", "detail"}] */
json_t *json_criteria(const Judgement *judgement);
json_t *json_metrics(const Metrics *metrics); /* iostat's keys in iostat's order */
json_t *json_device(const Device *device);    /* NULL becomes null; with the whole stack */
json_t *json_limits(const Limits *limits);

/* SAMPLE: RECORD with the interval that ends at it; DELTA is read only when GAP is GAP_NONE. */
json_t *json_sample(const RingRecord *record, const Delta *delta, Gap gap);

/* The same as text, and as a row of CSV (RFC 4180) with the columns of csv_sample_header(), whose metrics
 * have the names of iostat's table; what is null is empty there. Each returns the length, 0 when SIZE is too
 * small; SAMPLE_TEXT_SIZE suffices. No NUL at the end. */
#define SAMPLE_TEXT_SIZE 1536
size_t json_sample_text(char *buf, size_t size, const RingRecord *record, const Delta *delta, Gap gap);
size_t csv_sample_row(char *buf, size_t size, const RingRecord *record, const Delta *delta, Gap gap);
size_t csv_sample_header(char *buf, size_t size);

/* The same of a bucket: of each figure the least, the mean over all of it, and the greatest. */
#define BUCKET_TEXT_SIZE 4096
size_t json_bucket_text(char *buf, size_t size, const Bucket *bucket);
size_t csv_bucket_row(char *buf, size_t size, const Bucket *bucket);
size_t csv_bucket_header(char *buf, size_t size);

/* RUN, to stand inside a document; with EVIDENCE a document of its own: with "schema", samples of the window,
 * slowest writes, kernel, equivalent command. */
json_t *json_run(const RunRecord *run, bool evidence);

/* The ledger as its file has it, and back. Reading is lenient: what is missing or not known is left out, runs
 * are kept. 0, -EBADMSG (no JSON object), -ENOMEM. */
json_t *json_ledger(const Ledger *ledger);
int json_read_ledger(const char *text, size_t size, Ledger **ret);

/* /status: the whole daemon, with its VIEW->n_targets TARGETS. */
json_t *json_status(const ServiceView *view, const TargetView *targets);

/* The same for whoever polls a thousand hosts: what changes with a verdict, a run or the schedule alone. */
json_t *json_status_brief(const ServiceView *view, const TargetView *targets);

/* ---- small documents of the HTTP interface ---- */

/* RFC 9457, with a stable CODE, and MEMBER (its reference is taken) under KEY unless that is NULL. */
json_t *json_problem(unsigned status, const char *title, const char *code, const char *detail,
                     const char *key, json_t *member);

/* What became of a request to start a run: "started", "run_in_progress", "cooldown", "over_budget", or the
 * code of the reason for a refusal. */
const char *json_start_code(const StartAnswer *answer);

/* Those of N answers that were not accepted: [{"target", "code", "detail", "run_id", "retry_after_s"}]. */
json_t *json_start_answers(const StartAnswer *answers, size_t n);

/* The targets whose verdict is not a fresh pass: [{"name", "verdict", "stale"}]. */
json_t *json_targets_not_ready(const TargetView *targets, size_t n);

/* The body of a request to start a run; what it does not name is empty. */
typedef struct StartRequest {
        char target[NAME_SIZE], profile[NAME_SIZE];
        bool together;
} StartRequest;

/* -EINVAL with a sentence in ERROR for anything but an object with these three members at most. */
int json_read_start_request(const char *text, size_t size, StartRequest *ret, char *error, size_t error_size);

/* Serialises for output: compact, newline at the end. Owned by the caller. NULL when out of memory. */
char *json_document(json_t *document, size_t *ret_size);
