/* SPDX-License-Identifier: Apache-2.0 */
/* Text into HTML, and figures out of JSON. */

#include "html.h"

#include <math.h>
#include <string.h>

#define DASH "\342\200\223"

void html_text(FILE *out, const char *text)
{
        if (!text) {
                (void) fputs(DASH, out);
                return;
        }
        for (const unsigned char *c = (const unsigned char *) text; *c; c++)
                switch (*c) {
                case '&':
                        (void) fputs("&amp;", out);
                        break;
                case '<':
                        (void) fputs("&lt;", out);
                        break;
                case '>':
                        (void) fputs("&gt;", out);
                        break;
                case '"':
                        (void) fputs("&quot;", out);
                        break;
                case '\'':
                        (void) fputs("&#39;", out);
                        break;
                default:
                        if (*c < 0x20 || *c == 0x7f)
                                (void) fputs("\357\277\275", out);
                        else
                                (void) fputc(*c, out);
                        break;
                }
}

const char *page_text_at(const json_t *object, const char *key)
{
        return json_string_value(json_object_get(object, key));
}

double page_number_at(const json_t *object, const char *key)
{
        const json_t *value = json_object_get(object, key);

        return json_is_number(value) ? json_number_value(value) : NAN;
}

bool page_true_at(const json_t *object, const char *key)
{
        return json_is_true(json_object_get(object, key));
}

void html_figure(FILE *out, double value, const char *unit)
{
        double size = fabs(value);

        if (!isfinite(value)) {
                (void) fputs(DASH, out);
                return;
        }
        (void) fprintf(out, "%.*f",
                       size >= 1000               ? 0
                       : size >= 100              ? 1
                       : size >= 1 || size < 1e-9 ? 2
                                                  : 3,
                       value);
        if (unit)
                (void) fprintf(out, " %s", unit);
}

void html_count(FILE *out, double value)
{
        if (isfinite(value) && fabs(value) < 1e15)
                (void) fprintf(out, "%.0f", value);
        else
                (void) fputs(DASH, out);
}

void html_seconds(FILE *out, double seconds)
{
        if (!isfinite(seconds) || seconds < 0)
                (void) fputs(DASH, out);
        else if (seconds < 120)
                (void) fprintf(out, seconds < 10 ? "%.1f s" : "%.0f s", seconds);
        else if (seconds < 7200)
                (void) fprintf(out, "%.0f min", seconds / 60);
        else if (seconds < 172800)
                (void) fprintf(out, "%.0f h", seconds / 3600);
        else
                (void) fprintf(out, "%.0f days", seconds / 86400);
}

void html_bytes(FILE *out, double bytes)
{
        static const char *const units[] = { "B", "kB", "MB", "GB", "TB", "PB" };
        size_t i = 0;

        if (!isfinite(bytes) || bytes < 0) {
                (void) fputs(DASH, out);
                return;
        }
        for (; bytes >= 1000 && i + 1 < sizeof units / sizeof units[0]; i++)
                bytes /= 1000;
        (void) fprintf(out,
                       bytes < 10 && i > 0    ? "%.2f %s"
                       : bytes < 100 && i > 0 ? "%.1f %s"
                                              : "%.0f %s",
                       bytes, units[i]);
}

void html_time(FILE *out, const char *rfc3339)
{
        if (!rfc3339) {
                (void) fputs(DASH, out);
                return;
        }
        (void) fputs("<time datetime=\"", out);
        html_text(out, rfc3339);
        (void) fputs("\">", out);
        /* "2026-11-30T22:25:30.926Z" is read as "2026-11-30 22:25:30 UTC"; anything else as it is. */
        if (strlen(rfc3339) >= 20 && rfc3339[10] == 'T' && rfc3339[strlen(rfc3339) - 1] == 'Z') {
                char text[32];

                (void) snprintf(text, sizeof text, "%.10s %.8s UTC", rfc3339, rfc3339 + 11);
                html_text(out, text);
        } else
                html_text(out, rfc3339);
        (void) fputs("</time>", out);
}

/* ---- verdicts ---- */

static const struct {
        const char *verdict, *class, *shape, *word;
} verdicts[] = {
        { "pass", "pass", "\342\234\223", "PASS" },
        { "fail", "fail", "\342\234\225", "FAIL" },
        { "inconclusive", "inconclusive", "?", "INCONCLUSIVE" },
        { "never_run", "never_run", "\342\227\213", "NEVER RUN" },
};

const char *html_verdict_class(const char *verdict, bool warning)
{
        for (size_t i = 0; verdict && i < sizeof verdicts / sizeof verdicts[0]; i++)
                if (strcmp(verdict, verdicts[i].verdict) == 0)
                        return i == 0 && warning ? "warning" : verdicts[i].class;
        return "inconclusive";
}

void html_verdict(FILE *out, const char *verdict, bool warning)
{
        for (size_t i = 0; verdict && i < sizeof verdicts / sizeof verdicts[0]; i++)
                if (strcmp(verdict, verdicts[i].verdict) == 0) {
                        bool warns = i == 0 && warning;

                        (void) fprintf(out,
                                       "<span class=\"verdict %s\"><span class=\"shape\" "
                                       "aria-hidden=\"true\">%s</span> %s</span>",
                                       html_verdict_class(verdict, warning), warns ? "!" : verdicts[i].shape,
                                       verdicts[i].word);
                        return;
                }
        (void) fputs("<span class=\"verdict inconclusive\">", out);
        html_text(out, verdict);
        (void) fputs("</span>", out);
}

void html_reasons(FILE *out, const json_t *reasons)
{
        size_t i;
        json_t *reason;

        if (json_array_size(reasons) == 0)
                return;
        (void) fputs("<ul class=\"reasons\">", out);
        json_array_foreach(reasons, i, reason)
        {
                const char *text =
                        json_is_string(reason) ? json_string_value(reason) : page_text_at(reason, "detail");

                (void) fputs("<li>", out);
                html_text(out, text);
                if (page_text_at(reason, "code")) {
                        (void) fputs(" <code>", out);
                        html_text(out, page_text_at(reason, "code"));
                        (void) fputs("</code>", out);
                }
                (void) fputs("</li>\n", out);
        }
        (void) fputs("</ul>\n", out);
}
