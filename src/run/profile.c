/* SPDX-License-Identifier: Apache-2.0 */
/* What a profile's parameters amount to. Pure. */

#include "tierprobe/profile.h"

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

uint64_t profile_bytes(const Profile *profile)
{
        if (profile->ramp) {
                unsigned steps = 1;

                for (unsigned streams = profile->streams; streams > 1; streams /= 2)
                        steps++;
                return saturating_mul(step_bytes(profile), steps);
        }
        return saturating_mul(saturating_mul(profile->block_size, profile->count), profile->streams);
}

uint64_t profile_space_bytes(const Profile *profile)
{
        if (profile->ramp)
                return step_bytes(profile);
        /* The space of a file given up may become free only after the next one has grown. */
        return saturating_mul(profile_bytes(profile), profile->duration_ns > 0 ? 2 : 1);
}
