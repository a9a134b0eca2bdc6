/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a configuration as a file that reads back to the same. Knows base. */

#include "config-internal.h"

#include "tierprobe/units.h"

#include <inttypes.h>

static void print_value(FILE *out, const Key *key, const char *value)
{
        (void) fprintf(out, "%s = %s\n", key->name, value);
}

/* A whole number, or the key's word where 0 means "not set". */
static void print_scaled(FILE *out, const Key *key, uint64_t value,
                         const char *(*format)(char buf[FORMAT_SIZE], uint64_t value))
{
        char buf[FORMAT_SIZE];

        print_value(out, key, value == 0 && key->unset ? key->unset : format(buf, value));
}

static const char *format_u64(char buf[FORMAT_SIZE], uint64_t value)
{
        (void) snprintf(buf, FORMAT_SIZE, "%" PRIu64, value);
        return buf;
}

static void print_window(FILE *out, const Key *key, const ScheduleRules *rules)
{
        unsigned start = rules->window_start_min, end = rules->window_end_min;

        if (!rules->has_window)
                print_value(out, key, key->unset);
        else
                (void) fprintf(out, "%s = %02u:%02u-%02u:%02u\n", key->name, start / 60, start % 60, end / 60,
                               end % 60);
}

static void print_min_free(FILE *out, const Key *key, const GuardRules *guard)
{
        char number[32];

        if (guard->min_free_ratio > 0)
                (void) fprintf(out, "%s = %s%%\n", key->name,
                               number_format(number, guard->min_free_ratio * 100));
        else
                print_scaled(out, key, guard->min_free_bytes, format_size);
}

static void print_listen(FILE *out, const Key *key, const Config *config)
{
        for (size_t i = 0; i < config->n_listen; i++)
                print_value(out, key, config->listen[i]);
}

static void print_text(FILE *out, const Key *key, const char *text)
{
        if (text || key->unset)
                print_value(out, key, text ? text : key->unset);
}

static void print_key(FILE *out, const Key *key, const void *base)
{
        const void *at = (const char *) base + key->offset;
        char number[32];

        switch (key->type) {
        case KEY_DURATION:
                print_scaled(out, key, *(const uint64_t *) at, format_duration);
                return;
        case KEY_SIZE:
                print_scaled(out, key, *(const uint64_t *) at, format_size);
                return;
        case KEY_COUNT:
                print_scaled(out, key, *(const uint64_t *) at, format_u64);
                return;
        case KEY_STREAMS:
                print_scaled(out, key, *(const unsigned *) at, format_u64);
                return;
        case KEY_NUMBER:
                print_value(out, key,
                            key->unset && !(*(const double *) at > 0)
                                    ? key->unset
                                    : number_format(number, *(const double *) at));
                return;
        case KEY_BOOL:
                print_value(out, key, *(const bool *) at ? "yes" : "no");
                return;
        case KEY_FILE:
        case KEY_HOSTS:
        case KEY_PATH:
        case KEY_DEVICE:
                print_text(out, key, *(char *const *) at);
                return;
        case KEY_PATTERN:
                print_value(out, key, pattern_name(*(const ProbePattern *) at));
                return;
        case KEY_WINDOW:
                print_window(out, key, at);
                return;
        case KEY_MIN_FREE:
                print_min_free(out, key, at);
                return;
        case KEY_LISTEN:
                print_listen(out, key, base);
                return;
        }
}

static void print_section(FILE *out, Section section, const char *name, const void *base)
{
        (void) fprintf(out, section == 0 ? "[%s%s%s]\n" : "\n[%s%s%s]\n", section_names[section],
                       name ? " " : "", name ? name : "");
        for (size_t i = 0; i < N_KEYS; i++)
                if (keys[i].section == section)
                        print_key(out, &keys[i], base);
}

void config_print(const Config *config, FILE *out)
{
        for (Section section = 0; section < _SECTION_MAX; section++)
                if (!section_is_named(section))
                        print_section(out, section, NULL, config);
        for (size_t i = 0; i < config->n_profiles; i++)
                print_section(out, SECTION_PROFILE, config->profiles[i].name, &config->profiles[i]);
        for (size_t i = 0; i < config->n_targets; i++)
                print_section(out, SECTION_TARGET, config->targets[i].name, &config->targets[i]);
}
