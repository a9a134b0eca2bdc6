/* SPDX-License-Identifier: Apache-2.0 */
/* The histogram against sorted arrays: within 1 %, however the values lie and however they are merged. */

#include "tierprobe/cleanup.h"
#include "tierprobe/histogram.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SEED UINT64_C(0x7ea9be57)
#define N_CASES 1500
#define N_VALUES_MAX 2000

static uint64_t next_random(uint64_t *state)
{
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        return *state;
}

/* Values as latencies are: any magnitude, clusters, repetitions, and the edges of buckets. */
static uint64_t random_value(uint64_t *state, unsigned shape)
{
        uint64_t r = next_random(state);

        switch (shape % 4) {
        case 0:
                return r >> (24 + r % 40);
        case 1:
                return 250000 + r % 1000;
        case 2:
                return (UINT64_C(1) << (r % 40)) + (r >> 32) % 3 - 1;
        default:
                return r % 97;
        }
}

static int compare(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

        return x < y ? -1 : x > y;
}

/* The nearest-rank quantile of a sorted array, and that the histogram's is it or at most 1 % above. */
static void check_quantile(const Histogram *histogram, const uint64_t *sorted, size_t n, size_t rank)
{
        uint64_t exact = sorted[rank - 1];
        uint64_t got = histogram_quantile_ns(histogram, (double) rank / (double) n);

        if (got < exact || (double) got > (double) exact * 1.01)
                fail_msg("rank %zu of %zu: exact %ju, got %ju", rank, n, (uintmax_t) exact, (uintmax_t) got);
}

static void check_histogram(const Histogram *histogram, uint64_t *values, size_t n, uint64_t *random)
{
        uint64_t sum = 0;

        qsort(values, n, sizeof *values, compare);
        for (size_t i = 0; i < n; i++)
                sum += values[i];
        assert_int_equal(histogram->count, n);
        assert_int_equal(histogram->min_ns, values[0]);
        assert_int_equal(histogram->max_ns, values[n - 1]);
        assert_int_equal(histogram->sum_ns, sum);
        assert_true(fabs(histogram_mean_ns(histogram) - (double) sum / (double) n) <= 1e-6 * (double) sum);
        assert_int_equal(histogram_quantile_ns(histogram, 1), values[n - 1]);
        check_quantile(histogram, values, n, 1);
        for (unsigned i = 0; i < 20; i++)
                check_quantile(histogram, values, n, 1 + next_random(random) % (n ? n : 1));
}

static void test_against_sorted(void **state)
{
        static uint64_t values[N_VALUES_MAX];
        static Histogram histogram;
        uint64_t random = SEED;

        (void) state;
        print_message("# seed %#jx\n", (uintmax_t) SEED);
        for (unsigned i = 0; i < N_CASES; i++) {
                size_t n = 1 + next_random(&random) % (i % 10 ? 100 : N_VALUES_MAX);

                memset(&histogram, 0, sizeof histogram);
                for (size_t j = 0; j < n; j++) {
                        values[j] = random_value(&random, i);
                        histogram_add(&histogram, values[j]);
                }
                check_histogram(&histogram, values, n, &random);
        }
}

/* Merging must be as if one histogram had taken all, bit by bit. */
static void test_merge(void **state)
{
        static uint64_t values[N_VALUES_MAX];
        static Histogram parts[5], all, merged;
        uint64_t random = SEED + 1;

        (void) state;
        for (unsigned i = 0; i < N_CASES; i++) {
                size_t n = 1 + next_random(&random) % 300;
                size_t n_parts = 1 + next_random(&random) % ELEMENTSOF(parts);

                memset(parts, 0, sizeof parts);
                memset(&all, 0, sizeof all);
                memset(&merged, 0, sizeof merged);
                for (size_t j = 0; j < n; j++) {
                        values[j] = random_value(&random, (unsigned) next_random(&random));
                        histogram_add(&all, values[j]);
                        histogram_add(&parts[next_random(&random) % n_parts], values[j]);
                }
                for (size_t j = 0; j < ELEMENTSOF(parts); j++)
                        histogram_merge(&merged, &parts[j]); /* some are empty */
                assert_memory_equal(&merged, &all, sizeof all);
                check_histogram(&merged, values, n, &random);
        }
}

static void test_edges(void **state)
{
        static Histogram histogram;

        (void) state;
        memset(&histogram, 0, sizeof histogram);
        assert_int_equal(histogram_quantile_ns(&histogram, 0.5), 0);
        assert_true(isnan(histogram_mean_ns(&histogram)));

        histogram_add(&histogram, 0);
        assert_int_equal(histogram.min_ns, 0);
        assert_int_equal(histogram.max_ns, 0);
        histogram_add(&histogram, 5);
        assert_int_equal(histogram.min_ns, 0); /* a real 0, not "empty" */
        assert_int_equal(histogram_quantile_ns(&histogram, 0), 0);
        assert_int_equal(histogram_quantile_ns(&histogram, -1), 0);
        assert_int_equal(histogram_quantile_ns(&histogram, (double) NAN), 0);
        assert_int_equal(histogram_quantile_ns(&histogram, 2), 5);

        /* Beyond the buckets: counted, and the maximum exact. */
        histogram_add(&histogram, (UINT64_C(1) << 40) - 1);
        assert_int_equal(histogram_quantile_ns(&histogram, 1), (UINT64_C(1) << 40) - 1);
        histogram_add(&histogram, UINT64_MAX / 2);
        assert_int_equal(histogram_quantile_ns(&histogram, 1), UINT64_MAX / 2);
        assert_int_equal(histogram.count, 4);
}

/* A whole number of values must not become the next one by rounding: 7 % of 100 are 7. */
static void test_exact_ranks(void **state)
{
        static Histogram histogram;

        (void) state;
        memset(&histogram, 0, sizeof histogram);
        for (uint64_t i = 1; i <= 100; i++)
                histogram_add(&histogram, i);
        for (uint64_t i = 1; i <= 100; i++)
                assert_int_equal(histogram_quantile_ns(&histogram, 0.01 * (double) i), i);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_against_sorted),
                cmocka_unit_test(test_merge),
                cmocka_unit_test(test_edges),
                cmocka_unit_test(test_exact_ranks),
        };

        return cmocka_run_group_tests_name("probe-histogram", tests, NULL, NULL);
}
