/* SPDX-License-Identifier: Apache-2.0 */
/* Printed numbers: read by hand, because a long capture is mostly numbers and strtod() would be most of the
 * time, and because the decimal point may be a comma whatever our own locale says. */

#include "number.h"

#include <string.h>

bool number_parse(const char *text, size_t size, unsigned digits, Number *ret)
{
        const char *p = text, *end = text + size;
        bool negative = false, any = false, huge = false;
        int64_t value = 0;
        unsigned decimals = 0, kept = 0;

        if (p < end && (*p == '-' || *p == '+'))
                negative = *p++ == '-';
        for (; p < end && *p >= '0' && *p <= '9'; p++, any = true) {
                if (value > (INT64_MAX / 10 - 9))
                        huge = true;
                else
                        value = value * 10 + (*p - '0');
        }
        if (!any)
                return false;
        if (p < end && (*p == '.' || *p == ',')) {
                for (p++; p < end && *p >= '0' && *p <= '9'; p++, decimals++)
                        if (kept < digits && !huge) {
                                if (value > (INT64_MAX / 10 - 9))
                                        huge = true;
                                else
                                        value = value * 10 + (*p - '0');
                                kept++;
                        }
        }
        for (; kept < digits && !huge; kept++)
                if (__builtin_mul_overflow(value, INT64_C(10), &value))
                        huge = true;
        char suffix = '\0';
        if (p < end)
                suffix = *p++;
        if (p < end || (suffix && !strchr("sBkMGTP", suffix)))
                return false;
        *ret = (Number){ .value = huge       ? (negative ? INT64_MIN : INT64_MAX)
                                  : negative ? -value
                                             : value,
                         .decimals = decimals,
                         .suffix = suffix };
        return true;
}

double number_suffix_kb(char suffix)
{
        switch (suffix) {
        case 's':
                return 0.5;
        case 'B':
                return 1.0 / 1024;
        case 'k':
                return 1;
        case 'M':
                return 1024;
        case 'G':
                return 1024.0 * 1024;
        case 'T':
                return 1024.0 * 1024 * 1024;
        case 'P':
                return 1024.0 * 1024 * 1024 * 1024;
        default: /* not of sysstat's */
                return 0;
        }
}

int64_t number_scale(int64_t value, double factor)
{
        /* A multiple of 1024 of a printed number stays far below 2^53 unless it is absurd anyway. */
        double scaled = (double) value * factor;

        if (scaled >= 9e18)
                return INT64_MAX;
        if (scaled <= -9e18)
                return INT64_MIN;
        return llround(scaled);
}

double number_rounding(const Number *number)
{
        static const double half[] = { 0.5, 0.05, 0.005, 0.0005, 0.00005, 0.000005 };

        return half[number->decimals < 6 ? number->decimals : 5];
}
