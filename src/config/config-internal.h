/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the configuration room: the list of faults, the table of sections, and who calls whom. */
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
void config_fault(Faults *faults, int error, const char *origin, const char *format, ...)
        __attribute__((format(printf, 4, 5)));

/* Writes "FILE:LINE" (LINE 0: "FILE"); of a long name the end is kept, since that is what differs. */
void origin_set(ConfigOrigin origin, const char *file, unsigned line);

/* VALUE for a message: cut at a character's border when it is long. */
#define QUOTED_SIZE 96
const char *config_quoted(char buf[QUOTED_SIZE], const char *value);

/* Writes NAMES into BUF, separated by commas. */
void list_names(char *buf, size_t size, const char *const *names, size_t n);

/* The entry of NAMES nearest to WORD in typing errors, NULL when none is near. */
const char *config_nearest(const char *word, const char *const *names, size_t n);

/* ---- sections and their parameters ---- */

typedef enum Section {
        SECTION_HTTP,
        SECTION_SAMPLING,
        SECTION_LIMITS,
        SECTION_SCHEDULE,
        SECTION_GUARD,
        SECTION_HISTORY,
        SECTION_PUBLISH,
        SECTION_PROFILE,
        SECTION_TARGET,
        _SECTION_MAX,
} Section;

typedef struct SectionRow {
        const char *name;
        bool named;    /* [profile NAME]: one for each Profile or TargetConfig, else the one of Config */
        size_t offset; /* of the parameters' struct in Config, when not named */
        const Parameter *(*parameter)(size_t index); /* in that struct; NULL past the end */
} SectionRow;

extern const SectionRow config_sections[_SECTION_MAX];

/* More than any section has. */
#define SECTION_MAX_PARAMETERS 16

/* The index of the parameter NAME in SECTION, or of the end. */
size_t section_find(Section section, const char *name);

/* What a section without a name sets. */
void *section_base(Section section, Config *config);

/* Whether it may be set several times in a file, each adding to the ones before it, as listen does. */
bool parameter_adds(const Parameter *parameter);

/* Where TARGET keeps the place that PARAMETER of it was set at; NULL: it does not. */
ConfigOrigin *parameter_origin(const Parameter *parameter, TargetConfig *target);

/* ---- kinds of text that only configurations have ---- */

extern const ParameterType type_path;   /* char *: absolute; see path_normalize() */
extern const ParameterType type_device; /* char *: auto or a block device */
extern const ParameterType type_name;   /* char[NAME_SIZE] */
extern const ParameterType type_hosts;  /* char *: lower case, separated by one space each */
extern const ParameterType type_listen; /* of a Config: adds to its addresses; clearing forgets them all */

/* An absolute path without control characters, in UTF-8, less doubled slashes, "." parts and a slash at the
 * end. -EINVAL with WHY. */
int path_normalize(const char *value, char **ret, char why[WHY_SIZE]);

/* ---- reading ---- */

typedef struct Loader {
        Config *config;
        Faults *faults;

        /* Where the parameters of unnamed sections were set; empty: nowhere. */
        ConfigOrigin origins[_SECTION_MAX][SECTION_MAX_PARAMETERS];

        ConfigOrigin profile_origins[CONFIG_MAX_PROFILES]; /* of the last section of each; empty: built in */

        /* Of the file being read. */
        const char *file;
        /* Set in this file, in this section when that is named. */
        bool seen[_SECTION_MAX][SECTION_MAX_PARAMETERS];
        bool seen_profiles[CONFIG_MAX_PROFILES], seen_targets[CONFIG_MAX_TARGETS];
} Loader;

/* Reads one file into loader->config; faults are noted, not returned. With MAY_WAIT it may be a pipe. */
void loader_read_file(Loader *loader, const char *file, bool may_wait);

/* Checks what was read as a whole, and fills in what follows from it; faults are noted. */
void loader_settle(Loader *loader, bool need_targets);
