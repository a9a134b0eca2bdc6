/* What the blocks contain. Knows the probe's header. */
#pragma once

#include "tierprobe/probe.h"

#define PATTERN_PAGE 4096
#define PATTERN_POOL (16 * 1024) /* fits the first-level cache beside what is written */

typedef uint64_t PatternVector __attribute__((vector_size(32)));

typedef struct PatternSource {
        PatternVector pool[(PATTERN_POOL + PATTERN_PAGE) / sizeof(PatternVector)];
        uint64_t state[2];
} PatternSource;

/* Seeds from the kernel, so that no two streams or runs write the same. Returns 0 or negative errno. */
int pattern_seed(PatternSource *source);

/* Fills SIZE bytes (a multiple of 4096) at BLOCK (aligned to 64) with bytes that do not compress and do not
 * come again. */
void pattern_fill(PatternSource *source, void *block, size_t size);
