/* SPDX-License-Identifier: Apache-2.0 */
/* Charts as SVG. */

#include "svg.h"

#include "html.h"

#include <math.h>

#define WIDTH 720.0
#define HEIGHT 180.0
#define LEFT 64.0
#define RIGHT 12.0
#define TOP 20.0
#define BOTTOM 28.0

typedef struct Scale {
        double x_min, x_max, y_max;
        bool log_x;
} Scale;

static double to_x(const Scale *scale, double x)
{
        double part = scale->log_x ? (log(fmax(x, scale->x_min)) - log(scale->x_min)) /
                                             (log(scale->x_max) - log(scale->x_min))
                                   : (x - scale->x_min) / (scale->x_max - scale->x_min);

        return LEFT + fmin(fmax(part, 0), 1) * (WIDTH - LEFT - RIGHT);
}

static double to_y(const Scale *scale, double y)
{
        return HEIGHT - BOTTOM - fmin(fmax(y / scale->y_max, 0), 1) * (HEIGHT - TOP - BOTTOM);
}

/* The 1, 2 or 5 times a power of ten that gives about N steps up to MAX. */
static double nice_step(double max, int n)
{
        double raw = max / n, power = pow(10, floor(log10(raw)));

        for (int factor = 1; factor <= 5; factor = factor == 1 ? 2 : 5) {
                if (raw <= factor * power)
                        return factor * power;
                if (factor == 5)
                        break;
        }
        return 10 * power;
}

static void label(FILE *out, double x, double y, const char *anchor, double value, const char *unit)
{
        (void) fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%g%s%s</text>\n", x, y, anchor,
                       value, unit ? " " : "", unit ? unit : "");
}

#define MAX_TICKS 20 /* a scale has fewer, but for figures that no device has */

static void axes(FILE *out, const Chart *chart, const Scale *scale)
{
        double step = nice_step(scale->y_max, 4), first;

        for (int i = 0; i < MAX_TICKS && i * step <= scale->y_max * 1.0001; i++) {
                double y = to_y(scale, i * step);

                (void) fprintf(out,
                               "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n",
                               LEFT, WIDTH - RIGHT, y, y);
                label(out, LEFT - 6, y + 4, "end", i * step, NULL);
        }
        if (scale->log_x) {
                first = floor(log10(scale->x_min));
                for (int i = 0; i < MAX_TICKS && pow(10, first + i) <= scale->x_max; i++)
                        if (pow(10, first + i) >= scale->x_min)
                                label(out, to_x(scale, pow(10, first + i)), HEIGHT - 8, "middle",
                                      pow(10, first + i), chart->x_unit);
                return;
        }
        step = nice_step(scale->x_max - scale->x_min, 6);
        first = ceil(scale->x_min / step);
        for (int i = 0; i < MAX_TICKS && (first + i) * step <= scale->x_max; i++)
                label(out, to_x(scale, (first + i) * step), HEIGHT - 8, "middle", (first + i) * step,
                      chart->x_unit);
}

static void draw_line(FILE *out, const Chart *chart, const Scale *scale)
{
        size_t stride = chart->n_points / SVG_MAX_POINTS + 1;
        bool open = false;

        (void) fputs("<path class=\"line\" d=\"", out);
        for (size_t i = 0; i < chart->n_points; i += stride) {
                const Point *point = &chart->points[i];

                if (!isfinite(point->y)) {
                        open = false; /* a gap is drawn as a gap */
                        continue;
                }
                (void) fprintf(out, "%c%.1f %.1f", open ? 'L' : 'M', to_x(scale, point->x),
                               to_y(scale, point->y));
                open = true;
        }
        (void) fputs("\"/>\n", out);
        if (chart->dots || chart->n_points == 1)
                for (size_t i = 0; i < chart->n_points; i += stride)
                        if (isfinite(chart->points[i].y))
                                (void) fprintf(
                                        out, "<circle class=\"dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>\n",
                                        to_x(scale, chart->points[i].x), to_y(scale, chart->points[i].y));
}

static void draw_bars(FILE *out, const Chart *chart, const Scale *scale)
{
        double width = (WIDTH - LEFT - RIGHT) / (double) (chart->n_points ? chart->n_points : 1) * 0.8;

        for (size_t i = 0; i < chart->n_points; i++)
                if (isfinite(chart->points[i].y))
                        (void) fprintf(out,
                                       "<rect class=\"bar\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                                       "height=\"%.1f\"/>\n",
                                       to_x(scale, chart->points[i].x) - width / 2,
                                       to_y(scale, chart->points[i].y), width,
                                       HEIGHT - BOTTOM - to_y(scale, chart->points[i].y));
}

static bool find_scale(const Chart *chart, Scale *ret)
{
        Scale scale = { .x_min = INFINITY,
                        .x_max = -INFINITY,
                        .y_max = isfinite(chart->limit) ? chart->limit : 0,
                        .log_x = chart->log_x };
        bool any = false;

        for (size_t i = 0; i < chart->n_points + chart->n_marks; i++) {
                const Point *point =
                        i < chart->n_points ? &chart->points[i] : &chart->marks[i - chart->n_points];

                if (!isfinite(point->x) || (scale.log_x && point->x <= 0))
                        continue;
                scale.x_min = fmin(scale.x_min, point->x);
                scale.x_max = fmax(scale.x_max, point->x);
                if (isfinite(point->y))
                        scale.y_max = fmax(scale.y_max, point->y), any = true;
        }
        if (!any || scale.y_max <= 0)
                return false;
        if (!scale.log_x && scale.x_min > 0)
                scale.x_min = 0;
        if (scale.x_max <= scale.x_min)
                scale.x_max = scale.log_x ? scale.x_min * 10 : scale.x_min + 1;
        scale.y_max = ceil(scale.y_max * 1.05 / nice_step(scale.y_max, 4)) * nice_step(scale.y_max, 4);
        *ret = scale;
        return true;
}

void svg_chart(FILE *out, const Chart *chart)
{
        Scale scale;

        if (!find_scale(chart, &scale))
                return;
        (void) fprintf(out, "<svg class=\"chart\" viewBox=\"0 0 %g %g\" role=\"img\"><title>", WIDTH, HEIGHT);
        html_text(out, chart->title);
        (void) fputs("</title>\n", out);
        axes(out, chart, &scale);
        if (isfinite(chart->limit))
                (void) fprintf(
                        out,
                        "<line class=\"limit\" x1=\"%g\" x2=\"%g\" y1=\"%.1f\" y2=\"%.1f\"/>"
                        "<text class=\"limit\" x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%s %g %s</text>\n",
                        LEFT, WIDTH - RIGHT, to_y(&scale, chart->limit), to_y(&scale, chart->limit),
                        WIDTH - RIGHT - 4, to_y(&scale, chart->limit) - 4,
                        chart->limit_is_least ? "at least" : "under", chart->limit, chart->y_unit);
        if (chart->bars)
                draw_bars(out, chart, &scale);
        else
                draw_line(out, chart, &scale);
        for (size_t i = 0; i < chart->n_marks; i++)
                if (isfinite(chart->marks[i].x) && isfinite(chart->marks[i].y))
                        (void) fprintf(out, "<circle class=\"mark\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>\n",
                                       to_x(&scale, chart->marks[i].x), to_y(&scale, chart->marks[i].y));
        (void) fprintf(out, "<text x=\"4\" y=\"11\">%s</text></svg>\n", chart->y_unit);
}

void svg_bar(FILE *out, const char *title, double value, double limit, bool limit_is_least, bool pass)
{
        double end = fmax(limit_is_least ? 3 * limit : 2 * limit, isfinite(value) ? value * 1.1 : 0);

        if (!isfinite(limit) || limit <= 0)
                return;
        double at = limit / end * 300, width = isfinite(value) ? fmax(value, 0) / end * 300 : 0;
        (void) fputs("<svg class=\"gauge\" viewBox=\"0 0 300 16\" preserveAspectRatio=\"none\" "
                     "role=\"img\"><title>",
                     out);
        html_text(out, title);
        (void) fprintf(out,
                       "</title><rect class=\"room\" x=\"%.1f\" y=\"3\" width=\"%.1f\" height=\"10\"/>"
                       "<rect class=\"%s\" x=\"0\" y=\"3\" width=\"%.1f\" height=\"10\"/>"
                       "<line class=\"limit\" x1=\"%.1f\" x2=\"%.1f\" y1=\"0\" y2=\"16\"/></svg>\n",
                       limit_is_least ? at : 0, limit_is_least ? 300 - at : at, pass ? "good" : "bad", width,
                       at, at);
}
