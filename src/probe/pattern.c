/* SPDX-License-Identifier: Apache-2.0 */
/* Zeros, or bytes no storage can make less of: generated several times faster than devices write, so that
 * what is measured is the device. */

#include "pattern.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

const char *probe_pattern_to_string(ProbePattern pattern)
{
        switch (pattern) {
        case PATTERN_ZERO:
                return "zero";
        case PATTERN_RANDOM:
                return "random";
        case _PATTERN_MAX:
                break;
        }
        return NULL;
}

int probe_pattern_from_string(const char *text, ProbePattern *ret)
{
        for (ProbePattern pattern = 0; pattern < _PATTERN_MAX; pattern++)
                if (strcmp(text, probe_pattern_to_string(pattern)) == 0) {
                        *ret = pattern;
                        return 0;
                }
        return -EINVAL;
}

int pattern_seed(PatternSource *source)
{
        char *seed = (char *) source;

        /* At most 256 bytes at once are never interrupted. */
        for (size_t done = 0; done < sizeof *source; done += 256) {
                size_t size = sizeof *source - done < 256 ? sizeof *source - done : 256;
                if (getrandom(seed + done, size, 0) != (ssize_t) size)
                        return -EAGAIN;
        }
        source->state[0] |= 1; /* zero would stay zero */
        source->state[1] |= 1;
        return 0;
}

/* Marsaglia's xorshift64, period 2^64 - 1. */
static uint64_t advance(uint64_t *state)
{
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        return *state;
}

/* Each page is a piece of the random pool under a fresh 128-bit key. Two pages of the same piece differ in
 * nearly every byte, and no run of bytes is found again at any distance, which is what compression and
 * deduplication live on; and it costs one exclusive or to 16 bytes, close to what filling with zeros does. */
void pattern_fill(PatternSource *source, void *block, size_t size)
{
        PatternVector *out = __builtin_assume_aligned(block, 64);

        for (size_t n = size / PATTERN_PAGE; n > 0; n--) {
                PatternVector key = { advance(&source->state[0]), advance(&source->state[1]) };
                /* A piece may start at any 64th byte. */
                const PatternVector *piece =
                        source->pool + ((key[0] ^ key[1]) >> 32) % (PATTERN_POOL / 64) * 4;

                for (size_t i = 0; i < PATTERN_PAGE / sizeof *out; i += 4) {
                        out[i] = piece[i] ^ key;
                        out[i + 1] = piece[i + 1] ^ key;
                        out[i + 2] = piece[i + 2] ^ key;
                        out[i + 3] = piece[i + 3] ^ key;
                }
                out += PATTERN_PAGE / sizeof *out;
        }
}

void pattern_renew(PatternSource *source, void *block, size_t size)
{
        enum { SECTOR = 512, LINE = 64 };

        if (size < PATTERN_RENEW_MIN) {
                pattern_fill(source, block, size);
                return;
        }
        char *line = (char *) block + source->turn++ % (SECTOR / LINE) * LINE;
        for (size_t n = size / SECTOR; n > 0; n--, line += SECTOR) {
                PatternVector *out = __builtin_assume_aligned(line, LINE);
                uint64_t random = advance(&source->state[0]);
                PatternVector key = { random, random * UINT64_C(0x9e3779b97f4a7c15) };

                out[0] ^= key;
                out[1] ^= key;
                out[2] ^= key;
                out[3] ^= key;
        }
}
