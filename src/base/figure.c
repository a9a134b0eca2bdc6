/* SPDX-License-Identifier: Apache-2.0 */
/* Measured figures as text. */

#include "tierprobe/figure.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS 6
#define LEAST_EXPONENT (-5)
#define MOST_EXPONENT 14

/* Exact in a double. */
static const double powers[] = { 1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15 };

/* The six digits of VALUE, a number from 100000 to 999999, and the power of ten that the first of them stands
 * for. */
static uint32_t split(double value, int *ret_exponent)
{
        int exponent = 0;

        if (value >= 1)
                while (exponent < MOST_EXPONENT && value >= powers[exponent + 1])
                        exponent++;
        else
                while (exponent > LEAST_EXPONENT && value * powers[-exponent] < 1)
                        exponent--;
        double scaled = exponent < DIGITS ? value * powers[DIGITS - 1 - exponent]
                                          : value / powers[exponent - (DIGITS - 1)];
        uint32_t digits = (uint32_t) (scaled + 0.5);
        if (digits >= 1000000) {
                digits /= 10;
                exponent++;
        }
        *ret_exponent = exponent;
        return digits;
}

size_t figure_format(char buf[FIGURE_SIZE], double value)
{
        char text[DIGITS], *out = buf;
        double size = fabs(value);
        int exponent = 0, n = DIGITS;

        if (!isfinite(value)) {
                memcpy(buf, "null", 5);
                return 4;
        }
        if (!(size > 0)) {
                memcpy(buf, "0", 2);
                return 1;
        }
        if (size < 1e-5 || size >= 1e15)
                return (size_t) snprintf(buf, FIGURE_SIZE, "%.6g", value);
        uint32_t digits = split(size, &exponent);
        for (int i = DIGITS - 1; i >= 0; i--, digits /= 10)
                text[i] = (char) ('0' + digits % 10);
        while (n > 1 && n > exponent + 1 && text[n - 1] == '0')
                n--;

        if (value < 0)
                *out++ = '-';
        if (exponent < 0) {
                *out++ = '0';
                *out++ = '.';
                for (int i = -1; i > exponent; i--)
                        *out++ = '0';
        }
        for (int i = 0; i < n || i <= exponent; i++) {
                *out++ = i < DIGITS ? text[i] : '0';
                if (i == exponent && i + 1 < n)
                        *out++ = '.';
        }
        *out = '\0';
        return (size_t) (out - buf);
}

double figure_round(double value)
{
        char buf[FIGURE_SIZE];

        if (!isfinite(value))
                return value;
        (void) figure_format(buf, value);
        return strtod(buf, NULL);
}

double figure_round_beside(double value, double limit)
{
        double rounded = figure_round(value);

        if ((value < limit) == (rounded < limit) || !isfinite(value))
                return rounded;
        /* One in the last digit; below a power of ten, that of the numbers below it. */
        double size = fabs(rounded) * (value < limit ? 1 - 1e-9 : 1);
        double step = pow(10, floor(log10(size)) - (DIGITS - 1));
        return figure_round(value < limit ? rounded - step : rounded + step);
}
