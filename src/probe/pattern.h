/* What the blocks contain. Knows the probe's header. */
#pragma once

#include "tierprobe/probe.h"

typedef uint64_t Lanes __attribute__((vector_size(64)));

typedef struct PatternSource {
        Lanes lanes[2];
} PatternSource;

/* Seeds from the kernel, so that no two streams or runs write the same. Returns 0 or negative errno. */
int pattern_seed(PatternSource *source);

/* Fills SIZE bytes (a multiple of 4096) at BLOCK (aligned to 64) with bytes that do not compress and do not
 * come again. */
void pattern_fill(PatternSource *source, void *block, size_t size);
