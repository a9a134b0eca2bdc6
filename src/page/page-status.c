/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a daemon: is it fit, since when, how sure, and if not, what is wrong and what to do. */

#include "html.h"
#include "page-internal.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/page.h"

#include <math.h>
#include <string.h>

static bool warns(const json_t *target)
{
        return page_true_at(target, "stale") || page_true_at(target, "degraded");
}

/* ---- the head ---- */

/* The newest end of a run, and the soonest start of one: RFC 3339 in UTC sorts as text. */
static const char *extreme_time(const json_t *targets, bool last)
{
        const char *found = NULL;
        size_t i;
        json_t *target;

        json_array_foreach(targets, i, target)
        {
                const char *time = last ? page_text_at(page_deciding_run(target), "finished_at")
                                        : page_text_at(target, "next_run_at");
                if (time && (!found || (last ? strcmp(time, found) > 0 : strcmp(time, found) < 0)))
                        found = time;
        }
        return found;
}

static void head(FILE *out, const json_t *status, const char *host)
{
        const json_t *targets = json_object_get(status, "targets");
        const char *verdict = page_text_at(status, "verdict");
        bool warning = false;
        size_t i;
        json_t *target;

        json_array_foreach(targets, i, target) warning = warning || warns(target);
        (void) fprintf(out, "<header id=\"head\" class=\"%s\"><h1>", html_verdict_class(verdict, warning));
        html_text(out, host);
        (void) fputs("</h1><p class=\"headline\">", out);
        html_verdict(out, verdict, warning);
        (void) fputs("</p><p>last check ", out);
        html_time(out, extreme_time(targets, true));
        (void) fputs(", next ", out);
        html_time(out, extreme_time(targets, false));
        (void) fputs("</p>", out);
        if (json_is_string(json_object_get(status, "config_error"))) {
                (void) fputs("<p class=\"warning\">The configuration on disk is in error; the one before is "
                             "in force: ",
                             out);
                html_text(out, page_text_at(status, "config_error"));
                (void) fputs("</p>", out);
        }
        (void) fputs("<p id=\"connection\" role=\"status\"></p></header>\n", out);
}

/* ---- a target ---- */

static const char *sentence(const char *verdict)
{
        if (verdict && strcmp(verdict, "pass") == 0)
                return "This disk is fit for a caching tier.";
        if (verdict && strcmp(verdict, "fail") == 0)
                return "This disk is not fit for a caching tier.";
        if (verdict && strcmp(verdict, "never_run") == 0)
                return "It has not been tested yet.";
        return "Whether this disk is fit could not be judged.";
}

static void current_run(FILE *out, const json_t *run, bool live)
{
        double total = page_number_at(run, "bytes_total"), written = page_number_at(run, "bytes_written");
        double elapsed = page_number_at(run, "elapsed_s"), rate = written / elapsed;

        if (!json_is_object(run))
                return;
        (void) fputs("<p class=\"current\">A test is ", out);
        html_text(out, page_text_at(run, "state"));
        (void) fprintf(out,
                       ": <progress max=\"1\" value=\"%.3f\" aria-label=\"progress of the run\"></progress> ",
                       isfinite(page_number_at(run, "progress")) ? page_number_at(run, "progress") : 0.0);
        html_bytes(out, written);
        (void) fputs(" of ", out);
        html_bytes(out, total);
        if (rate > 0 && total > written) {
                (void) fputs(", ", out);
                html_figure(out, rate / 1024e3, "MB/s"); /* as the verdict reads it */
                (void) fputs(", ", out);
                html_seconds(out, (total - written) / rate);
                (void) fputs(" left", out);
        }
        if (live) {
                (void) fputs(" <button type=\"button\" data-abort=\"", out);
                html_text(out, page_text_at(run, "id"));
                (void) fputs("\" hidden>Abort</button> <a href=\"/runs/", out);
                html_text(out, page_text_at(run, "id"));
                (void) fputs("\">details</a>", out);
        }
        (void) fputs("</p>\n", out);
}

static void observed_row(FILE *out, const json_t *observed, const char *key, const char *title)
{
        const json_t *span = json_object_get(observed, key), *latency = json_object_get(span, "w_await");

        if (!json_is_object(span))
                return;
        (void) fprintf(out, "<tr><th scope=\"row\">%s</th><td>", title);
        html_count(out, page_number_at(span, "samples_with_writes"));
        (void) fputs("</td><td>", out);
        html_figure(out, 100 * page_number_at(span, "over_limit_ratio"), "%");
        static const char *const keys[] = { "p50", "p95", "p99", "max" };
        for (size_t i = 0; i < ELEMENTSOF(keys); i++) {
                (void) fputs("</td><td>", out);
                html_figure(out, page_number_at(latency, keys[i]), NULL);
        }
        (void) fputs("</td><td>", out);
        html_figure(out, page_number_at(json_object_get(span, "held_10s"), "wkB/s") / 1000, NULL);
        (void) fputs("</td><td>", out);
        html_figure(out, page_number_at(json_object_get(span, "longest_over_limit"), "duration_s"), "s");
        (void) fputs("</td></tr>\n", out);
}

static void observed(FILE *out, const json_t *target)
{
        const json_t *its = json_object_get(target, "observed");

        if (!json_is_object(its))
                return;
        (void) fputs("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"what production "
                     "shows\"><table class=\"observed\"><caption>What production shows between "
                     "tests</caption><thead><tr><th scope=\"col\">over</th>"
                     "<th scope=\"col\">samples with writes</th><th scope=\"col\">at or above the latency "
                     "limit</th>"
                     "<th scope=\"col\">w_await p50, ms</th><th scope=\"col\">p95</th><th "
                     "scope=\"col\">p99</th><th scope=\"col\">max</th>"
                     "<th scope=\"col\">most MB/s held for 10 s</th><th scope=\"col\">longest above the "
                     "limit</th></tr>"
                     "</thead><tbody>\n",
                     out);
        observed_row(out, its, "hour", "the last hour");
        observed_row(out, its, "day", "the last day");
        (void) fputs("</tbody></table></div>\n", out);
}

static const char *next_why(const char *why)
{
        static const struct {
                const char *name, *text;
        } all[] = {
                { "due", "as the schedule has it" },
                { "missed", "to make up for one that was missed" },
                { "confirm", "to confirm the fail" },
                { "retry", "as it was kept from starting when it was due" },
        };

        for (size_t i = 0; why && i < ELEMENTSOF(all); i++)
                if (strcmp(all[i].name, why) == 0)
                        return all[i].text;
        return "for a reason that is not known";
}

void page_target_body(FILE *out, const json_t *target, bool live)
{
        const char *verdict = page_text_at(target, "verdict");
        const json_t *run = page_deciding_run(target);

        (void) fputs("<p class=\"headline\">", out);
        html_verdict(out, verdict, warns(target));
        (void) fprintf(out, " %s", sentence(verdict));
        if (isfinite(page_number_at(target, "age_s"))) {
                (void) fputs(" <span class=\"age\">Tested ", out);
                html_seconds(out, page_number_at(target, "age_s"));
                (void) fputs(" ago.</span>", out);
        }
        (void) fputs("</p>\n", out);
        html_reasons(out, json_object_get(target, "reasons"));
        if (json_is_object(json_object_get(target, "standing_run"))) /* else they are the reasons */
                html_reasons(out, json_object_get(target, "problems"));
        page_criteria(out, json_object_get(run, "criteria"));
        current_run(out, json_object_get(target, "current_run"), live);
        page_device(out, json_object_get(target, "device"), page_text_at(target, "path"),
                    json_object_get(target, "heat"));
        (void) fputs("<p class=\"more\">", out);
        if (isfinite(page_number_at(target, "free_bytes"))) {
                html_bytes(out, page_number_at(target, "free_bytes"));
                (void) fputs(" free. ", out);
        }
        if (page_number_at(target, "disk_written_day_bytes") > 0) {
                html_bytes(out, page_number_at(target, "disk_written_day_bytes"));
                (void) fputs(" written to its disk by tests in the last day. ", out);
        }
        if (isfinite(page_number_at(target, "budget_left_bytes"))) {
                html_bytes(out, page_number_at(target, "budget_left_bytes"));
                (void) fputs(" of the day's budget are left. ", out);
        }
        (void) fputs("Next test: ", out);
        if (page_text_at(target, "next_run_at")) {
                html_time(out, page_text_at(target, "next_run_at"));
                (void) fprintf(out, ", %s.", next_why(page_text_at(target, "next_run_why")));
        } else
                (void) fputs("none is planned.", out);
        if (live && page_text_at(run, "id")) {
                (void) fputs(" <a href=\"/runs/", out);
                html_text(out, page_text_at(run, "id"));
                (void) fputs("\">the deciding run</a>", out);
        }
        (void) fputs("</p>\n", out);
        observed(out, target);
}

static void target_card(FILE *out, const json_t *target)
{
        (void) fprintf(out, "<section class=\"target %s\" data-target=\"",
                       html_verdict_class(page_text_at(target, "verdict"), warns(target)));
        html_text(out, page_text_at(target, "name"));
        (void) fputs("\">\n<h2>", out);
        html_text(out, page_text_at(target, "name"));
        (void) fputs("</h2>\n<div class=\"state\">\n", out);
        page_target_body(out, target, true);
        (void) fputs("</div>\n<div class=\"live\" hidden></div>\n</section>\n", out);
}

/* ---- past runs ---- */

static void run_row(FILE *out, const json_t *run)
{
        double throughput = page_number_at(json_object_get(run, "measured"), "wkB/s") / 1000;

        (void) fputs("<tr><td><a href=\"/runs/", out);
        html_text(out, page_text_at(run, "id"));
        (void) fputs("\">", out);
        html_time(out, page_text_at(run, "started_at") ? page_text_at(run, "started_at")
                                                       : page_text_at(run, "queued_at"));
        (void) fputs("</a></td><td>", out);
        html_text(out, page_text_at(run, "target"));
        (void) fputs("</td><td>", out);
        html_text(out, page_text_at(run, "profile"));
        (void) fputs("</td><td>", out);
        if (page_text_at(run, "verdict"))
                html_verdict(out, page_text_at(run, "verdict"), false);
        else
                html_text(out, page_text_at(run, "state"));
        (void) fputs("</td><td>", out);
        html_figure(out, throughput, NULL);
        (void) fputs("</td><td>", out);
        html_figure(out, page_number_at(json_object_get(run, "measured"), "w_await"), NULL);
        (void) fputs("</td><td>", out);
        html_text(out, page_text_at(json_array_get(json_object_get(run, "reasons"), 0), "code"));
        (void) fputs("</td></tr>\n", out);
}

static void runs_table(FILE *out, const json_t *runs)
{
        size_t i;
        json_t *run;

        (void) fputs("<section id=\"runs\"><h2>Runs</h2>\n<p class=\"filter\" hidden><label>Show only <input "
                     "id=\"filter\" type=\"search\" "
                     "placeholder=\"target, profile, verdict, reason\"></label></p>\n",
                     out);
        (void) fputs("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"past "
                     "runs\"><table><thead><tr><th scope=\"col\">started</th>"
                     "<th scope=\"col\">target</th><th scope=\"col\">profile</th><th "
                     "scope=\"col\">verdict</th><th scope=\"col\">MB/s</th>"
                     "<th scope=\"col\">w_await, ms</th><th "
                     "scope=\"col\">reason</th></tr></thead><tbody>\n",
                     out);
        if (json_array_size(runs) == 0)
                (void) fputs("<tr><td colspan=\"7\">None yet.</td></tr>\n", out);
        json_array_foreach(runs, i, run) run_row(out, run);
        (void) fputs("</tbody></table></div>\n", out);
        (void) fputs("</section>\n", out);
}

void page_write_status(FILE *out, const json_t *status, const json_t *runs, const char *host)
{
        const json_t *targets = json_object_get(status, "targets");
        size_t i;
        json_t *target;

        page_begin(out, "tierprobe", true);
        head(out, status, host);
        (void) fputs("<main id=\"targets\">\n", out);
        if (json_array_size(targets) == 0)
                (void) fputs("<p>No target is configured: name the cache's directory in "
                             "/etc/tierprobe/tierprobed.conf.</p>\n",
                             out);
        json_array_foreach(targets, i, target) target_card(out, target);
        runs_table(out, json_object_get(runs, "runs"));
        (void) fputs("</main>\n", out);
        page_end(out, true);
}
