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

#define GROUP 3

bool number_parse_grouped(const char *text, size_t size, unsigned digits, char mark, Number *ret)
{
        char plain[64];
        size_t n = 0, in_group = 0;
        bool grouped = false, decimals = false;

        if (size >= sizeof plain)
                return false;
        for (size_t i = 0; i < size; i++) {
                bool digit = text[i] >= '0' && text[i] <= '9';

                if (!decimals && (text[i] == '.' || text[i] == ',') && text[i] != mark) {
                        if (in_group == 0 || in_group > GROUP || (grouped && in_group != GROUP))
                                return false;
                        grouped = true;
                        in_group = 0;
                        continue;
                }
                if (!digit && !decimals) { /* the whole part ends; a sign is before it */
                        if (grouped && in_group != GROUP)
                                return false;
                        decimals = n > 0;
                }
                in_group += digit;
                plain[n++] = text[i];
        }
        if (grouped && !decimals && in_group != GROUP)
                return false;
        return number_parse(plain, n, digits, ret);
}

bool number_may_be_grouped(const char *text, size_t size)
{
        const char *end = text + size, *p = text;

        while (p < end && *p >= '0' && *p <= '9')
                p++;
        size_t whole = (size_t) (p - text);
        if (whole == 0 || whole > GROUP || text[0] == '0' || p == end || (*p != '.' && *p != ','))
                return false;
        size_t rest = (size_t) (end - p) - 1;
        for (p++; p < end && *p >= '0' && *p <= '9'; p++)
                ;
        return rest == GROUP && p == end;
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
