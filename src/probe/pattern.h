/* SPDX-License-Identifier: Apache-2.0 */
/* What the blocks contain. Knows the probe's header. */
#pragma once

#include "tierprobe/probe.h"

#define PATTERN_PAGE 4096
#define PATTERN_POOL (16 * 1024) /* fits the first-level cache beside what is written */

typedef uint64_t PatternVector __attribute__((vector_size(16)));

typedef struct PatternSource {
        PatternVector pool[(PATTERN_POOL + PATTERN_PAGE) / sizeof(PatternVector)];
        uint64_t state[2];
        uint64_t turn; /* of pattern_renew() */
} PatternSource;

/* Seeds from the kernel, so that no two streams or runs write the same. Returns 0 or negative errno. */
int pattern_seed(PatternSource *source);

/* Fills SIZE bytes (a multiple of 4096) at BLOCK (aligned to 64) with bytes that do not compress and do not
 * come again. */
void pattern_fill(PatternSource *source, void *block, size_t size);

/* The same with what the last call of either left in BLOCK: of every 512 bytes the next 64 are made anew, so
 * that all are after eight calls. No sector comes again, and what is left of the last block lies SIZE bytes
 * back: farther than storage looks that compresses (128 KiB and less, ZFS at most its records' 1 MiB).
 * Smaller blocks are filled as a whole.
 *
 * It is not for the arithmetic, but for the cache: bytes that a driver has read on another processor are slow
 * to write. */
#define PATTERN_RENEW_MIN (UINT64_C(1) << 20)
void pattern_renew(PatternSource *source, void *block, size_t size);
