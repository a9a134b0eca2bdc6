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
        if (getrandom(source->lanes, sizeof source->lanes, 0) != (ssize_t) sizeof source->lanes)
                return -EAGAIN;
        source->lanes[0] |= 1; /* zero would stay zero */
        source->lanes[1] |= 1;
        return 0;
}

/* Marsaglia's xorshift64 (period 2^64 - 1) in lanes side by side: shifts and exclusive ors alone, since plain
 * SSE2 has no fast 64-bit multiplication. Two vectors, so that one's steps hide the other's latency. */
static inline void advance(Lanes *lanes)
{
        *lanes ^= *lanes << 13;
        *lanes ^= *lanes >> 7;
        *lanes ^= *lanes << 17;
}

void pattern_fill(PatternSource *source, void *block, size_t size)
{
        Lanes a = source->lanes[0], b = source->lanes[1];
        Lanes *out = __builtin_assume_aligned(block, sizeof(Lanes));

        for (size_t n = size / (2 * sizeof(Lanes)); n > 0; n--, out += 2) {
                advance(&a);
                advance(&b);
                out[0] = a;
                out[1] = b;
        }
        source->lanes[0] = a;
        source->lanes[1] = b;
}
