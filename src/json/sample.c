/* SPDX-License-Identifier: Apache-2.0 */
/* A sample, one list of members in three forms: a tree to stand inside a document, and text and a row for the
 * thousands of a history, which a tree for each would make several times as dear. The latter two of a bucket
 * of samples as well. */

#include "json-internal.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/figure.h"
#include "tierprobe/json.h"
#include "tierprobe/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* What stands before the metrics and, with the gap, behind them. */
enum { SEQ, TIME, INTERVAL, RUN, DEVICE, N_FIRST };

static const char *const first_keys[N_FIRST] = { "seq", "time", "interval_s", "run_id", "device" };

/* A sample with what is computed once for all its members. */
typedef struct Sample {
        const RingRecord *record;
        double interval_s;
        Metrics metrics;
        const char *gap; /* NULL: none */
} Sample;

static Sample sample_from(const RingRecord *record, const Delta *delta, Gap gap)
{
        Sample sample = { .record = record, .interval_s = NAN };

        if (gap == GAP_NONE) {
                sample.interval_s = (double) delta->interval_ns / 1e9;
                metrics_from_delta(delta, &sample.metrics);
        } else {
                sample.gap = gap_to_string(gap);
                metrics_forget(&sample.metrics);
        }
        return sample;
}

json_t *json_sample(const RingRecord *record, const Delta *delta, Gap gap)
{
        const Sample sample = sample_from(record, delta, gap);
        json_auto_t *object = OBJECT({ first_keys[SEQ], json_u64(record->seq) },
                                     { first_keys[TIME], json_time_or_null(record->snapshot.real_ns) },
                                     { first_keys[INTERVAL], json_figure(sample.interval_s) },
                                     { first_keys[RUN], json_text_or_null(record->run_id) },
                                     { first_keys[DEVICE], json_text_or_null(record->device) });

        if (!object)
                return NULL;
        for (size_t i = 0; i < N_METRIC_COLUMNS; i++)
                if (!json_put(object, metric_columns[i].key,
                              json_figure(metric_value(&sample.metrics, &metric_columns[i]))))
                        return NULL;
        return json_put(object, "gap", json_text(sample.gap)) ? TAKE_PTR(object) : NULL;
}

/* ---- text ---- */

typedef struct Writer {
        char *at, *end;
        bool csv;
} Writer;

static void add(Writer *writer, const char *text, size_t size)
{
        if (!writer->at || (size_t) (writer->end - writer->at) < size) {
                writer->at = writer->end = NULL; /* it does not fit */
                return;
        }
        memcpy(writer->at, text, size);
        writer->at += size;
}

static void add_key(Writer *writer, const char *key, bool first)
{
        if (!first)
                add(writer, ",", 1);
        if (writer->csv)
                return;
        add(writer, "\"", 1);
        add(writer, key, strlen(key));
        add(writer, "\":", 2);
}

static void add_figure(Writer *writer, double value)
{
        char buf[FIGURE_SIZE];

        if (writer->csv && !isfinite(value))
                return;
        add(writer, buf, figure_format(buf, value));
}

/* TEXT is one of our own, or a name without quotes, commas and control characters; NULL or empty: none. */
static void add_name(Writer *writer, const char *text)
{
        if (!text || !*text) {
                add(writer, "null", writer->csv ? 0 : 4);
                return;
        }
        add(writer, "\"", !writer->csv);
        add(writer, text, strlen(text));
        add(writer, "\"", !writer->csv);
}

/* Kernel names of devices are letters, digits and few signs more; a file that other hands were in may say
 * what it likes. */
static const char *clean_name(char to[64], const char *from)
{
        text_copy_clean(to, 64, from);
        for (char *c = to; *c; c++)
                if (*c == '"' || *c == '\\' || *c == ',')
                        *c = '?';
        return to;
}

static size_t write_sample(Writer *writer, const char *begin, const Sample *sample)
{
        char buf[64];
        int64_t real_ns = sample->record->snapshot.real_ns;

        add(writer, "{", !writer->csv);
        add_key(writer, first_keys[SEQ], true);
        add(writer, buf, (size_t) snprintf(buf, sizeof buf, "%" PRIu64, sample->record->seq));
        add_key(writer, first_keys[TIME], false);
        add_name(writer, real_ns ? rfc3339_format(buf, real_ns) : NULL);
        add_key(writer, first_keys[INTERVAL], false);
        add_figure(writer, sample->interval_s);
        add_key(writer, first_keys[RUN], false);
        add_name(writer, clean_name(buf, sample->record->run_id));
        add_key(writer, first_keys[DEVICE], false);
        add_name(writer, clean_name(buf, sample->record->device));
        for (size_t i = 0; i < N_METRIC_COLUMNS; i++) {
                add_key(writer, metric_columns[i].key, false);
                add_figure(writer, metric_value(&sample->metrics, &metric_columns[i]));
        }
        add_key(writer, "gap", false);
        add_name(writer, sample->gap);
        add(writer, writer->csv ? "\r\n" : "}", writer->csv ? 2 : 1);
        return writer->at ? (size_t) (writer->at - begin) : 0;
}

size_t json_sample_text(char *buf, size_t size, const RingRecord *record, const Delta *delta, Gap gap)
{
        const Sample sample = sample_from(record, delta, gap);

        return write_sample(&(Writer){ .at = buf, .end = buf + size }, buf, &sample);
}

size_t csv_sample_row(char *buf, size_t size, const RingRecord *record, const Delta *delta, Gap gap)
{
        const Sample sample = sample_from(record, delta, gap);

        return write_sample(&(Writer){ .at = buf, .end = buf + size, .csv = true }, buf, &sample);
}

size_t csv_sample_header(char *buf, size_t size)
{
        Writer writer = { .at = buf, .end = buf + size };

        for (size_t i = 0; i < N_FIRST; i++) {
                add(&writer, ",", i > 0);
                add(&writer, first_keys[i], strlen(first_keys[i]));
        }
        for (size_t i = 0; i < N_METRIC_COLUMNS; i++) {
                add(&writer, ",", 1);
                add(&writer, metric_columns[i].header, strlen(metric_columns[i].header));
        }
        add(&writer, ",gap\r\n", 6);
        return writer.at ? (size_t) (writer.at - buf) : 0;
}

/* ---- buckets ---- */

static void add_unsigned(Writer *writer, uint64_t value)
{
        char buf[24];

        add(writer, buf, (size_t) snprintf(buf, sizeof buf, "%" PRIu64, value));
}

static void add_runs(Writer *writer, const Bucket *bucket)
{
        char buf[64];

        add(writer, "[", !writer->csv);
        for (size_t i = 0; i < bucket->n_runs; i++) {
                add(writer, writer->csv ? " " : ",", i > 0);
                add_name(writer, clean_name(buf, bucket->runs[i]));
        }
        add(writer, "]", !writer->csv);
}

static size_t write_bucket(Writer *writer, const char *begin, const Bucket *bucket)
{
        char time[RFC3339_SIZE];
        Metrics mean;

        metrics_forget(&mean);
        if (bucket->sum.interval_ns > 0)
                metrics_from_delta(&bucket->sum, &mean);
        add(writer, "{", !writer->csv);
        add_key(writer, "time", true);
        add_name(writer, rfc3339_format(time, bucket->begin_real_ns));
        add_key(writer, "count", false);
        add_unsigned(writer, bucket->count);
        add_key(writer, "runs", false);
        add_runs(writer, bucket);
        for (size_t i = 0; i < N_METRIC_COLUMNS; i++) {
                const MetricColumn *column = &metric_columns[i];

                add_key(writer, column->key, false);
                add(writer, "{", !writer->csv);
                add_key(writer, "min", true);
                add_figure(writer, metric_value(&bucket->min, column));
                add_key(writer, "mean", false);
                add_figure(writer, metric_value(&mean, column));
                add_key(writer, "max", false);
                add_figure(writer, metric_value(&bucket->max, column));
                add(writer, "}", !writer->csv);
        }
        add(writer, writer->csv ? "\r\n" : "}", writer->csv ? 2 : 1);
        return writer->at ? (size_t) (writer->at - begin) : 0;
}

size_t json_bucket_text(char *buf, size_t size, const Bucket *bucket)
{
        return write_bucket(&(Writer){ .at = buf, .end = buf + size }, buf, bucket);
}

size_t csv_bucket_row(char *buf, size_t size, const Bucket *bucket)
{
        return write_bucket(&(Writer){ .at = buf, .end = buf + size, .csv = true }, buf, bucket);
}

size_t csv_bucket_header(char *buf, size_t size)
{
        static const char *const kinds[] = { " min", "", " max" };
        Writer writer = { .at = buf, .end = buf + size };

        add(&writer, "time,count,runs", 15);
        for (size_t i = 0; i < N_METRIC_COLUMNS; i++)
                for (size_t j = 0; j < ELEMENTSOF(kinds); j++) {
                        add(&writer, ",", 1);
                        add(&writer, metric_columns[i].header, strlen(metric_columns[i].header));
                        add(&writer, kinds[j], strlen(kinds[j]));
                }
        add(&writer, "\r\n", 2);
        return writer.at ? (size_t) (writer.at - buf) : 0;
}
