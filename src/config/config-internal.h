/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the configuration room: the list of faults, the table of keys, and who calls whom. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tierprobe/config.h"

/* ---- faults: collected, so that one start shows them all ---- */

typedef struct Faults {
        char *text; /* lines */
        size_t size;
        unsigned n, n_left_out;
        int error; /* of the first fault: what config_load() returns */
        bool out_of_memory;
} Faults;

/* Appends the line "ORIGIN: text" for ERROR (negative errno). */
void fault(Faults *faults, int error, const char *origin, const char *format, ...)
        __attribute__((format(printf, 4, 5)));

/* Writes "FILE:LINE" (LINE 0: "FILE"); of a long name the end is kept, since that is what differs. */
void origin_set(ConfigOrigin origin, const char *file, unsigned line);

/* VALUE for a message: cut at a character's border when it is long. */
#define QUOTED_SIZE 96
const char *quoted(char buf[QUOTED_SIZE], const char *value);

/* The entry of NAMES nearest to WORD in typing errors, NULL when none is near. */
const char *nearest(const char *word, const char *const *names, size_t n);

/* ---- sections and keys ---- */

typedef enum Section {
        SECTION_HTTP,
        SECTION_SAMPLING,
        SECTION_LIMITS,
        SECTION_SCHEDULE,
        SECTION_GUARD,
        SECTION_PROFILE,
        SECTION_TARGET,
        _SECTION_MAX,
} Section;

extern const char *const section_names[_SECTION_MAX];

static inline bool section_is_named(Section section)
{
        return section == SECTION_PROFILE || section == SECTION_TARGET;
}

typedef enum KeyType {
        KEY_DURATION, /* uint64_t ns; the word `none` (or `never`), where the key has one, is 0 */
        KEY_SIZE,     /* uint64_t bytes */
        KEY_COUNT,    /* uint64_t */
        KEY_STREAMS,  /* unsigned */
        KEY_NUMBER,   /* double */
        KEY_BOOL,     /* bool */
        KEY_FILE,     /* char *, an absolute path */
        KEY_PATTERN,  /* ProbePattern */
        KEY_WINDOW,   /* of ScheduleRules */
        KEY_MIN_FREE, /* of GuardRules */
        KEY_LISTEN,
        KEY_HOSTS,
        KEY_PATH,   /* of a TargetConfig */
        KEY_DEVICE, /* of a TargetConfig */
} KeyType;

typedef struct Key {
        Section section;
        KeyType type;
        const char *name;
        size_t offset;     /* in Config, Profile or TargetConfig */
        uint64_t min, max; /* of whole numbers */
        uint64_t multiple; /* that a whole number must be of; 0: any */
        double low, high;  /* of KEY_NUMBER */
        const char *unset; /* the word for "not set", NULL: there is none */
        const char *right; /* what a right value looks like */
} Key;

#define N_KEYS 27
extern const Key keys[N_KEYS];

/* The index of SECTION's key NAME, or N_KEYS. */
size_t key_find(Section section, const char *name);

/* Sets KEY of BASE (Config, Profile or TargetConfig as the section says) from VALUE.
 * 0, -ENOMEM, or -EINVAL with what is wrong in WHY when there is more to say than the key's `right`. */
#define WHY_SIZE 256
int key_set(const Key *key, void *base, const char *value, char why[WHY_SIZE]);

/* Adds the addresses in VALUE, separated by spaces or commas, to CONFIG->listen. */
int listen_add(Config *config, const char *value, char why[WHY_SIZE]);
void listen_clear(Config *config);

/* A list of host names, checked, in lower case, separated by one space each. */
int hosts_normalize(const char *value, char **ret, char why[WHY_SIZE]);

/* An absolute path without control characters, in UTF-8, less doubled slashes, "." parts and a slash at the
 * end. -EINVAL with WHY. */
int path_normalize(const char *value, char **ret, char why[WHY_SIZE]);

/* [A-Za-z0-9_.-]{1,63}, not starting with ".". */
bool name_is_valid(const char *name);

const char *number_format(char buf[32], double value);
double number_round(double value);
const char *pattern_name(ProbePattern pattern);

/* ---- reading ---- */

typedef struct Loader {
        Config *config;
        Faults *faults;
        ConfigOrigin key_origins[N_KEYS]; /* where keys of unnamed sections were set; empty: nowhere */

        ConfigOrigin profile_origins[CONFIG_MAX_PROFILES]; /* of the last section of each; empty: built in */

        /* Of the file being read. */
        const char *file;
        uint64_t seen_keys; /* bit for each key set in this file, in this section when that is named */
        bool seen_profiles[CONFIG_MAX_PROFILES], seen_targets[CONFIG_MAX_TARGETS];
} Loader;

_Static_assert(N_KEYS <= 64, "seen_keys has a bit for each key");

/* Reads one file into loader->config; faults are noted, not returned. */
void loader_read_file(Loader *loader, const char *file);
