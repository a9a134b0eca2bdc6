/* The configuration: what the files, drop-ins and options say, checked. Knows base, inih, and the plain types
 * of probe, schedule and verdict. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tierprobe/probe.h"
#include "tierprobe/record.h"
#include "tierprobe/schedule.h"
#include "tierprobe/verdict.h"

#define CONFIG_FILE_DEFAULT "/etc/tierprobe/tierprobed.conf"
#define STATE_DIR_DEFAULT "/var/lib/tierprobe"
#define LISTEN_DEFAULT "127.0.0.1:7620"
#define CONFIG_MAX_TARGETS 64
#define CONFIG_MAX_PROFILES 32
#define CONFIG_MAX_LISTEN 16

/* Where a value came from, for messages: "FILE:LINE", "--path". */
typedef char ConfigOrigin[320];

typedef struct Profile {
        char name[NAME_SIZE];
        bool certifying;
        uint64_t block_size, count;
        unsigned streams;
        ProbePattern pattern;
        uint64_t duration_ns; /* > 0: writes for so long, whatever count says */
        ConfigOrigin origin;
} Profile;

typedef struct TargetConfig {
        char name[NAME_SIZE];
        char *path;          /* absolute */
        char *device;        /* "auto" or a device's name */
        ConfigOrigin origin; /* of path */
} TargetConfig;

typedef struct GuardRules {
        uint64_t cooldown_ns;              /* default 0 */
        uint64_t daily_write_budget_bytes; /* 0: no budget */
        uint64_t min_free_bytes;           /* beside the test's own bytes; default 0 */
        double min_free_ratio;             /* the same as a part of the file system; default 0.01 */
        double max_foreign_mb_per_s;       /* 0: no limit */
        uint64_t max_duration_ns;          /* default 10 min */
} GuardRules;

typedef struct Config {
        char *listen[CONFIG_MAX_LISTEN]; /* "ADDR:PORT", "[ADDR]:PORT", "unix:/path" */
        size_t n_listen;
        char *allowed_hosts;                   /* space separated; NULL none */
        char *token_file, *tls_cert, *tls_key; /* NULL: not set */
        uint64_t sample_interval_ns;           /* 100 ms .. 1 m */
        uint64_t history_ns;                   /* how long samples are kept */
        Limits limits;
        ScheduleRules schedule;
        GuardRules guard;
        Profile profiles[CONFIG_MAX_PROFILES]; /* [0] is "procedure" */
        size_t n_profiles;
        TargetConfig targets[CONFIG_MAX_TARGETS];
        size_t n_targets;
} Config;

/* What the command line says; NULL: not given. It wins over files. */
typedef struct ConfigOptions {
        const char *file; /* NULL: CONFIG_FILE_DEFAULT, which may be missing */
        const char *path; /* one target named "cache" in place of the files' targets */
        const char *listen;
} ConfigOptions;

/* Reads the file, its drop-ins (FILE.d/NAME.conf in the order of their names; a later one wins), and the
 * options on top; fills in defaults and checks everything that can be checked without touching a path.
 *
 * Returns 0, -EINVAL with one line in RET_ERROR for each fault found, each of the form "FILE:LINE: what is
 * wrong; what would be right" (owned by the caller, set only then), or another negative errno with the same
 * kind of text. Config is owned by the caller, config_free(). */
int config_load(const ConfigOptions *options, Config **ret, char **ret_error);

/* The same for `tierprobe run`: only [limits], [guard] and [profile] matter, no target is needed. */
int config_load_without_targets(const ConfigOptions *options, Config **ret, char **ret_error);

Config *config_free(Config *config);
void config_freep(Config **config);

/* Prints the configuration in force as a file that config_load() reads back to the same. */
void config_print(const Config *config, FILE *out);

const Profile *config_find_profile(const Config *config, const char *name);
const TargetConfig *config_find_target(const Config *config, const char *name);
uint64_t profile_bytes(const Profile *profile); /* block_size x count x streams, saturating */
