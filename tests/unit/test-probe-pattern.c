/* SPDX-License-Identifier: Apache-2.0 */
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

static int compare_sectors(const void *a, const void *b)
{
        return memcmp(a, b, 512);
}

/* Fills N blocks of SIZE as a writer does: each time the same memory. */
static unsigned char *make_renewed(size_t n, size_t size)
{
        static PatternSource source;
        unsigned char *block = aligned_alloc(4096, size);
        unsigned char *blocks = malloc(n * size);

        assert_non_null(block);
        assert_non_null(blocks);
        assert_int_equal(pattern_seed(&source), 0);
        pattern_fill(&source, block, size);
        for (size_t i = 0; i < n; i++) {
                pattern_renew(&source, block, size);
                memcpy(blocks + i * size, block, size);
        }
        free(block);
        return blocks;
}

/* No sector of any block is that of another, however deduplication aligns its chunks; the part of a block
 * that stays is told by its place alone, and after eight blocks none is left. */
static void test_renewed_sectors_never_repeat(void **state)
{
        const size_t size = 1 << 20, n = 17;
        _cleanup_free_ unsigned char *blocks = make_renewed(n, size);
        size_t kept = 0;

        (void) state;
        for (size_t i = 0; i + 64 <= size; i += 64) {
                kept += memcmp(blocks + i, blocks + size + i, 64) == 0;
                assert_memory_not_equal(blocks + i, blocks + 8 * size + i, 64);
        }
        assert_int_equal(kept, size / 64 * 7 / 8);
        qsort(blocks, n * size / 512, 512, compare_sectors);
        for (size_t i = 1; i < n * size / 512; i++)
                assert_memory_not_equal(blocks + (i - 1) * 512, blocks + i * 512, 512);
}

/* Within any stretch as long as a block, be it of two neighbours, no 8 bytes come again: nothing for a
 * compressor that looks back less than a block. A smaller block is as good as filled anew. */
static void test_renewed_windows_never_repeat(void **state)
{
        const size_t size = 1 << 20, part = size / 2 - 7;
        _cleanup_free_ unsigned char *blocks = make_renewed(10, size);
        _cleanup_free_ uint64_t *windows = malloc(size * sizeof *windows);

        (void) state;
        assert_non_null(windows);
        /* The second half of one and the first half of the next. */
        const unsigned char *begin = blocks + 8 * size + size / 2;
        for (size_t i = 0; i < 2 * part; i++)
                memcpy(&windows[i], begin + (i < part ? i : i - part + size / 2), sizeof windows[i]);
        qsort(windows, 2 * part, sizeof *windows, compare);
        for (size_t i = 1; i < 2 * part; i++)
                assert_true(windows[i] != windows[i - 1]);

        _cleanup_free_ unsigned char *small = make_renewed(16, 65536);
        for (size_t i = 0; i < size - 7; i++)
                memcpy(&windows[i], small + i, sizeof windows[i]);
        qsort(windows, size - 7, sizeof *windows, compare);
        for (size_t i = 1; i < size - 7; i++)
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
                cmocka_unit_test(test_renewed_sectors_never_repeat),
                cmocka_unit_test(test_renewed_windows_never_repeat),
                cmocka_unit_test(test_bytes_are_even),
                cmocka_unit_test(test_seeds_differ),
                cmocka_unit_test(test_names),
        };

        return cmocka_run_group_tests_name("probe-pattern", tests, NULL, NULL);
}
