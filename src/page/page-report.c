/* SPDX-License-Identifier: Apache-2.0 */
/* The report of a run, a host or a fleet: one HTML file that needs nothing else, or Markdown. */

#include "html.h"
#include "page-internal.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/page.h"

#include <string.h>

/* ---- HTML ---- */

static void overview_row(FILE *out, const char *name, const json_t *judged, const json_t *run)
{
        (void) fputs("<tr><td>", out);
        html_text(out, name);
        (void) fputs("</td><td>", out);
        html_text(out,
                  page_text_at(judged, "name") ? page_text_at(judged, "name") : page_text_at(run, "target"));
        (void) fputs("</td><td>", out);
        html_verdict(out, page_text_at(judged, "verdict"),
                     page_true_at(judged, "stale") || page_true_at(judged, "degraded"));
        (void) fputs("</td><td>", out);
        html_figure(out, page_number_at(json_object_get(run, "measured"), "wkB/s") / 1000, NULL);
        (void) fputs("</td><td>", out);
        html_figure(out, page_number_at(json_object_get(run, "measured"), "w_await"), NULL);
        (void) fputs("</td><td>", out);
        html_text(out, page_text_at(json_object_get(judged, "device"), "name"));
        (void) fputs("</td></tr>\n", out);
}

static void overview(FILE *out, const json_t *const *documents, const char *const *names,
                     const char *const *errors, size_t n)
{
        (void) fputs("<table><thead><tr><th scope=\"col\">host</th><th scope=\"col\">target</th><th "
                     "scope=\"col\">verdict</th>"
                     "<th scope=\"col\">MB/s</th><th scope=\"col\">w_await, ms</th><th "
                     "scope=\"col\">device</th></tr></thead><tbody>\n",
                     out);
        for (size_t i = 0; i < n; i++) {
                const json_t *targets = json_object_get(documents[i], "targets");
                size_t j;
                json_t *target;

                if (errors[i]) {
                        (void) fputs("<tr><td>", out);
                        html_text(out, names[i]);
                        (void) fputs("</td><td colspan=\"5\">no answer: ", out);
                        html_text(out, errors[i]);
                        (void) fputs("</td></tr>\n", out);
                } else if (!targets && n == 1)
                        overview_row(out, names[i], documents[i], documents[i]);
                else
                        json_array_foreach(targets, j, target)
                                overview_row(out, names[i], target, page_deciding_run(target));
        }
        (void) fputs("</tbody></table>\n", out);
}

void page_write_report(FILE *out, const json_t *const *documents, const char *const *names,
                       const char *const *errors, size_t n)
{
        page_begin(out, "tierprobe report", false);
        (void) fputs("<main class=\"report\">\n<h1>Fitness of local disks for a caching tier</h1>\n", out);
        overview(out, documents, names, errors, n);
        for (size_t i = 0; i < n; i++) {
                const json_t *targets = json_object_get(documents[i], "targets");
                size_t j;
                json_t *target;

                if (errors[i])
                        continue;
                if (!targets) {
                        (void) fputs("<section><h1>Run ", out);
                        html_text(out, page_text_at(documents[i], "id"));
                        (void) fputs("</h1>\n", out);
                        page_run_body(out, documents[i]);
                        (void) fputs("</section>\n", out);
                } else
                        json_array_foreach(targets, j, target)
                        {
                                (void) fputs("<section><h1>", out);
                                html_text(out, names[i]);
                                (void) fputs(", ", out);
                                html_text(out, page_text_at(target, "name"));
                                (void) fputs("</h1>\n", out);
                                page_target_body(out, target, false);
                                (void) fputs("</section>\n", out);
                        }
        }
        (void) fputs("</main>\n", out);
        page_end(out, false);
}

/* ---- Markdown ---- */

/* What Markdown or HTML in it would take for markup is escaped. */
static void markdown_text(FILE *out, const char *text)
{
        for (const unsigned char *c = (const unsigned char *) (text ? text : "-"); *c; c++) {
                switch (*c) {
                case '\\':
                case '`':
                case '*':
                case '_':
                case '[':
                case ']':
                case '<':
                case '>':
                case '|':
                case '#':
                case '&':
                        (void) fputc('\\', out);
                        break;
                default:
                        break;
                }
                (void) fputc(*c < 0x20 || *c == 0x7f ? '?' : *c, out);
        }
}

static void plain_text(FILE *out, const char *text)
{
        for (const unsigned char *c = (const unsigned char *) (text ? text : "-"); *c; c++)
                (void) fputc(*c < 0x20 || *c == 0x7f ? '?' : *c, out);
}

/* An indented block is taken as it is. */
static void markdown_ticket(FILE *out, const json_t *run)
{
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        FILE *ticket = open_memstream(&text, &size);

        if (!ticket)
                return;
        page_ticket(ticket, run, plain_text);
        if (fclose(ticket) != 0)
                return;
        for (const char *line = text; *line;) {
                size_t length = strcspn(line, "\n");

                (void) fprintf(out, "    %.*s\n", (int) length, line);
                line += length + (line[length] == '\n');
        }
}

static void markdown_row(FILE *out, const char *name, const json_t *judged, const json_t *run)
{
        (void) fputs("| ", out);
        markdown_text(out, name);
        (void) fputs(" | ", out);
        markdown_text(out, page_text_at(judged, "name") ? page_text_at(judged, "name")
                                                        : page_text_at(run, "target"));
        (void) fputs(" | ", out);
        markdown_text(out, page_text_at(judged, "verdict"));
        (void) fputs(page_true_at(judged, "stale")      ? " (stale) | "
                     : page_true_at(judged, "degraded") ? " (degraded) | "
                                                        : " | ",
                     out);
        html_figure(out, page_number_at(json_object_get(run, "measured"), "wkB/s") / 1000, NULL);
        (void) fputs(" | ", out);
        html_figure(out, page_number_at(json_object_get(run, "measured"), "w_await"), NULL);
        (void) fputs(" | ", out);
        markdown_text(out, page_text_at(json_object_get(judged, "device"), "name"));
        (void) fputs(" |\n", out);
}

void page_write_markdown(FILE *out, const json_t *const *documents, const char *const *names,
                         const char *const *errors, size_t n)
{
        (void) fputs("# Fitness of local disks for a caching tier\n\n| host | target | verdict | MB/s | "
                     "w_await, ms | device |\n"
                     "|---|---|---|---|---|---|\n",
                     out);
        for (size_t i = 0; i < n; i++) {
                const json_t *targets = json_object_get(documents[i], "targets");
                size_t j;
                json_t *target;

                if (errors[i]) {
                        (void) fputs("| ", out);
                        markdown_text(out, names[i]);
                        (void) fputs(" | - | no answer: ", out);
                        markdown_text(out, errors[i]);
                        (void) fputs(" | - | - | - |\n", out);
                } else if (!targets && n == 1)
                        markdown_row(out, names[i], documents[i], documents[i]);
                else
                        json_array_foreach(targets, j, target)
                                markdown_row(out, names[i], target, page_deciding_run(target));
        }
        for (size_t i = 0; i < n; i++) {
                const json_t *targets = json_object_get(documents[i], "targets");
                size_t j;
                json_t *target;

                if (errors[i])
                        continue;
                if (!targets) {
                        (void) fputs("\n## Run\n\n", out);
                        markdown_ticket(out, documents[i]);
                        continue;
                }
                json_array_foreach(targets, j, target) if (page_deciding_run(target))
                {
                        (void) fputs("\n## ", out);
                        markdown_text(out, names[i]);
                        (void) fputs(", ", out);
                        markdown_text(out, page_text_at(target, "name"));
                        (void) fputs("\n\n", out);
                        markdown_ticket(out, page_deciding_run(target));
                }
        }
}
