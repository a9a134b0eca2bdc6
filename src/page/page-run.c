/* SPDX-License-Identifier: Apache-2.0 */
/* The page of one run: its verdict, its samples against the limits, its latencies, its evidence. */

#include "html.h"
#include "page-internal.h"
#include "svg.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- charts ---- */

typedef struct Points {
        Point *items;
        size_t n;
} Points;

static void points_done(Points *points)
{
        free(points->items);
}

/* One point for each member of ARRAY: its members X and Y, Y times FACTOR. */
static Points collect(const json_t *array, const char *x, const char *y, double factor)
{
        Points points = { .items = calloc(json_array_size(array) + 1, sizeof(Point)) };
        size_t i;
        json_t *item;

        if (points.items)
                json_array_foreach(array, i, item) points.items[points.n++] =
                        (Point){ page_number_at(item, x), page_number_at(item, y) * factor };
        return points;
}

static double limit_at(const json_t *run, const char *key)
{
        return page_number_at(json_object_get(run, "limits"), key);
}

static void sample_charts(FILE *out, const json_t *run)
{
        const json_t *evidence = json_object_get(run, "evidence"),
                     *samples = json_object_get(evidence, "samples");
        _cleanup_(points_done) Points throughput = collect(samples, "at_s", "wkB/s", 1e-3);
        _cleanup_(points_done) Points latency = collect(samples, "at_s", "w_await", 1);
        _cleanup_(points_done) Points slow =
                collect(json_object_get(evidence, "slowest_writes"), "at_s", "latency_ms", 1);

        if (throughput.n == 0)
                return;
        (void) fputs("<h2>Samples against the limits</h2>\n", out);
        svg_chart(out, &(Chart){ .title = "write throughput of each sample interval over the time of the run",
                                 .x_unit = "s",
                                 .y_unit = "MB/s",
                                 .limit = limit_at(run, "write_mb_per_s"),
                                 .limit_is_least = true,
                                 .points = throughput.items,
                                 .n_points = throughput.n });
        svg_chart(out, &(Chart){ .title = "w_await of each sample interval, and the slowest write calls, "
                                          "over the time of the run",
                                 .x_unit = "s",
                                 .y_unit = "ms",
                                 .limit = limit_at(run, "w_await_ms"),
                                 .points = latency.items,
                                 .n_points = latency.n,
                                 .marks = slow.items,
                                 .n_marks = slow.n });
        if (slow.n > 0)
                (void) fputs("<p class=\"note\">Dots: the slowest write calls, as the writer saw them.</p>\n",
                             out);
}

static void histogram_chart(FILE *out, const json_t *run)
{
        const json_t *buckets = json_object_get(json_object_get(run, "evidence"), "latency_histogram");
        _cleanup_(points_done) Points points = collect(buckets, "le_ms", "count", 1);

        if (points.n == 0)
                return;
        (void) fputs("<h2>Latency of the write calls</h2>\n", out);
        svg_chart(out, &(Chart){ .title = "how many write calls took how long, logarithmic",
                                 .x_unit = "ms",
                                 .y_unit = "calls",
                                 .limit = NAN,
                                 .log_x = true,
                                 .bars = true,
                                 .points = points.items,
                                 .n_points = points.n });
}

static void ramp_charts(FILE *out, const json_t *run)
{
        const json_t *ramp = json_object_get(run, "ramp"), *headroom = json_object_get(run, "headroom");
        _cleanup_(points_done) Points throughput = collect(ramp, "streams", "wkB/s", 1e-3);
        _cleanup_(points_done) Points latency = collect(ramp, "streams", "w_await", 1);
        Point best = { page_number_at(headroom, "streams"), page_number_at(headroom, "wkB/s") / 1000 };

        if (throughput.n == 0)
                return;
        (void) fputs("<h2>Throughput and latency over the number of writers</h2>\n", out);
        svg_chart(out, &(Chart){ .title = "write throughput over the number of writers",
                                 .x_unit = "writers",
                                 .y_unit = "MB/s",
                                 .limit = limit_at(run, "write_mb_per_s"),
                                 .limit_is_least = true,
                                 .log_x = true,
                                 .dots = true,
                                 .points = throughput.items,
                                 .n_points = throughput.n,
                                 .marks = &best,
                                 .n_marks = json_is_object(headroom) });
        svg_chart(out, &(Chart){ .title = "w_await over the number of writers",
                                 .x_unit = "writers",
                                 .y_unit = "ms",
                                 .limit = limit_at(run, "w_await_ms"),
                                 .log_x = true,
                                 .dots = true,
                                 .points = latency.items,
                                 .n_points = latency.n });
        if (json_is_object(headroom)) {
                (void) fputs("<p>Headroom (marked): ", out);
                html_figure(out, best.y, "MB/s");
                (void) fputs(", writers: ", out);
                html_count(out, best.x);
                (void) fputs(", at a w_await of ", out);
                html_figure(out, page_number_at(headroom, "w_await"), "ms");
                (void) fputs(".</p>\n", out);
        }
}

/* ---- figures ---- */

static void row(FILE *out, const char *name)
{
        (void) fprintf(out, "</td></tr>\n<tr><th scope=\"row\">%s</th><td>", name);
}

static void facts(FILE *out, const json_t *run)
{
        const json_t *test = json_object_get(run, "test"), *samples = json_object_get(run, "samples");
        const json_t *latency = json_object_get(run, "latency_ms"),
                     *evidence = json_object_get(run, "evidence");

        (void) fputs("<table class=\"facts\"><tbody><tr><th scope=\"row\">profile</th><td>", out);
        html_text(out, page_text_at(run, "profile"));
        (void) fputs(page_true_at(run, "certifying") ? " (the documented procedure)" : " (not certifying)",
                     out);
        row(out, "started");
        html_time(out, page_text_at(run, "started_at"));
        (void) fputs(", took ", out);
        html_seconds(out, page_number_at(run, "elapsed_s"));
        (void) fputs(", by ", out);
        html_text(out, page_text_at(run, "trigger"));
        row(out, "test");
        html_count(out, page_number_at(test, "count"));
        (void) fputs(" writes of ", out);
        html_figure(out, page_number_at(test, "block_size") / 1048576, "MiB");
        (void) fputs(", streams: ", out);
        html_count(out, page_number_at(test, "streams"));
        (void) fputs(", pattern ", out);
        html_text(out, page_text_at(test, "pattern"));
        row(out, "written");
        html_bytes(out, page_number_at(run, "bytes_written"));
        (void) fputs(" of ", out);
        html_bytes(out, page_number_at(run, "bytes_total"));
        row(out, "samples");
        html_count(out, page_number_at(samples, "passing"));
        (void) fputs(" of ", out);
        html_count(out, page_number_at(samples, "total"));
        (void) fputs(" intervals meet both limits", out);
        if (json_is_object(latency)) {
                row(out, "write calls");
                static const char *const keys[] = { "mean", "p50", "p90", "p99", "p99_9", "max" };
                for (size_t i = 0; i < ELEMENTSOF(keys); i++) {
                        (void) fprintf(out, "%s%s ", i ? ", " : "", keys[i]);
                        html_figure(out, page_number_at(latency, keys[i]), "ms");
                }
        }
        row(out, "written by others");
        html_figure(out, 100 * page_number_at(run, "foreign_write_ratio"), "%");
        if (page_text_at(evidence, "command")) {
                row(out, "by hand");
                (void) fputs("<code>", out);
                html_text(out, page_text_at(evidence, "command"));
                (void) fputs("</code> beside <code>iostat -xyz 1</code>", out);
        }
        if (page_text_at(evidence, "version")) {
                row(out, "host");
                html_text(out, page_text_at(evidence, "hostname"));
                (void) fputs(", kernel ", out);
                html_text(out, page_text_at(evidence, "kernel"));
                (void) fputs(", tierprobe ", out);
                html_text(out, page_text_at(evidence, "version"));
        }
        (void) fputs("</td></tr></tbody></table>\n", out);
}

void page_ticket(FILE *out, const json_t *run, void (*text)(FILE *out, const char *text))
{
        const json_t *evidence = json_object_get(run, "evidence"), *device = json_object_get(run, "device");
        const json_t *disk = json_array_get(json_object_get(device, "stack"), 0);
        size_t i;
        json_t *item;

        (void) fputs("tierprobe verdict: ", out);
        text(out, page_text_at(run, "verdict"));
        (void) fputs("\nrun: ", out);
        text(out, page_text_at(run, "id"));
        (void) fputs(" at ", out);
        text(out, page_text_at(run, "started_at"));
        (void) fputs(", profile ", out);
        text(out, page_text_at(run, "profile"));
        json_array_foreach(json_object_get(run, "criteria"), i, item)
        {
                (void) fputs("\n", out);
                text(out, page_text_at(item, "name"));
                (void) fputs(": ", out);
                html_figure(out, page_number_at(item, "value"), NULL);
                (void) fputs(" ", out);
                text(out, page_text_at(item, "unit"));
                (void) fputs(" (limit ", out);
                html_figure(out, page_number_at(item, "limit"), NULL);
                (void) fputs(", ", out);
                text(out, page_text_at(item, "column"));
                (void) fputs(page_true_at(item, "pass") ? ") met" : ") missed", out);
        }
        json_array_foreach(json_object_get(run, "reasons"), i, item)
        {
                (void) fputs("\n", out);
                text(out, page_text_at(item, "code"));
                (void) fputs(": ", out);
                text(out, page_text_at(item, "detail"));
        }
        (void) fputs("\ndevice: ", out);
        text(out, page_text_at(device, "name"));
        (void) fputs(", ", out);
        text(out, page_text_at(disk, "model"));
        (void) fputs(", firmware ", out);
        text(out, page_text_at(disk, "firmware"));
        (void) fputs(", ", out);
        text(out, page_text_at(device, "filesystem"));
        (void) fputs(" on ", out);
        text(out, page_text_at(device, "mount_point"));
        (void) fputs("\nhost: ", out);
        text(out, page_text_at(evidence, "hostname"));
        (void) fputs(", kernel ", out);
        text(out, page_text_at(evidence, "kernel"));
        (void) fputs(", tierprobe ", out);
        text(out, page_text_at(evidence, "version"));
        (void) fputs("\nby hand: ", out);
        text(out, page_text_at(evidence, "command"));
        (void) fputs("\n", out);
}

void page_run_body(FILE *out, const json_t *run)
{
        (void) fputs("<p class=\"headline\">", out);
        if (page_text_at(run, "verdict"))
                html_verdict(out, page_text_at(run, "verdict"), false);
        else
                html_text(out, page_text_at(run, "state"));
        (void) fputs("</p>\n", out);
        html_reasons(out, json_object_get(run, "reasons"));
        page_criteria(out, json_object_get(run, "criteria"));
        sample_charts(out, run);
        ramp_charts(out, run);
        histogram_chart(out, run);
        (void) fputs("<h2>The test and its evidence</h2>\n", out);
        facts(out, run);
        page_device(out, json_object_get(run, "device"), page_text_at(run, "path"),
                    json_object_get(json_object_get(json_object_get(run, "evidence"), "conditions"), "heat"));
}

void page_write_run(FILE *out, const json_t *run, const char *host)
{
        page_begin(out, "tierprobe run", true);
        (void) fputs("<main class=\"run\" id=\"run\" data-run=\"", out);
        html_text(out, page_text_at(run, "id"));
        (void) fputs("\" data-state=\"", out);
        html_text(out, page_text_at(run, "state"));
        (void) fputs("\">\n<nav><a href=\"/\">all targets</a></nav>\n<h1>Run of ", out);
        html_text(out, page_text_at(run, "target"));
        (void) fputs(" on ", out);
        html_text(out, host);
        (void) fputs("</h1>\n", out);
        page_run_body(out, run);
        (void) fputs("<h2>For the ticket</h2>\n<pre id=\"ticket\">", out);
        page_ticket(out, run, html_text);
        (void) fputs("</pre>\n<p class=\"actions\"><button type=\"button\" id=\"copy\" hidden>Copy for the "
                     "ticket</button> "
                     "<a href=\"/runs/",
                     out);
        html_text(out, page_text_at(run, "id"));
        (void) fputs("\" type=\"application/json\" id=\"json\">this run as JSON</a></p>\n</main>\n", out);
        page_end(out, true);
}
