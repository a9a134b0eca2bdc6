/* SPDX-License-Identifier: Apache-2.0 */
/* The keys that a configuration may have, and their values. Knows base. */

#include "config-internal.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/text.h"
#include "tierprobe/units.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

const char *const section_names[_SECTION_MAX] = {
        [SECTION_HTTP] = "http",         [SECTION_SAMPLING] = "sampling", [SECTION_LIMITS] = "limits",
        [SECTION_SCHEDULE] = "schedule", [SECTION_GUARD] = "guard",       [SECTION_PROFILE] = "profile",
        [SECTION_TARGET] = "target",
};

/* Ten years: far beyond any sense, and far from where nanoseconds overflow. */
#define LONGEST_NS (3650 * NS_PER_DAY)

const Key keys[] = {
        { SECTION_HTTP, KEY_LISTEN, "listen", .right = "ADDR:PORT, [ADDR]:PORT or unix:/path" },
        { SECTION_HTTP, KEY_FILE, "token_file", offsetof(Config, token_file), .unset = "none",
          .right = "an absolute path, or none" },
        { SECTION_HTTP, KEY_HOSTS, "allowed_hosts", offsetof(Config, allowed_hosts), .unset = "none",
          .right = "host names separated by spaces or commas, or none" },
        { SECTION_HTTP, KEY_FILE, "tls_cert", offsetof(Config, tls_cert), .unset = "none",
          .right = "an absolute path, or none" },
        { SECTION_HTTP, KEY_FILE, "tls_key", offsetof(Config, tls_key), .unset = "none",
          .right = "an absolute path, or none" },

        { SECTION_SAMPLING, KEY_DURATION, "interval", offsetof(Config, sample_interval_ns),
          .min = 100 * NS_PER_MS, .max = 60 * NS_PER_S, .right = "a duration from 100ms to 1m, such as 1s" },
        { SECTION_SAMPLING, KEY_DURATION, "history", offsetof(Config, history_ns), .min = 60 * NS_PER_S,
          .max = 31 * NS_PER_DAY, .right = "a duration from 1m to 31d, such as 1d" },

        { SECTION_LIMITS, KEY_NUMBER, "write_mb_per_s", offsetof(Config, limits.write_mb_per_s), .low = 0.001,
          .high = 1e6, .right = "a number of MB/s from 0.001 to 1000000, such as 600" },
        { SECTION_LIMITS, KEY_NUMBER, "w_await_ms", offsetof(Config, limits.w_await_ms), .low = 0.001,
          .high = 1e6, .right = "a number of milliseconds from 0.001 to 1000000, such as 20" },
        { SECTION_LIMITS, KEY_NUMBER, "pass_ratio", offsetof(Config, limits.pass_ratio), .low = 0, .high = 1,
          .right = "a number from 0 to 1, such as 0.90" },

        { SECTION_SCHEDULE, KEY_DURATION, "interval", offsetof(Config, schedule.interval_ns), .min = NS_PER_S,
          .max = LONGEST_NS, .unset = "never",
          .right = "never, or a duration from 1s to 3650d, such as 24h" },
        { SECTION_SCHEDULE, KEY_DURATION, "jitter", offsetof(Config, schedule.jitter_ns), .max = LONGEST_NS,
          .unset = "none", .right = "a duration from 0s to 3650d, such as 1h" },
        { SECTION_SCHEDULE, KEY_WINDOW, "window", offsetof(Config, schedule), .unset = "none",
          .right = "HH:MM-HH:MM in local time, such as 01:00-05:00, or none" },
        { SECTION_SCHEDULE, KEY_BOOL, "catch_up", offsetof(Config, schedule.catch_up), .right = "yes or no" },

        { SECTION_GUARD, KEY_DURATION, "cooldown", offsetof(Config, guard.cooldown_ns), .max = LONGEST_NS,
          .unset = "none", .right = "a duration from 0s to 3650d, such as 10m" },
        { SECTION_GUARD, KEY_SIZE, "daily_write_budget", offsetof(Config, guard.daily_write_budget_bytes),
          .max = UINT64_MAX, .unset = "none", .right = "a size such as 100G, or none" },
        { SECTION_GUARD, KEY_MIN_FREE, "min_free", offsetof(Config, guard),
          .right = "a size such as 10G, or a part of the file system such as 5%" },
        { SECTION_GUARD, KEY_NUMBER, "max_foreign_mb_per_s", offsetof(Config, guard.max_foreign_mb_per_s),
          .low = 0, .high = 1e6, .unset = "none", .right = "a number of MB/s from 0 to 1000000, or none" },
        { SECTION_GUARD, KEY_DURATION, "max_duration", offsetof(Config, guard.max_duration_ns),
          .min = NS_PER_S, .max = 31 * NS_PER_DAY, .right = "a duration from 1s to 31d, such as 10m" },

        { SECTION_PROFILE, KEY_SIZE, "block_size", offsetof(Profile, block_size), .min = PROBE_BLOCK_MIN,
          .max = PROBE_BLOCK_MAX, .multiple = PROBE_BLOCK_MIN,
          .right = "a size from 4K to 64M, a multiple of 4096, such as 1M" },
        { SECTION_PROFILE, KEY_COUNT, "count", offsetof(Profile, count), .min = 1, .max = 1000000000,
          .right = "a number of blocks from 1 to 1000000000, such as 10000" },
        { SECTION_PROFILE, KEY_STREAMS, "streams", offsetof(Profile, streams), .min = 1,
          .max = PROBE_MAX_STREAMS, .right = "a number of writers from 1 to 128" },
        { SECTION_PROFILE, KEY_PATTERN, "pattern", offsetof(Profile, pattern), .right = "zero or random" },
        { SECTION_PROFILE, KEY_DURATION, "duration", offsetof(Profile, duration_ns), .min = NS_PER_S,
          .max = 31 * NS_PER_DAY, .unset = "none",
          .right = "a duration from 1s to 31d, such as 10m, or none: count blocks" },

        { SECTION_PROFILE, KEY_BOOL, "ramp", offsetof(Profile, ramp),
          .right = "yes (1, 2, 4, ... up to streams writers) or no" },

        { SECTION_TARGET, KEY_PATH, "path", offsetof(TargetConfig, path),
          .right = "the absolute path of an existing directory, such as /db2/cache" },
        { SECTION_TARGET, KEY_DEVICE, "device", offsetof(TargetConfig, device),
          .right = "auto, or a block device such as nvme0n1, /dev/sdb or mapper/data" },
};

size_t key_find(Section section, const char *name)
{
        for (size_t i = 0; i < N_KEYS; i++)
                if (keys[i].section == section && strcmp(keys[i].name, name) == 0)
                        return i;
        return N_KEYS;
}

bool name_is_valid(const char *name)
{
        size_t length = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-");

        return length > 0 && length < NAME_SIZE && name[length] == '\0' && name[0] != '.';
}

static const char *const pattern_names[_PATTERN_MAX] = {
        [PATTERN_ZERO] = "zero", [PATTERN_RANDOM] = "random"
};

const char *pattern_name(ProbePattern pattern)
{
        return pattern_names[pattern];
}

const char *number_format(char buf[32], double value)
{
        (void) snprintf(buf, 32, "%.15g", value);
        return buf;
}

/* Fifteen digits are what a double holds for certain: rounded to them, a number can be printed and read
 * back to the very same. */
double number_round(double value)
{
        char buf[32];

        (void) parse_double(number_format(buf, value), &value);
        return value;
}

/* The field of BASE, a struct that the table's offset fits. */
static void *field(const Key *key, void *base)
{
        return (char *) base + key->offset;
}

static int replace_text(char **at, char *text)
{
        free(*at);
        *at = text;
        return 0;
}

/* A whole number within the key's bounds. R is what its parser said. */
static int set_u64(const Key *key, void *base, int r, uint64_t value)
{
        if (r < 0)
                return r == -ERANGE ? -ERANGE : -EINVAL;
        if (value < key->min || value > key->max)
                return -ERANGE;
        if (key->multiple && value % key->multiple != 0)
                return -EINVAL;
        if (key->type == KEY_STREAMS)
                *(unsigned *) field(key, base) = (unsigned) value;
        else
                *(uint64_t *) field(key, base) = value;
        return 0;
}

static int set_number(const Key *key, void *base, const char *value)
{
        double number = 0;

        int r = parse_double(value, &number);
        if (r < 0)
                return r;
        number = number_round(number);
        if (number < key->low || number > key->high)
                return -ERANGE;
        *(double *) field(key, base) = number;
        return 0;
}

static int set_pattern(const Key *key, void *base, const char *value)
{
        for (int i = 0; i < _PATTERN_MAX; i++)
                if (strcmp(value, pattern_names[i]) == 0) {
                        *(ProbePattern *) field(key, base) = (ProbePattern) i;
                        return 0;
                }
        return -EINVAL;
}

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

static int set_window(ScheduleRules *rules, const char *value, char why[WHY_SIZE])
{
        uint16_t start = 0, end = 0;
        const char *p = value;

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
        rules->has_window = true;
        rules->window_start_min = start;
        rules->window_end_min = end;
        return 0;
}

static int set_min_free(GuardRules *guard, const char *value)
{
        char number[32];
        size_t length = strlen(value);
        uint64_t bytes = 0;
        double percent = 0;
        int r = 0;

        if (length < 1 || value[length - 1] != '%') {
                r = parse_size(value, &bytes);
                if (r < 0)
                        return r;
                guard->min_free_bytes = bytes;
                guard->min_free_ratio = 0;
                return 0;
        }
        if (length > sizeof number)
                return -EINVAL;
        memcpy(number, value, length - 1);
        number[length - 1] = '\0';
        r = parse_double(number, &percent);
        if (r < 0)
                return r;
        percent = number_round(percent);
        if (percent < 0 || percent > 99)
                return -ERANGE;
        guard->min_free_ratio = percent / 100;
        guard->min_free_bytes = 0;
        return 0;
}

static int set_device(TargetConfig *target, const char *value, char why[WHY_SIZE])
{
        size_t length = strlen(value);

        if (length == 0 || length > 255 || strpbrk(value, " \t") || strstr(value, "..") ||
            !utf8_is_valid(value, length))
                return -EINVAL;
        if (value[0] == '/' && strncmp(value, "/dev/", 5) != 0) {
                (void) snprintf(why, WHY_SIZE, "a device's path begins with /dev/");
                return -EINVAL;
        }
        char *device = strdup(value);
        return device ? replace_text(&target->device, device) : -ENOMEM;
}

static int set_path(char **at, const char *value, char why[WHY_SIZE])
{
        char *path = NULL;

        int r = path_normalize(value, &path, why);
        return r < 0 ? r : replace_text(at, path);
}

static int set_hosts(char **at, const char *value, char why[WHY_SIZE])
{
        char *hosts = NULL;

        int r = hosts_normalize(value, &hosts, why);
        return r < 0 ? r : replace_text(at, hosts);
}

static int set_value(const Key *key, void *base, const char *value, char why[WHY_SIZE])
{
        uint64_t whole = 0;
        int r = 0;

        switch (key->type) {
        case KEY_DURATION:
                r = parse_duration(value, &whole);
                return set_u64(key, base, r, whole);
        case KEY_SIZE:
                r = parse_size(value, &whole);
                return set_u64(key, base, r, whole);
        case KEY_COUNT:
        case KEY_STREAMS:
                r = parse_u64(value, &whole);
                return set_u64(key, base, r, whole);
        case KEY_NUMBER:
                return set_number(key, base, value);
        case KEY_BOOL:
                return parse_bool(value, field(key, base));
        case KEY_FILE:
        case KEY_PATH:
                return set_path(field(key, base), value, why);
        case KEY_PATTERN:
                return set_pattern(key, base, value);
        case KEY_WINDOW:
                return set_window(field(key, base), value, why);
        case KEY_MIN_FREE:
                return set_min_free(field(key, base), value);
        case KEY_LISTEN:
                return listen_add(base, value, why);
        case KEY_HOSTS:
                return set_hosts(field(key, base), value, why);
        case KEY_DEVICE:
                return set_device(base, value, why);
        }
        return -EINVAL;
}

/* The key's word for "not set". */
static void unset_value(const Key *key, void *base)
{
        switch (key->type) {
        case KEY_DURATION:
        case KEY_SIZE:
        case KEY_COUNT:
                *(uint64_t *) field(key, base) = 0;
                return;
        case KEY_NUMBER:
                *(double *) field(key, base) = 0;
                return;
        case KEY_FILE:
        case KEY_HOSTS:
                (void) replace_text(field(key, base), NULL);
                return;
        case KEY_WINDOW:
                ((ScheduleRules *) field(key, base))->has_window = false;
                return;
        case KEY_STREAMS:
        case KEY_BOOL:
        case KEY_PATTERN:
        case KEY_MIN_FREE:
        case KEY_LISTEN:
        case KEY_PATH:
        case KEY_DEVICE:
                return; /* none of these has such a word */
        }
}

int key_set(const Key *key, void *base, const char *value, char why[WHY_SIZE])
{
        why[0] = '\0';
        if (key->unset && strcmp(value, key->unset) == 0) {
                unset_value(key, base);
                return 0;
        }
        int r = set_value(key, base, value, why);
        if (r == -ERANGE && !why[0])
                (void) snprintf(why, WHY_SIZE, "out of range");
        return r == -ERANGE ? -EINVAL : r;
}
