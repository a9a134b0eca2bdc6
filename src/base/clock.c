/* SPDX-License-Identifier: Apache-2.0 */
/* Time: the kernel's clocks in nanoseconds, and RFC 3339 text. */

#include "tierprobe/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* 0000-01-01T00:00:00Z and 9999-12-31T23:59:59Z in seconds since the epoch; int64_t nanoseconds reach only
 * from 1677 to 2262, so these bound the parser alone. */
#define SECONDS_MIN INT64_C(-9223372036)
#define SECONDS_MAX INT64_C(9223372036)

uint64_t clock_ns(clockid_t clock)
{
        struct timespec ts = { 0 };

        (void) clock_gettime(clock, &ts);
        return (uint64_t) ts.tv_sec * NS_PER_S + (uint64_t) ts.tv_nsec;
}

const char *rfc3339_format(char buf[RFC3339_SIZE], int64_t real_ns)
{
        int64_t seconds = real_ns / (int64_t) NS_PER_S;
        int64_t rest_ns = real_ns % (int64_t) NS_PER_S;
        struct tm tm;

        if (rest_ns < 0) {
                rest_ns += (int64_t) NS_PER_S;
                seconds--;
        }
        (void) gmtime_r(&(time_t){ seconds }, &tm);
        (void) snprintf(buf, RFC3339_SIZE, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ",
                        (unsigned) (tm.tm_year + 1900) % 10000U, (unsigned) (tm.tm_mon + 1) % 100U,
                        (unsigned) tm.tm_mday % 100U, (unsigned) tm.tm_hour % 100U,
                        (unsigned) tm.tm_min % 100U, (unsigned) tm.tm_sec % 100U,
                        (unsigned) (rest_ns / (int64_t) NS_PER_MS) % 1000U);
        return buf;
}

/* Reads exactly N digits at *P and moves past them. */
static int take_digits(const char **p, int n, int *ret)
{
        int value = 0;

        for (int i = 0; i < n; i++) {
                char c = (*p)[i];
                if (c < '0' || c > '9')
                        return -EINVAL;
                value = value * 10 + (c - '0');
        }
        *p += n;
        *ret = value;
        return 0;
}

static int take_char(const char **p, char wanted)
{
        if (**p != wanted)
                return -EINVAL;
        (*p)++;
        return 0;
}

/* "Z", or "+hh:mm" / "-hh:mm" as seconds east of UTC. */
static int take_zone(const char **p, int *ret_offset_s)
{
        int hours = 0, minutes = 0;
        int sign = **p == '-' ? -1 : 1;

        if (take_char(p, 'Z') == 0) {
                *ret_offset_s = 0;
                return 0;
        }
        if (**p != '+' && **p != '-')
                return -EINVAL;
        (*p)++;
        if (take_digits(p, 2, &hours) < 0 || take_char(p, ':') < 0 || take_digits(p, 2, &minutes) < 0 ||
            hours > 23 || minutes > 59)
                return -EINVAL;
        *ret_offset_s = sign * (hours * 3600 + minutes * 60);
        return 0;
}

static int days_of_month(int year, int month)
{
        static const int days[12] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
        int leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

        return days[month - 1] + (month == 2 ? leap : 0);
}

int rfc3339_parse(const char *text, int64_t *ret_real_ns)
{
        const char *p = text;
        struct tm tm = { 0 };
        int64_t fraction_ns = 0;
        int offset_s = 0;

        if (take_digits(&p, 4, &tm.tm_year) < 0 || take_char(&p, '-') < 0 ||
            take_digits(&p, 2, &tm.tm_mon) < 0 || take_char(&p, '-') < 0 ||
            take_digits(&p, 2, &tm.tm_mday) < 0 || take_char(&p, 'T') < 0 ||
            take_digits(&p, 2, &tm.tm_hour) < 0 || take_char(&p, ':') < 0 ||
            take_digits(&p, 2, &tm.tm_min) < 0 || take_char(&p, ':') < 0 ||
            take_digits(&p, 2, &tm.tm_sec) < 0)
                return -EINVAL;
        if (tm.tm_mon < 1 || tm.tm_mon > 12 || tm.tm_mday < 1 ||
            tm.tm_mday > days_of_month(tm.tm_year, tm.tm_mon) || tm.tm_hour > 23 || tm.tm_min > 59 ||
            tm.tm_sec > 60)
                return -EINVAL;
        if (*p == '.') {
                int64_t unit_ns = (int64_t) NS_PER_S / 10;
                const char *digits = ++p;

                for (; *p >= '0' && *p <= '9' && p - digits < 9; p++, unit_ns /= 10)
                        fraction_ns += (*p - '0') * unit_ns;
                if (p == digits)
                        return -EINVAL;
        }
        if (take_zone(&p, &offset_s) < 0 || *p != '\0')
                return -EINVAL;

        tm.tm_year -= 1900;
        tm.tm_mon -= 1;
        int64_t seconds = (int64_t) timegm(&tm) - offset_s;
        if (seconds <= SECONDS_MIN || seconds >= SECONDS_MAX)
                return -EINVAL;
        *ret_real_ns = seconds * (int64_t) NS_PER_S + fraction_ns;
        return 0;
}
