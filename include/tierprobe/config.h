/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration: what the files, drop-ins and options say, checked. Fills in the parameters of verdict,
 * schedule, run and history, whose types are theirs. Knows those, base and inih. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tierprobe/address.h"
#include "tierprobe/history.h"
#include "tierprobe/profile.h"
#include "tierprobe/schedule.h"
#include "tierprobe/verdict.h"

#define CONFIG_FILE_DEFAULT "/etc/tierprobe/tierprobed.conf"
#define STATE_DIR_DEFAULT "/var/lib/tierprobe"
#define LISTEN_DEFAULT "127.0.0.1:7620"
#define CONFIG_MAX_TARGETS 64
#define CONFIG_MAX_PROFILES 32
#define CONFIG_MAX_LISTEN 16
#define CONFIG_MAX_FAULTS 20
#define CONFIG_MAX_FILE_BYTES (UINT64_C(1) << 20)
#define CONFIG_MAX_DROP_INS 256

/* Where a value came from, for messages: "FILE:LINE", "--path". */
typedef char ConfigOrigin[320];

typedef struct TargetConfig {
        char name[NAME_SIZE];
        char *path;              /* absolute, UTF-8, no control characters, no "." parts or doubled slashes */
        char *device;            /* "auto" or a device's name */
        char profile[NAME_SIZE]; /* the official one: its runs decide the target's verdict */
        uint64_t confirm_ns;     /* after how long a fail that follows a pass is tested once more; 0: never */
        ConfigOrigin origin;     /* of path */
        ConfigOrigin profile_origin; /* of profile; empty: it is the default */
} TargetConfig;

#define OFFICIAL_PROFILE_DEFAULT "procedure"

typedef struct Config {
        Address listen[CONFIG_MAX_LISTEN]; /* port 1..65535 */
        size_t n_listen;
        char *allowed_hosts;                   /* lower case, separated by one space each; NULL none */
        char *token_file, *tls_cert, *tls_key; /* NULL: not set */
        uint64_t sample_interval_ns;           /* 100 ms .. 1 m */
        uint64_t history_ns;                   /* how long samples are kept */
        Limits limits;
        ScheduleRules schedule;
        GuardRules guard;
        HistoryRules keep;
        char *feature_file;                    /* where the standing verdicts are published; NULL: nowhere */
        Profile profiles[CONFIG_MAX_PROFILES]; /* [0] is "procedure" */
        size_t n_profiles;
        TargetConfig targets[CONFIG_MAX_TARGETS];
        size_t n_targets;
} Config;

/* What the command line says; NULL: not given. It wins over files. */
typedef struct ConfigOptions {
        const char *file;        /* NULL: CONFIG_FILE_DEFAULT, which may be missing when there is a path */
        const char *path;        /* one target named "cache" in place of the files' targets; made absolute */
        const char *listen;      /* in place of the files' addresses; several separated by commas or spaces */
        const char *runtime_dir; /* where nothing else is said, a socket tierprobed.sock in it is listened on,
                                    too */
} ConfigOptions;

/* Reads the file, its drop-ins (FILE.d/NAME.conf in the order of their names), and the options on top; fills
 * in defaults and checks everything that can be checked without touching a path. A later file wins key by
 * key; within one file a key (but for listen) and a named section may stand only once.
 *
 * Returns 0; -EINVAL with one line in RET_ERROR for each fault found (the first CONFIG_MAX_FAULTS), each of
 * the form "FILE:LINE: what is wrong; what would be right"; -ENOENT and the errno of opening or reading with
 * "FILE: ..."; -ENOMEM. RET_ERROR is set on failure only, then always (NULL when memory ran out), and owned
 * by the caller. Config is owned by the caller, config_free(). */
int config_load(const ConfigOptions *options, Config **ret, char **ret_error);

/* The same for `tierprobe run`: only [limits], [guard] and [profile] matter, no target is needed, and the
 * default file may be missing. */
int config_load_without_targets(const ConfigOptions *options, Config **ret, char **ret_error);

/* Whether the same options can be loaded again: not when the file was a pipe or a terminal. */
bool config_can_be_reread(const ConfigOptions *options);

Config *config_free(Config *config);
void config_freep(Config **config);

/* Prints the configuration in force as a file that config_load() reads back to the same. */
void config_print(const Config *config, FILE *out);

const Profile *config_find_profile(const Config *config, const char *name);
const TargetConfig *config_find_target(const Config *config, const char *name);

/* How many samples a ring must hold for history_ns: 2..10,000,000. */
uint64_t config_ring_capacity(const Config *config);
