/* SPDX-License-Identifier: Apache-2.0 */
/* How many seeds a property test goes through: a hundredth of a second a seed is minutes where each
 * instruction is looked at. TIERPROBE_SEEDS_DIVISOR says that it is enough to go through a part of them.
 * Touches nothing. */
#pragma once

#include <stdlib.h>

/* N, or what is left of it, at least 5. */
static inline unsigned seeds_of(unsigned n)
{
        const char *text = getenv("TIERPROBE_SEEDS_DIVISOR"); /* NOLINT(concurrency-mt-unsafe): one thread */
        unsigned divisor = text ? (unsigned) strtoul(text, NULL, 10) : 1;

        if (divisor > 1)
                n /= divisor;
        return n < 5 ? 5 : n;
}
