/* SPDX-License-Identifier: Apache-2.0 */
/* What a run writes, and how: the parameters of the test under a name. Knows probe's bounds. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tierprobe/parameter.h"
#include "tierprobe/probe.h"

#define NAME_SIZE 64 /* of a target or profile */

/* Whether TEXT can be one: 1 to NAME_SIZE - 1 of [A-Za-z0-9_.-], not starting with ".". */
bool name_is_valid(const char *text);

typedef struct Profile {
        char name[NAME_SIZE];
        uint64_t block_size, count;
        unsigned streams;
        ProbePattern pattern;
        uint64_t duration_ns; /* > 0: writes for so long; a file then starts anew after count blocks */
        bool ramp; /* 1, 2, 4, ... up to streams writers, each step for duration or count blocks in all, until
                    * w_await reaches the limit */
} Profile;

/* The parameters of the documented dd, without a name. */
#define PROFILE_PROCEDURE \
        ((Profile){ .block_size = UINT64_C(1) << 20, .count = 10000, .streams = 1, .pattern = PATTERN_ZERO })

/* Those that there are without any configuration, by index; the first is the procedure. NULL past the end. */
const Profile *profile_built_in(size_t index);

/* Its parameters by index, NULL past the end. */
const Parameter *profile_parameter(size_t index);

/* Whether the parameters are those of PROFILE_PROCEDURE, whatever the name. */
bool profile_is_procedure(const Profile *profile);

/* What a run writes at most, of all streams and, in a ramp, all steps; of a test by time what it writes to a
 * file before it begins a fresh one. Saturating. */
uint64_t profile_bytes(const Profile *profile);

/* How much must be free for it. */
uint64_t profile_space_bytes(const Profile *profile);

#define PROFILE_PLAN_SIZE 240

/* Says what a run of it will write and take, for people who have yet to decide: "writes 10000 MiB, which
 * takes 18 s at 600 MB/s; 10000 MiB must be free; ends after 10m at the latest". MB_PER_S is the judge's
 * unit, wkB/s / 1000, of a rate to reckon with; MAX_DURATION_NS 0: no limit. */
void profile_describe_plan(char ret[PROFILE_PLAN_SIZE], const Profile *profile, double mb_per_s,
                           uint64_t max_duration_ns);
