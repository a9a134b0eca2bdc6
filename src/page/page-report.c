/* SPDX-License-Identifier: Apache-2.0 */
/* The report of a run, a host or a fleet: one HTML file that needs nothing else, or Markdown. */

#include "html.h"
#include "page-internal.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/page.h"

#include <string.h>

/* ---- what both forms go through ---- */

/* What a report is made of, as page.h describes it. */
typedef struct Parts {
        const json_t *const *documents;
        const char *const *names, *const *errors;
        size_t n;
} Parts;

/* How one form writes each of them. */
typedef struct Form {
        void (*no_answer)(FILE *out, const char *name, const char *error);
        void (*row)(FILE *out, const char *name, const json_t *judged, const json_t *run);
        void (*run)(FILE *out, const json_t *run);
        void (*target)(FILE *out, const char *name, const json_t *target);
} Form;

/* The overview: a row for each target of each host, or for the one run. */
static void write_rows(FILE *out, const Form *form, const Parts *parts)
{
        for (size_t i = 0; i < parts->n; i++) {
                const json_t *targets = json_object_get(parts->documents[i], "targets");
                size_t j;
                json_t *target;

                if (parts->errors[i])
                        form->no_answer(out, parts->names[i], parts->errors[i]);
                else if (!targets && parts->n == 1)
                        form->row(out, parts->names[i], parts->documents[i], parts->documents[i]);
                else
                        json_array_foreach(targets, j, target)
                                form->row(out, parts->names[i], target, page_deciding_run(target));
        }
}

static void write_parts(FILE *out, const Form *form, const Parts *parts)
{
        for (size_t i = 0; i < parts->n; i++) {
                const json_t *targets = json_object_get(parts->documents[i], "targets");
                size_t j;
                json_t *target;

                if (parts->errors[i])
                        continue;
                if (!targets)
                        form->run(out, parts->documents[i]);
                json_array_foreach(targets, j, target) form->target(out, parts->names[i], target);
        }
}

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

static void html_no_answer(FILE *out, const char *name, const char *error)
{
        (void) fputs("<tr><td>", out);
        html_text(out, name);
        (void) fputs("</td><td colspan=\"5\">no answer: ", out);
        html_text(out, error);
        (void) fputs("</td></tr>\n", out);
}

static void html_run(FILE *out, const json_t *run)
{
        (void) fputs("<section><h1>Run ", out);
        html_text(out, page_text_at(run, "id"));
        (void) fputs("</h1>\n", out);
        page_run_body(out, run);
        (void) fputs("</section>\n", out);
}

static void html_target(FILE *out, const char *name, const json_t *target)
{
        (void) fputs("<section><h1>", out);
        html_text(out, name);
        (void) fputs(", ", out);
        html_text(out, page_text_at(target, "name"));
        (void) fputs("</h1>\n", out);
        page_target_body(out, target, false);
        (void) fputs("</section>\n", out);
}

static const Form html_form = { html_no_answer, overview_row, html_run, html_target };

void page_write_report(FILE *out, const json_t *const *documents, const char *const *names,
                       const char *const *errors, size_t n)
{
        const Parts parts = { documents, names, errors, n };

        page_begin(out, "tierprobe report", false);
        (void) fputs("<main class=\"report\">\n<h1>Fitness of local disks for a caching tier</h1>\n", out);
        (void) fputs("<table><thead><tr><th scope=\"col\">host</th><th scope=\"col\">target</th><th "
                     "scope=\"col\">verdict</th>"
                     "<th scope=\"col\">MB/s</th><th scope=\"col\">w_await, ms</th><th "
                     "scope=\"col\">device</th></tr></thead><tbody>\n",
                     out);
        write_rows(out, &html_form, &parts);
        (void) fputs("</tbody></table>\n", out);
        write_parts(out, &html_form, &parts);
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

static void markdown_no_answer(FILE *out, const char *name, const char *error)
{
        (void) fputs("| ", out);
        markdown_text(out, name);
        (void) fputs(" | - | no answer: ", out);
        markdown_text(out, error);
        (void) fputs(" | - | - | - |\n", out);
}

static void markdown_run(FILE *out, const json_t *run)
{
        (void) fputs("\n## Run\n\n", out);
        markdown_ticket(out, run);
}

static void markdown_target(FILE *out, const char *name, const json_t *target)
{
        if (!page_deciding_run(target))
                return;
        (void) fputs("\n## ", out);
        markdown_text(out, name);
        (void) fputs(", ", out);
        markdown_text(out, page_text_at(target, "name"));
        (void) fputs("\n\n", out);
        markdown_ticket(out, page_deciding_run(target));
}

static const Form markdown_form = { markdown_no_answer, markdown_row, markdown_run, markdown_target };

void page_write_markdown(FILE *out, const json_t *const *documents, const char *const *names,
                         const char *const *errors, size_t n)
{
        const Parts parts = { documents, names, errors, n };

        (void) fputs("# Fitness of local disks for a caching tier\n\n| host | target | verdict | MB/s | "
                     "w_await, ms | device |\n"
                     "|---|---|---|---|---|---|\n",
                     out);
        write_rows(out, &markdown_form, &parts);
        write_parts(out, &markdown_form, &parts);
}
