/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics document. A metric is a row of the table. */

#include "exposition.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define PREFIX "tierprobe_"
#define BYTES_PER_KB 1024.0 /* iostat's */
#define KB_PER_MB 1000.0    /* as the documented requirement reads it */

typedef struct Row Row;

typedef struct Writer {
        Text *out;
        const MetricsFacts *facts;
        MetricsForm form;
} Writer;

typedef enum Kind {
        GAUGE,
        EXACT_GAUGE, /* with more digits than a measurement has: a time, a limit */
        COUNTER,
        INFO,
        HISTOGRAM
} Kind;

/* One of the functions says what it is: of the service, of each target (label "target"), of what production
 * shows of each target ("target", "span"), or in its own way. */
struct Row {
        const char *name; /* less the prefix, and of a counter less "_total" */
        Kind kind;
        const char *unit; /* the end of the name; NULL: it has none */
        const char *help;
        double (*of_service)(const ServiceView *view);
        double (*of_target)(const TargetView *view, const Row *row);
        double (*of_observed)(const ObservedFigures *figures);
        void (*write)(const Writer *writer, const Row *row);
        const char *column; /* iostat's JSON key, for target_metric() */
        double factor;      /* to its unit here */
};

/* ---- writing samples ---- */

static void add_format(Text *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add_format(Text *out, const char *format, ...)
{
        char text[256];
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(text, sizeof text, format, ap);
        va_end(ap);
        text_add_string(out, text);
}

/* A label's value: UTF-8, with backslash, quote and line feed escaped. */
static void add_value(Text *out, const char *value)
{
        char clean[1024];

        text_copy_clean(clean, sizeof clean, value);
        for (const char *c = clean; *c; c++) {
                if (*c == '\\' || *c == '"')
                        text_add(out, "\\", 1);
                text_add(out, c, 1);
        }
}

typedef struct Label {
        const char *name, *value;
} Label;

/* What is measured has six significant digits, as in every document. */
static int digits_of(const Row *row, double value)
{
        bool counts = row->kind != GAUGE ||
                      (row->unit && strcmp(row->unit, "bytes") == 0 && !(fabs(value - trunc(value)) > 0));

        return counts ? 15 : 6;
}

/* The sample NAME + SUFFIX{LABELS} VALUE; LABELS end with a NULL name. */
static void add_sample(const Writer *writer, const Row *row, const char *suffix, const Label *labels,
                       double value)
{
        Text *out = writer->out;

        add_format(out, PREFIX "%s%s", row->name, suffix);
        for (const Label *label = labels; label && label->name; label++) {
                text_add_string(out, label == labels ? "{" : ",");
                add_format(out, "%s=\"", label->name);
                add_value(out, label->value);
                text_add(out, "\"", 1);
        }
        text_add_string(out, labels && labels->name ? "} " : " ");
        if (isnan(value))
                text_add_string(out, "NaN\n");
        else
                add_format(out, "%.*g\n", digits_of(row, value), value);
}

#define LABELS(...) ((const Label[]){ __VA_ARGS__, { NULL, NULL } })

static const char *suffix_of(const Row *row)
{
        return row->kind == COUNTER ? "_total" : "";
}

/* ---- of the service ---- */

static double ready(const ServiceView *view)
{
        return view->ready;
}

static double config_error(const ServiceView *view)
{
        return view->config_error != NULL;
}

static double limit_throughput(const ServiceView *view)
{
        return view->config->limits.value[CRITERION_WRITE_THROUGHPUT] * KB_PER_MB * BYTES_PER_KB;
}

static double limit_await(const ServiceView *view)
{
        return view->config->limits.value[CRITERION_WRITE_LATENCY] / 1e3;
}

static double limit_pass_ratio(const ServiceView *view)
{
        return view->config->limits.pass_ratio;
}

static double start_time(const ServiceView *view)
{
        return (double) view->started_real_ns / 1e9;
}

static void write_build(const Writer *writer, const Row *row)
{
        add_sample(writer, row, "_info", LABELS({ "version", TIERPROBE_VERSION }), 1);
}

static void write_certificate(const Writer *writer, const Row *row)
{
        int64_t expiry_ns = writer->facts->service->certificate_expiry_real_ns;

        if (expiry_ns)
                add_sample(writer, row, "", NULL, floor((double) expiry_ns / (double) NS_PER_S));
}

static void write_requests(const Writer *writer, const Row *row)
{
        for (size_t i = 0; i < writer->facts->n_requests; i++) {
                const RequestCount *request = &writer->facts->requests[i];
                char code[16];

                (void) snprintf(code, sizeof code, "%u", request->status);
                add_sample(writer, row, "_total", LABELS({ "code", code }, { "method", request->method }),
                           (double) request->count);
        }
}

/* ---- of a target ---- */

static double seconds_or_nan(int64_t real_ns)
{
        return real_ns == 0 || real_ns == SCHEDULE_NEVER ? NAN : (double) real_ns / 1e9;
}

static double stale(const TargetView *view, const Row *row)
{
        (void) row;
        return view->stale;
}

static double degraded(const TargetView *view, const Row *row)
{
        (void) row;
        return view->degraded;
}

static double run_active(const TargetView *view, const Row *row)
{
        (void) row;
        return view->current_run != NULL;
}

static double next_run(const TargetView *view, const Row *row)
{
        (void) row;
        return seconds_or_nan(view->next_run_real_ns);
}

static double last_run_time(const TargetView *view, const Row *row)
{
        (void) row;
        return view->last_run ? seconds_or_nan(view->last_run->finished_real_ns) : NAN;
}

static double last_run_duration(const TargetView *view, const Row *row)
{
        (void) row;
        return view->last_run ? past_run_number(view->last_run, NULL, "elapsed_s") : NAN;
}

/* What the last run measured, by the key of iostat's column. */
static double last_run_metric(const TargetView *view, const Row *row)
{
        return view->last_run ? past_run_number(view->last_run, "measured", row->column) * row->factor : NAN;
}

/* What the last sample shows, likewise. */
static double sample_metric(const TargetView *view, const Row *row)
{
        Metrics metrics;

        if (!view->sample || view->sample_gap != GAP_NONE)
                return NAN;
        metrics_from_delta(view->sample_delta, &metrics);
        for (size_t i = 0; i < N_METRIC_COLUMNS; i++)
                if (strcmp(metric_columns[i].key, row->column) == 0)
                        return metric_value(&metrics, &metric_columns[i]) * row->factor;
        return NAN;
}

static double test_written(const TargetView *view, const Row *row)
{
        (void) row;
        return (double) view->test_written_bytes;
}

static double samples_missed(const TargetView *view, const Row *row)
{
        (void) row;
        return (double) view->samples_missed;
}

static double budget_left(const TargetView *view, const Row *row)
{
        (void) row;
        return view->budget_left_bytes != UINT64_MAX ? (double) view->budget_left_bytes : NAN;
}

static double test_bytes(const TargetView *view, const Row *row)
{
        (void) row;
        return (double) view->test_bytes;
}

static double free_space(const TargetView *view, const Row *row)
{
        (void) row;
        return view->free_bytes ? (double) view->free_bytes : NAN;
}

static double observed_samples(const ObservedFigures *figures)
{
        return (double) figures->samples_with_writes;
}

static double observed_over_limit(const ObservedFigures *figures)
{
        return figures->samples_with_writes
                       ? (double) figures->samples_over_limit / (double) figures->samples_with_writes
                       : NAN;
}

static double observed_held(const ObservedFigures *figures)
{
        return figures->held_wkb_s * BYTES_PER_KB;
}

static double observed_held_await(const ObservedFigures *figures)
{
        return figures->held_w_await_ms / 1e3;
}

static double observed_longest(const ObservedFigures *figures)
{
        return figures->longest_over_s;
}

/* What is not known yet has its series all the same. */
static ObservedFigures observed_of(const TargetView *view, ObservedSpan span)
{
        ObservedFigures figures = { .p50_ms = NAN,
                                    .p95_ms = NAN,
                                    .p99_ms = NAN,
                                    .max_ms = NAN,
                                    .held_wkb_s = NAN,
                                    .held_w_await_ms = NAN,
                                    .longest_over_s = NAN };

        if (view->observed)
                observed_figures(view->observed, span, (int64_t) clock_ns(CLOCK_REALTIME), &figures);
        return figures;
}

static void write_observed_await(const Writer *writer, const Row *row)
{
        for (size_t i = 0; i < writer->facts->service->n_targets; i++)
                for (ObservedSpan span = 0; span < _OBSERVED_SPAN_MAX; span++) {
                        const TargetView *view = &writer->facts->targets[i];
                        const ObservedFigures figures = observed_of(view, span);
                        const struct {
                                const char *statistic;
                                double ms;
                        } points[] = { { "p50", figures.p50_ms },
                                       { "p95", figures.p95_ms },
                                       { "p99", figures.p99_ms },
                                       { "max", figures.max_ms } };

                        for (size_t j = 0; j < ELEMENTSOF(points); j++)
                                add_sample(writer, row, "",
                                           LABELS({ "target", view->name },
                                                  { "span", observed_span_to_string(span) },
                                                  { "statistic", points[j].statistic }),
                                           points[j].ms / 1e3);
                }
}

static void write_target_info(const Writer *writer, const Row *row)
{
        for (size_t i = 0; i < writer->facts->service->n_targets; i++) {
                const TargetView *view = &writer->facts->targets[i];
                const Device *device = view->device;

                add_sample(
                        writer, row, "_info",
                        LABELS({ "target", view->name }, { "path", view->path },
                               { "device", device ? device->name : "" },
                               { "filesystem", device && device->filesystem ? device->filesystem : "" },
                               { "mount_point", device && device->mount_point ? device->mount_point : "" }),
                        1);
        }
}

static void write_verdict(const Writer *writer, const Row *row)
{
        for (size_t i = 0; i < writer->facts->service->n_targets; i++)
                for (int v = 0; v < _VERDICT_MAX; v++) {
                        const TargetView *view = &writer->facts->targets[i];

                        add_sample(writer, row, "",
                                   LABELS({ "target", view->name },
                                          { "verdict", verdict_to_string((Verdict) v) }),
                                   view->verdict == (Verdict) v);
                }
}

static void write_runs(const Writer *writer, const Row *row)
{
        static const Verdict ends[] = { VERDICT_PASS, VERDICT_FAIL, VERDICT_INCONCLUSIVE };

        for (size_t i = 0; i < writer->facts->service->n_targets; i++)
                for (size_t v = 0; v < ELEMENTSOF(ends); v++) {
                        const TargetView *view = &writer->facts->targets[i];

                        add_sample(
                                writer, row, "_total",
                                LABELS({ "target", view->name }, { "verdict", verdict_to_string(ends[v]) }),
                                (double) view->runs_ended[ends[v]]);
                }
}

static void write_gaps(const Writer *writer, const Row *row)
{
        for (size_t i = 0; i < writer->facts->service->n_targets; i++)
                for (int gap = GAP_NONE + 1; gap < _GAP_MAX; gap++) {
                        const TargetView *view = &writer->facts->targets[i];

                        add_sample(writer, row, "_total",
                                   LABELS({ "target", view->name }, { "reason", gap_to_string((Gap) gap) }),
                                   (double) view->gaps[gap]);
                }
}

/* OpenMetrics wants a point in every number that is a label. */
static void format_bound(char *buf, size_t size, uint64_t bound_ns, MetricsForm form)
{
        bool whole = bound_ns % NS_PER_S == 0;

        (void) snprintf(buf, size, "%.15g%s", (double) bound_ns / 1e9,
                        whole && form == METRICS_OPEN ? ".0" : "");
}

static void write_latency(const Writer *writer, const Row *row)
{
        for (size_t i = 0; i < writer->facts->service->n_targets; i++) {
                const TargetView *view = &writer->facts->targets[i];
                const LatencyCounts *counts = &view->write_latency;

                for (size_t b = 0; b <= N_LATENCY_BOUNDS; b++) {
                        bool last = b == N_LATENCY_BOUNDS;
                        char bound[32] = "+Inf";

                        if (!last)
                                format_bound(bound, sizeof bound, latency_bounds_ns[b], writer->form);
                        add_sample(writer, row, "_bucket", LABELS({ "target", view->name }, { "le", bound }),
                                   (double) (last ? counts->count : counts->up_to[b]));
                }
                add_sample(writer, row, "_sum", LABELS({ "target", view->name }),
                           (double) counts->sum_ns / 1e9);
                add_sample(writer, row, "_count", LABELS({ "target", view->name }), (double) counts->count);
        }
}

/* Two targets may lie on one disk, which has one series. */
static void write_lifetime(const Writer *writer, const Row *row)
{
        for (size_t i = 0; i < writer->facts->service->n_targets; i++) {
                const TargetView *view = &writer->facts->targets[i];
                bool told = !view->device || !*view->device->name;

                for (size_t j = 0; j < i && !told; j++) {
                        const Device *other = writer->facts->targets[j].device;

                        told = other && strcmp(other->name, view->device->name) == 0;
                }
                if (!told)
                        add_sample(writer, row, "", LABELS({ "device", view->device->name }),
                                   (double) view->disk_written_lifetime_bytes);
        }
}

/* ---- the table ---- */

/* A metric of the device's last sample: what iostat's COLUMN shows, in base units. */
#define DEVICE(device_name, device_unit, device_column, to_unit, meaning)                               \
        {                                                                                               \
                .name = "device_" device_name, .kind = GAUGE, .unit = (device_unit), .help = (meaning), \
                .of_target = sample_metric, .column = (device_column), .factor = (to_unit)              \
        }

static const Row rows[] = {
        { "build", INFO, NULL, "The version that runs.", .write = write_build },
        { "start_timestamp_seconds", EXACT_GAUGE, "seconds", "When the daemon was started.",
          .of_service = start_time },
        { "config_error", GAUGE, NULL,
          "1 when the last reload was refused and an older configuration is in force.",
          .of_service = config_error },
        { "tls_certificate_expiry_timestamp_seconds", EXACT_GAUGE, "seconds",
          "When the certificate for HTTPS expires.", .write = write_certificate },
        { "http_requests", COUNTER, NULL, "Requests answered, by status and method.",
          .write = write_requests },
        { "ready", GAUGE, NULL, "1 while every target's last verdict is a fresh pass.", .of_service = ready },
        { "limit_write_bytes_per_second", EXACT_GAUGE, "bytes_per_second",
          "The least throughput that passes; the documented 600 MB/s are 600000 of iostat's kB, of 1024 "
          "bytes each.",
          .of_service = limit_throughput },
        { "limit_write_await_seconds", EXACT_GAUGE, "seconds", "The latency that must be undercut to pass.",
          .of_service = limit_await },
        { "limit_pass_ratio", EXACT_GAUGE, "ratio", "The part of a run's samples that must meet both limits.",
          .of_service = limit_pass_ratio },

        { "target", INFO, NULL, "A target, and the device found under its path.",
          .write = write_target_info },
        { "verdict", GAUGE, NULL, "1 for the verdict that a target has, 0 for the other three.",
          .write = write_verdict },
        { "stale", GAUGE, NULL, "1 when the verdict is too old to rely on.", .of_target = stale },
        { "degraded", GAUGE, NULL, "1 when the verdict is a pass, but clearly worse than those before it.",
          .of_target = degraded },
        { "run_active", GAUGE, NULL, "1 while a run is queued or running.", .of_target = run_active },
        { "next_run_timestamp_seconds", EXACT_GAUGE, "seconds",
          "When the next scheduled run is due; NaN: never.", .of_target = next_run },
        { "last_run_timestamp_seconds", EXACT_GAUGE, "seconds", "When the last run ended.",
          .of_target = last_run_time },
        { "last_run_duration_seconds", GAUGE, "seconds", "How long the last run took.",
          .of_target = last_run_duration },
        { "last_run_write_bytes_per_second", GAUGE, "bytes_per_second",
          "Throughput of the last run, from the device's counters (wkB/s).", .of_target = last_run_metric,
          .column = "wkB/s", .factor = BYTES_PER_KB },
        { "last_run_write_await_seconds", GAUGE, "seconds",
          "Write latency of the last run, from the device's counters (w_await).",
          .of_target = last_run_metric, .column = "w_await", .factor = 1e-3 },
        { "write_latency_seconds", HISTOGRAM, "seconds",
          "Write calls of the tests since the start, as the writers saw them.", .write = write_latency },
        { "runs", COUNTER, NULL, "Runs that ended since the start, by verdict.", .write = write_runs },
        { "test_written_bytes", COUNTER, "bytes", "Written by tests since the start.",
          .of_target = test_written },
        { "test_written_lifetime_bytes", GAUGE, "bytes", "Written to a disk by all tests that are on record.",
          .write = write_lifetime },
        { "budget_left_bytes", GAUGE, "bytes",
          "What tests may still write to a target's disk in these 24 hours; NaN without a budget.",
          .of_target = budget_left },
        { "test_bytes", GAUGE, "bytes", "What a target's next scheduled run may write.",
          .of_target = test_bytes },
        { "free_bytes", GAUGE, "bytes", "Free space under a target's path.", .of_target = free_space },

        { "observed_samples_with_writes", GAUGE, NULL,
          "Samples between tests in which writes were completed, over the last hour and the last day.",
          .of_observed = observed_samples },
        { "observed_over_limit_ratio", GAUGE, "ratio",
          "Part of these whose w_await is at or above the limit.", .of_observed = observed_over_limit },
        { "observed_write_await_seconds", GAUGE, "seconds",
          "Quantiles of w_await between tests, weighted by writes.", .write = write_observed_await },
        { "observed_held_write_bytes_per_second", GAUGE, "bytes_per_second",
          "The greatest throughput between tests held for 10 s.", .of_observed = observed_held },
        { "observed_held_write_await_seconds", GAUGE, "seconds", "Write latency (w_await) of these 10 s.",
          .of_observed = observed_held_await },
        { "observed_over_limit_longest_seconds", GAUGE, "seconds",
          "The longest time on end between tests with w_await at or above the limit.",
          .of_observed = observed_longest },

        { "samples_missed", COUNTER, NULL, "Samples that came too late to be taken.",
          .of_target = samples_missed },
        { "sample_gaps", COUNTER, NULL, "Sample intervals without figures, by reason.", .write = write_gaps },
        DEVICE("reads_per_second", "per_second", "r/s", 1, "Reads completed (r/s)."),
        DEVICE("writes_per_second", "per_second", "w/s", 1, "Writes completed (w/s)."),
        DEVICE("discards_per_second", "per_second", "d/s", 1, "Discards completed (d/s)."),
        DEVICE("flushes_per_second", "per_second", "f/s", 1, "Flushes completed (f/s)."),
        DEVICE("read_bytes_per_second", "bytes_per_second", "rkB/s", BYTES_PER_KB, "Read (rkB/s)."),
        DEVICE("write_bytes_per_second", "bytes_per_second", "wkB/s", BYTES_PER_KB, "Written (wkB/s)."),
        DEVICE("discard_bytes_per_second", "bytes_per_second", "dkB/s", BYTES_PER_KB, "Discarded (dkB/s)."),
        DEVICE("reads_merged_per_second", "per_second", "rrqm/s", 1, "Reads merged (rrqm/s)."),
        DEVICE("writes_merged_per_second", "per_second", "wrqm/s", 1, "Writes merged (wrqm/s)."),
        DEVICE("discards_merged_per_second", "per_second", "drqm/s", 1, "Discards merged (drqm/s)."),
        DEVICE("reads_merged_ratio", "ratio", "rrqm", 0.01, "Part of the reads that were merged (%rrqm)."),
        DEVICE("writes_merged_ratio", "ratio", "wrqm", 0.01, "Part of the writes that were merged (%wrqm)."),
        DEVICE("discards_merged_ratio", "ratio", "drqm", 0.01,
               "Part of the discards that were merged (%drqm)."),
        DEVICE("read_await_seconds", "seconds", "r_await", 1e-3, "Mean time of a read (r_await)."),
        DEVICE("write_await_seconds", "seconds", "w_await", 1e-3, "Mean time of a write (w_await)."),
        DEVICE("discard_await_seconds", "seconds", "d_await", 1e-3, "Mean time of a discard (d_await)."),
        DEVICE("flush_await_seconds", "seconds", "f_await", 1e-3, "Mean time of a flush (f_await)."),
        DEVICE("read_request_size_bytes", "bytes", "rareq-sz", BYTES_PER_KB,
               "Mean size of a read (rareq-sz)."),
        DEVICE("write_request_size_bytes", "bytes", "wareq-sz", BYTES_PER_KB,
               "Mean size of a write (wareq-sz)."),
        DEVICE("discard_request_size_bytes", "bytes", "dareq-sz", BYTES_PER_KB,
               "Mean size of a discard (dareq-sz)."),
        DEVICE("queue_length", NULL, "aqu-sz", 1, "Mean number of requests under way (aqu-sz)."),
        DEVICE("utilization_ratio", "ratio", "util", 0.01,
               "Part of the time with requests under way (%util)."),
};

/* ---- the document ---- */

/* The text format knows neither info nor units, and gives a counter's family the name of its sample. */
static void write_head(const Writer *writer, const Row *row)
{
        static const char *const types[] = { [GAUGE] = "gauge",
                                             [EXACT_GAUGE] = "gauge",
                                             [COUNTER] = "counter",
                                             [INFO] = "info",
                                             [HISTOGRAM] = "histogram" };
        bool open = writer->form == METRICS_OPEN;
        const char *suffix = open ? "" : row->kind == INFO ? "_info" : suffix_of(row);

        add_format(writer->out, "# HELP " PREFIX "%s%s ", row->name, suffix);
        text_add_string(writer->out, row->help);
        add_format(writer->out, "\n# TYPE " PREFIX "%s%s %s\n", row->name, suffix,
                   types[row->kind == INFO && !open ? GAUGE : row->kind]);
        if (open && row->unit)
                add_format(writer->out, "# UNIT " PREFIX "%s %s\n", row->name, row->unit);
}

static void write_row(const Writer *writer, const Row *row)
{
        const MetricsFacts *facts = writer->facts;

        write_head(writer, row);
        if (row->of_service)
                add_sample(writer, row, suffix_of(row), NULL, row->of_service(facts->service));
        for (size_t i = 0; row->of_target && i < facts->service->n_targets; i++)
                add_sample(writer, row, suffix_of(row), LABELS({ "target", facts->targets[i].name }),
                           row->of_target(&facts->targets[i], row));
        for (size_t i = 0; row->of_observed && i < facts->service->n_targets; i++)
                for (ObservedSpan span = 0; span < _OBSERVED_SPAN_MAX; span++) {
                        const ObservedFigures figures = observed_of(&facts->targets[i], span);

                        add_sample(writer, row, suffix_of(row),
                                   LABELS({ "target", facts->targets[i].name },
                                          { "span", observed_span_to_string(span) }),
                                   row->of_observed(&figures));
                }
        if (row->write)
                row->write(writer, row);
}

void metrics_write(Text *out, const MetricsFacts *facts, MetricsForm form)
{
        const Writer writer = { .out = out, .facts = facts, .form = form };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                write_row(&writer, &rows[i]);
        if (form == METRICS_OPEN)
                text_add_string(out, "# EOF\n");
}
