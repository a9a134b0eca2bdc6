/* SPDX-License-Identifier: Apache-2.0 */
/* Text to values and back: sizes, durations, numbers. Locale never matters: strtod() is used only on text
 * that holds no decimal point, or the value is put together from digits. */

#include "tierprobe/units.h"

#include "tierprobe/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

/* Reads digits at *P, moves past them. */
static int take_u64(const char **p, uint64_t *ret)
{
        uint64_t value = 0;

        if (!is_digit(**p))
                return -EINVAL;
        for (; is_digit(**p); (*p)++)
                if (__builtin_mul_overflow(value, UINT64_C(10), &value) ||
                    __builtin_add_overflow(value, (uint64_t) (**p - '0'), &value))
                        return -ERANGE;
        *ret = value;
        return 0;
}

int parse_u64(const char *text, uint64_t *ret)
{
        uint64_t value = 0;

        int r = take_u64(&text, &value);
        if (r < 0)
                return r;
        if (*text)
                return -EINVAL;
        *ret = value;
        return 0;
}

int parse_double(const char *text, double *ret)
{
        const char *p = text;
        double value = 0;
        int exponent = 0;
        bool digits = false;

        if (*p == '-' || *p == '+')
                p++;
        for (; is_digit(*p); p++, digits = true)
                value = value * 10 + (*p - '0');
        if (*p == '.')
                for (p++; is_digit(*p); p++, digits = true, exponent--)
                        value = value * 10 + (*p - '0');
        if (!digits)
                return -EINVAL;
        if (*p == 'e' || *p == 'E') {
                uint64_t power = 0;
                bool negative = *++p == '-';

                if (*p == '-' || *p == '+')
                        p++;
                if (take_u64(&p, &power) < 0 || power > 400)
                        return -EINVAL;
                exponent += negative ? -(int) power : (int) power;
        }
        if (*p)
                return -EINVAL;
        /* Dividing by an exact power of ten rounds once, where multiplying by its inverse rounds twice. */
        value = exponent < 0 ? value / pow(10, -exponent) : value * pow(10, exponent);
        if (!isfinite(value))
                return -ERANGE;
        *ret = *text == '-' ? -value : value;
        return 0;
}

int parse_bool(const char *text, bool *ret)
{
        static const char *const yes[] = { "yes", "true", "on", "1" };
        static const char *const no[] = { "no", "false", "off", "0" };

        for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) {
                if (strcasecmp(text, yes[i]) == 0) {
                        *ret = true;
                        return 0;
                }
                if (strcasecmp(text, no[i]) == 0) {
                        *ret = false;
                        return 0;
                }
        }
        return -EINVAL;
}

/* Reads "12" or "12.25" at *P as WHOLE and FRACTION of a UNIT; the sum is exact to one. */
static int take_scaled(const char *digits, const char *end, uint64_t unit, uint64_t *ret)
{
        uint64_t whole = 0, fraction = 0;
        const char *p = digits;

        int r = take_u64(&p, &whole);
        if (r < 0)
                return r;
        if (__builtin_mul_overflow(whole, unit, &whole))
                return -ERANGE;
        if (p < end && *p == '.') {
                double part = 0, scale = 1;

                if (!is_digit(*++p))
                        return -EINVAL;
                for (; is_digit(*p); p++) {
                        scale /= 10;
                        part += (*p - '0') * scale;
                }
                fraction = (uint64_t) (part * (double) unit + 0.5);
        }
        if (p != end)
                return -EINVAL;
        if (__builtin_add_overflow(whole, fraction, ret))
                return -ERANGE;
        return 0;
}

/* The end of a number: digits and points. */
static const char *number_end(const char *p)
{
        while (is_digit(*p) || *p == '.')
                p++;
        return p;
}

int parse_size(const char *text, uint64_t *ret_bytes)
{
        static const char suffixes[] = "KMGTP";
        const char *end = number_end(text);
        const char *unit = end;
        uint64_t factor = 1, bytes = 0;

        if (*unit && *unit != 'B') {
                char upper = *unit == 'k' ? 'K' : *unit;
                const char *at = strchr(suffixes, upper);
                if (!at)
                        return -EINVAL;
                factor = UINT64_C(1) << (10 * (at - suffixes + 1));
                unit++;
                if (strcmp(unit, "iB") == 0)
                        unit += 2;
        }
        if (strcmp(unit, "B") == 0)
                unit++;
        if (*unit)
                return -EINVAL;
        int r = take_scaled(text, end, factor, &bytes);
        if (r < 0)
                return r;
        *ret_bytes = bytes;
        return 0;
}

typedef struct DurationUnit {
        const char *name;
        uint64_t ns;
} DurationUnit;

/* Falling, so that a later one in a text must stand further down. */
static const DurationUnit duration_units[] = {
        { "d", 24 * 3600 * NS_PER_S },
        { "h", 3600 * NS_PER_S },
        { "m", 60 * NS_PER_S },
        { "s", NS_PER_S },
        { "ms", NS_PER_MS },
        { "us", NS_PER_US },
        { "ns", 1 },
};
#define N_DURATION_UNITS (sizeof duration_units / sizeof duration_units[0])

int parse_duration(const char *text, uint64_t *ret_ns)
{
        uint64_t total = 0;
        size_t next_unit = 0;

        if (!*text)
                return -EINVAL;
        for (const char *p = text; *p;) {
                const char *end = number_end(p);
                size_t length = strcspn(end, "0123456789. ");
                uint64_t part = 0;
                size_t u = next_unit;

                while (u < N_DURATION_UNITS && !(strlen(duration_units[u].name) == length &&
                                                 strncmp(end, duration_units[u].name, length) == 0))
                        u++;
                if (u == N_DURATION_UNITS)
                        return -EINVAL;
                int r = take_scaled(p, end, duration_units[u].ns, &part);
                if (r < 0)
                        return r;
                if (__builtin_add_overflow(total, part, &total))
                        return -ERANGE;
                next_unit = u + 1;
                p = end + length;
                while (*p == ' ' && p[1])
                        p++;
        }
        *ret_ns = total;
        return 0;
}

const char *format_size(char buf[FORMAT_SIZE], uint64_t bytes)
{
        static const char suffixes[] = "KMGTP";
        size_t power = 0;

        while (bytes && power < sizeof suffixes - 1 && bytes % 1024 == 0) {
                bytes /= 1024;
                power++;
        }
        if (power)
                (void) snprintf(buf, FORMAT_SIZE, "%" PRIu64 "%c", bytes, suffixes[power - 1]);
        else
                (void) snprintf(buf, FORMAT_SIZE, "%" PRIu64, bytes);
        return buf;
}

const char *format_duration(char buf[FORMAT_SIZE], uint64_t ns)
{
        size_t at = 0;

        buf[0] = '\0';
        /* Days are left to the reader: "24h" is what configurations say. */
        for (size_t u = 1; u < N_DURATION_UNITS && at < FORMAT_SIZE; u++) {
                uint64_t part = ns / duration_units[u].ns;
                if (!part)
                        continue;
                ns %= duration_units[u].ns;
                at += (size_t) snprintf(buf + at, FORMAT_SIZE - at, "%" PRIu64 "%s", part,
                                        duration_units[u].name);
        }
        if (!at)
                (void) snprintf(buf, FORMAT_SIZE, "0s");
        return buf;
}

const char *format_number(char buf[FORMAT_SIZE], double value)
{
        (void) snprintf(buf, FORMAT_SIZE, "%.15g", value);
        return buf;
}

int parse_number(const char *text, double *ret)
{
        char buf[FORMAT_SIZE];
        double value = 0;

        int r = parse_double(text, &value);
        if (r < 0)
                return r;
        (void) parse_double(format_number(buf, value), &value);
        *ret = value + 0.0; /* of the two zeros the one without a sign */
        return 0;
}
