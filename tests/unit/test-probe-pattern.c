/* Random blocks: nothing in them comes again, at any distance, and no byte value is preferred. */

#include "../../src/probe/pattern.h"

#include "tierprobe/cleanup.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BLOCK (256 * 1024)
#define N_BLOCKS 8

static int compare(const void *a, const void *b)
{
        uint64_t x, y;

        memcpy(&x, a, sizeof x);
        memcpy(&y, b, sizeof y);
        return x < y ? -1 : x > y;
}

static unsigned char *make_blocks(size_t n)
{
        static PatternSource source;
        unsigned char *blocks = aligned_alloc(4096, n * BLOCK);

        assert_non_null(blocks);
        assert_int_equal(pattern_seed(&source), 0);
        for (size_t i = 0; i < n; i++)
                pattern_fill(&source, blocks + i * BLOCK, BLOCK);
        return blocks;
}

/* Whoever compresses or deduplicates looks for bytes seen before. In 2 MiB, 8 equal bytes at any two places
 * have a chance of 1 in 10 million: then there is nothing to find. */
static void test_nothing_repeats(void **state)
{
        _cleanup_free_ unsigned char *blocks = make_blocks(N_BLOCKS);
        size_t n = (size_t) N_BLOCKS * BLOCK - 7;
        _cleanup_free_ uint64_t *windows = malloc(n * sizeof *windows);

        (void) state;
        assert_non_null(windows);
        for (size_t i = 0; i < n; i++)
                memcpy(&windows[i], blocks + i, sizeof windows[i]);
        qsort(windows, n, sizeof *windows, compare);
        for (size_t i = 1; i < n; i++)
                assert_true(windows[i] != windows[i - 1]);
}

/* Entropy coding lives on uneven frequencies. 255 degrees of freedom: 400 has a chance of 1 in 10^8. */
static void test_bytes_are_even(void **state)
{
        _cleanup_free_ unsigned char *blocks = make_blocks(N_BLOCKS);
        size_t counts[256] = { 0 }, n = (size_t) N_BLOCKS * BLOCK;
        double expected = (double) n / 256, chi_squared = 0;

        (void) state;
        for (size_t i = 0; i < n; i++)
                counts[blocks[i]]++;
        for (size_t i = 0; i < 256; i++)
                chi_squared += ((double) counts[i] - expected) * ((double) counts[i] - expected) / expected;
        assert_true(chi_squared < 400);
}

static void test_seeds_differ(void **state)
{
        _cleanup_free_ unsigned char *a = make_blocks(1);
        _cleanup_free_ unsigned char *b = make_blocks(1);

        (void) state;
        for (size_t i = 0; i < BLOCK; i += 4096)
                assert_memory_not_equal(a + i, b + i, 4096);
}

static void test_names(void **state)
{
        ProbePattern pattern = _PATTERN_MAX;

        (void) state;
        assert_string_equal(probe_pattern_to_string(PATTERN_ZERO), "zero");
        assert_int_equal(probe_pattern_from_string("random", &pattern), 0);
        assert_int_equal(pattern, PATTERN_RANDOM);
        assert_int_equal(probe_pattern_from_string("Zero", &pattern), -EINVAL);
        assert_int_equal(pattern, PATTERN_RANDOM);
        assert_null(probe_pattern_to_string(_PATTERN_MAX));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_nothing_repeats),
                cmocka_unit_test(test_bytes_are_even),
                cmocka_unit_test(test_seeds_differ),
                cmocka_unit_test(test_names),
        };

        return cmocka_run_group_tests_name("probe-pattern", tests, NULL, NULL);
}
