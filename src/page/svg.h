/* SPDX-License-Identifier: Apache-2.0 */
/* Charts as SVG: figures against a limit over time, bars, curves. Inside the page room.
 *
 * Sizes are attributes and colours are classes, so that a page without inline style can hold them. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#define SVG_MAX_POINTS 20000 /* more are thinned: no screen shows them */

typedef struct Point {
        double x, y; /* y NAN: a gap */
} Point;

typedef struct Chart {
        const char *title; /* for who cannot see it: what it shows */
        const char *x_unit, *y_unit;
        double limit;        /* NAN: none */
        bool limit_is_least; /* good is above it, else below */
        bool log_x;          /* x from the smallest point on, logarithmic */
        bool bars, dots;     /* else a line of steps; dots beside: one for each point */
        const Point *points;
        size_t n_points;
        const Point *marks; /* points that stand out: slow writes; may be NULL */
        size_t n_marks;
} Chart;

/* Nothing when there are no points. */
void svg_chart(FILE *out, const Chart *chart);

/* A bar of VALUE beside LIMIT, the limit drawn in; the scale ends at twice the larger of the two, or, with
 * LIMIT_IS_LEAST, so that the limit stands at a third. */
void svg_bar(FILE *out, const char *title, double value, double limit, bool limit_is_least, bool pass);
