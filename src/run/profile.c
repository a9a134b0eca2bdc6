/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of a profile, and what they amount to. Pure. */

#include "tierprobe/profile.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

bool name_is_valid(const char *text)
{
        size_t length = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-");

        return length > 0 && length < NAME_SIZE && text[length] == '\0' && text[0] != '.';
}

/* ---- the table ---- */

static int parse_pattern(const Parameter *parameter, void *field, const char *text, char why[WHY_SIZE])
{
        (void) parameter;
        (void) why;
        return probe_pattern_from_string(text, field);
}

static void print_pattern(const Parameter *parameter, const void *field, FILE *out)
{
        (void) parameter;
        (void) fputs(probe_pattern_to_string(*(const ProbePattern *) field), out);
}

static const ParameterType type_pattern = { "NAME", sizeof(ProbePattern), parse_pattern, print_pattern,
                                            NULL };

#define FIELD(member) offsetof(Profile, member)

static const Parameter profile_parameters[] = {
        { "block_size", &parameter_size, FIELD(block_size), .min = PROBE_BLOCK_MIN, .max = PROBE_BLOCK_MAX,
          .multiple = PROBE_BLOCK_MIN, .right = "a size from 4K to 64M, a multiple of 4096, such as 1M",
          .help = "bytes a write call" },
        { "count", &parameter_count, FIELD(count), .min = 1, .max = 1000000000,
          .right = "a number of blocks from 1 to 1000000000, such as 10000",
          .help = "blocks each stream writes" },
        { "streams", &parameter_unsigned, FIELD(streams), .min = 1, .max = PROBE_MAX_STREAMS,
          .right = "a number of writers from 1 to 128",
          .help = "parallel writers, each with a file of its own" },
        { "pattern", &type_pattern, FIELD(pattern), .right = "zero or random", .help = "zero or random" },
        { "duration", &parameter_duration, FIELD(duration_ns), .min = NS_PER_S, .max = 31 * NS_PER_DAY,
          .unset = "none", .right = "a duration from 1s to 31d, such as 10m, or none: count blocks",
          .help = "write for so long, whatever the count" },
        { "ramp", &parameter_bool, FIELD(ramp), .right = "yes (1, 2, 4, ... up to streams writers) or no" },
};

const Parameter *profile_parameter(size_t index)
{
        return index < ELEMENTSOF(profile_parameters) ? &profile_parameters[index] : NULL;
}

/* ---- those built in ---- */

#define MIB (UINT64_C(1) << 20)

static const Profile built_in[] = {
        { .name = "procedure", .block_size = MIB, .count = 10000, .streams = 1 },
        { .name = "quick", .block_size = MIB, .count = 1000, .streams = 1 },
        { .name = "random", .block_size = MIB, .count = 10000, .streams = 1, .pattern = PATTERN_RANDOM },
        { .name = "sustained",
          .block_size = MIB,
          .count = 10000,
          .streams = 1,
          .duration_ns = 600 * NS_PER_S },
        { .name = "ramp",
          .block_size = MIB,
          .count = 10000,
          .streams = 64,
          .duration_ns = 5 * NS_PER_S,
          .ramp = true },
};

const Profile *profile_built_in(size_t index)
{
        return index < ELEMENTSOF(built_in) ? &built_in[index] : NULL;
}

/* ---- what they amount to ---- */

bool profile_is_procedure(const Profile *profile)
{
        const Profile procedure = PROFILE_PROCEDURE;

        return profile->block_size == procedure.block_size && profile->count == procedure.count &&
               profile->streams == procedure.streams && profile->pattern == procedure.pattern &&
               profile->duration_ns == 0 && !profile->ramp;
}

static uint64_t saturating_mul(uint64_t a, uint64_t b)
{
        uint64_t product = 0;

        return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* A step of a ramp shares count among its streams, but each writes a block. */
static uint64_t step_bytes(const Profile *profile)
{
        uint64_t blocks = profile->count > profile->streams ? profile->count : profile->streams;

        return saturating_mul(profile->block_size, blocks);
}

static unsigned ramp_steps(const Profile *profile)
{
        unsigned steps = 1;

        for (unsigned streams = profile->streams; streams > 1; streams /= 2)
                steps++;
        return steps;
}

uint64_t profile_bytes(const Profile *profile)
{
        if (profile->ramp)
                return saturating_mul(step_bytes(profile), ramp_steps(profile));
        return saturating_mul(saturating_mul(profile->block_size, profile->count), profile->streams);
}

uint64_t profile_space_bytes(const Profile *profile)
{
        if (profile->ramp)
                return step_bytes(profile);
        /* The space of a file given up may become free only after the next one has grown. */
        return saturating_mul(profile_bytes(profile), profile->duration_ns > 0 ? 2 : 1);
}

static double mib(uint64_t bytes)
{
        return (double) bytes / 1048576;
}

void profile_describe_plan(char ret[PROFILE_PLAN_SIZE], const Profile *profile, double mb_per_s,
                           uint64_t max_duration_ns)
{
        double bytes_per_s = mb_per_s * 1000 * 1024, seconds = (double) profile_bytes(profile) / bytes_per_s;
        char duration[FORMAT_SIZE], limit[FORMAT_SIZE], end[64] = "", what[140];

        (void) format_duration(duration, profile->duration_ns);
        if (profile->ramp && profile->duration_ns > 0)
                (void) snprintf(
                        what, sizeof what, "writes up to %u steps of %.0f MiB or %s, at most %.0f MiB",
                        ramp_steps(profile), mib(step_bytes(profile)), duration, mib(profile_bytes(profile)));
        else if (profile->ramp)
                (void) snprintf(what, sizeof what, "writes up to %u steps of %.0f MiB, at most %.0f MiB",
                                ramp_steps(profile), mib(step_bytes(profile)), mib(profile_bytes(profile)));
        else if (profile->duration_ns > 0)
                (void) snprintf(what, sizeof what, "writes for %s, which is %.0f MiB at %.6g MB/s", duration,
                                (double) profile->duration_ns / 1e9 * bytes_per_s / 1048576, mb_per_s);
        else if (isfinite(seconds))
                (void) snprintf(what, sizeof what, "writes %.0f MiB, which takes %.0f s at %.6g MB/s",
                                mib(profile_bytes(profile)), ceil(seconds), mb_per_s);
        else
                (void) snprintf(what, sizeof what, "writes %.0f MiB", mib(profile_bytes(profile)));
        if (max_duration_ns > 0)
                (void) snprintf(end, sizeof end, "; ends after %s at the latest",
                                format_duration(limit, max_duration_ns));
        (void) snprintf(ret, PROFILE_PLAN_SIZE, "%s; %.0f MiB must be free%s", what,
                        mib(profile_space_bytes(profile)), end);
}
