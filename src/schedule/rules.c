/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of schedule and guards, and the two forms of text that only they have. Pure. */

#include "tierprobe/schedule.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/units.h"

#include <errno.h>
#include <string.h>

/* ---- a window of the day ---- */

/* "HH:MM" at *P as minutes after midnight. */
static int take_time(const char **p, uint16_t *ret)
{
        unsigned digits[4];
        static const unsigned char at[4] = { 0, 1, 3, 4 };

        for (size_t i = 0; i < 4; i++) {
                char c = (*p)[at[i]];
                if (c < '0' || c > '9' || (i == 1 && (*p)[2] != ':'))
                        return -EINVAL;
                digits[i] = (unsigned) (c - '0');
        }
        unsigned hours = digits[0] * 10 + digits[1], minutes = digits[2] * 10 + digits[3];
        if (minutes > 59 || hours > 24 || (hours == 24 && minutes > 0))
                return -ERANGE;
        *p += 5;
        *ret = (uint16_t) (hours * 60 + minutes);
        return 0;
}

static int parse_window(const Parameter *parameter, void *field, const char *text, char why[WHY_SIZE])
{
        uint16_t start = 0, end = 0;
        const char *p = text;

        (void) parameter;
        int r = take_time(&p, &start);
        if (r < 0)
                return r;
        if (*p++ != '-')
                return -EINVAL;
        r = take_time(&p, &end);
        if (r < 0)
                return r;
        if (*p)
                return -EINVAL;
        start %= 24 * 60; /* 24:00 is the end of a day, and so the start of the next */
        end %= 24 * 60;
        if (start == end) {
                (void) snprintf(why, WHY_SIZE, "it starts when it ends; leave it out to allow the whole day");
                return -EINVAL;
        }
        *(ScheduleWindow *) field = (ScheduleWindow){ .set = true, .start_min = start, .end_min = end };
        return 0;
}

static void print_window(const Parameter *parameter, const void *field, FILE *out)
{
        const ScheduleWindow *window = field;

        (void) parameter;
        (void) fprintf(out, "%02u:%02u-%02u:%02u", window->start_min / 60U, window->start_min % 60U,
                       window->end_min / 60U, window->end_min % 60U);
}

static const ParameterType type_window = { "HH:MM-HH:MM", sizeof(ScheduleWindow), parse_window, print_window,
                                           NULL };

/* ---- what must stay free ---- */

static int parse_min_free(const Parameter *parameter, void *field, const char *text, char why[WHY_SIZE])
{
        MinFree min_free = { 0 };
        char number[32];
        size_t length = strlen(text);
        double percent = 0;

        (void) parameter;
        (void) why;
        if (length < 1 || text[length - 1] != '%') {
                int r = parse_size(text, &min_free.bytes);
                if (r < 0)
                        return r;
        } else {
                if (length > sizeof number)
                        return -EINVAL;
                memcpy(number, text, length - 1);
                number[length - 1] = '\0';
                int r = parse_number(number, &percent);
                if (r < 0)
                        return r;
                if (percent < 0 || percent > 99)
                        return -ERANGE;
                min_free.ratio = percent / 100;
        }
        *(MinFree *) field = min_free;
        return 0;
}

static void print_min_free(const Parameter *parameter, const void *field, FILE *out)
{
        const MinFree *min_free = field;
        char buf[FORMAT_SIZE];

        (void) parameter;
        if (min_free->ratio > 0)
                (void) fprintf(out, "%s%%", format_number(buf, min_free->ratio * 100));
        else
                (void) fputs(format_size(buf, min_free->bytes), out);
}

static const ParameterType type_min_free = { "SIZE", sizeof(MinFree), parse_min_free, print_min_free, NULL };

/* ---- the tables ---- */

/* Ten years: far beyond any sense, and far from where nanoseconds overflow. */
#define LONGEST_NS (3650 * NS_PER_DAY)

#define RULE(member) offsetof(ScheduleRules, member)
#define GUARD(member) offsetof(GuardRules, member)

static const Parameter schedule_parameters[] = {
        { "interval", &parameter_duration, RULE(interval_ns), .min = NS_PER_S, .max = LONGEST_NS,
          .unset = "never", .right = "never, or a duration from 1s to 3650d, such as 24h" },
        { "jitter", &parameter_duration, RULE(jitter_ns), .max = LONGEST_NS, .unset = "none",
          .right = "a duration from 0s to 3650d, such as 1h" },
        { "window", &type_window, RULE(window), .unset = "none",
          .right = "HH:MM-HH:MM in local time, such as 01:00-05:00, or none" },
        { "catch_up", &parameter_bool, RULE(catch_up), .right = "yes or no" },
        { "together", &parameter_bool, RULE(together), .right = "yes or no" },
};

static const Parameter guard_parameters[] = {
        { "cooldown", &parameter_duration, GUARD(cooldown_ns), .max = LONGEST_NS, .unset = "none",
          .right = "a duration from 0s to 3650d, such as 10m" },
        { "daily_write_budget", &parameter_size, GUARD(daily_write_budget_bytes), .max = UINT64_MAX,
          .unset = "none", .right = "a size such as 100G, or none" },
        { "min_free", &type_min_free, GUARD(min_free),
          .right = "a size such as 10G, or a part of the file system such as 5%" },
        { "max_foreign_mb_per_s", &parameter_number, GUARD(max_foreign_mb_per_s), .low = 0, .high = 1e6,
          .unset = "none", .right = "a number of MB/s from 0 to 1000000, or none" },
        { "abort_foreign_mb_per_s", &parameter_number, GUARD(abort_foreign_mb_per_s), .low = 0, .high = 1e6,
          .unset = "none", .right = "a number of MB/s from 0 to 1000000, or none" },
        { "abort_io_pressure", &parameter_number, GUARD(abort_io_pressure), .low = 0, .high = 100,
          .unset = "none", .right = "a percentage from 0 to 100, such as 20, or none" },
        { "max_duration", &parameter_duration, GUARD(max_duration_ns), .min = NS_PER_S,
          .max = 31 * NS_PER_DAY, .right = "a duration from 1s to 31d, such as 10m",
          .help = "judge what was measured after so long" },
};

const Parameter *schedule_parameter(size_t index)
{
        return index < ELEMENTSOF(schedule_parameters) ? &schedule_parameters[index] : NULL;
}

const Parameter *guard_parameter(size_t index)
{
        return index < ELEMENTSOF(guard_parameters) ? &guard_parameters[index] : NULL;
}
