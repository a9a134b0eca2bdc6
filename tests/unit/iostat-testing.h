/* SPDX-License-Identifier: Apache-2.0 */
/* What the iostat room's tests share: a seeded generator and rows written as the kernel writes them. */
#pragma once

#include "tierprobe/iostat.h"

#include <inttypes.h>
#include <stdio.h>

/* xorshift64*: the same numbers everywhere, from a seed that a failing test prints. */
static inline uint64_t random_u64(uint64_t *state)
{
        *state ^= *state >> 12;
        *state ^= *state << 25;
        *state ^= *state >> 27;
        return *state * UINT64_C(2685821657736338717);
}

static inline uint64_t random_below(uint64_t *state, uint64_t n)
{
        return random_u64(state) % n;
}

/* Writes the first N of the 17 fields as sysfs does, from truths in 64 bit: milliseconds lose their upper
 * half here, as in the kernel. */
static inline size_t print_fields(char *buf, size_t size, const uint64_t truth[17], size_t n)
{
        size_t used = 0;

        for (size_t i = 0; i < n; i++) {
                bool ms = i == 3 || i == 7 || i == 9 || i == 10 || i == 14 || i == 16;
                used += (size_t) snprintf(buf + used, size - used, "%s%" PRIu64, i ? " " : "",
                                          ms ? truth[i] & UINT32_MAX : truth[i]);
        }
        return used;
}
