/* SPDX-License-Identifier: Apache-2.0 */
/* The series of a run: bounded, evenly spaced, and no gap ever lost. */

#include "tierprobe/series.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static Reading at(uint64_t number)
{
        return (Reading){ .row.mono_ns = number };
}

/* Whatever was offered: at most CAPACITY kept, the first one among them, equal spacing by the stride. */
static void test_spacing(void **state)
{
        (void) state;
        srandom(1);
        for (int round = 0; round < 2000; round++) {
                size_t capacity = 4 + 2 * (size_t) (random() % 40);
                uint64_t offered = 1 + (uint64_t) (random() % 3000);
                Series series;

                assert_int_equal(series_init(&series, capacity), 0);
                for (uint64_t i = 0; i < offered; i++) {
                        Reading reading = at(i);
                        series_add(&series, &reading);
                        assert_true(series.n <= capacity);
                }
                assert_true(series.n >= 1);
                for (size_t i = 0; i < series.n; i++)
                        assert_int_equal(series.items[i].row.mono_ns, i * series.stride);
                /* The newest one is never further back than a stride. */
                assert_true(offered - 1 - series.items[series.n - 1].row.mono_ns < series.stride);
                /* More than half is used once it has been full. */
                if (offered > capacity)
                        assert_true(series.n >= capacity / 2);
                size_t wanted = 1 + (size_t) (random() % 10), before = series.n;
                series_thin(&series, wanted);
                if (before > wanted)
                        assert_true(series.n - 1 >= wanted);
                assert_true(series.n <= 2 * wanted + 1 || series.n <= 2);
                for (size_t i = 0; i < series.n; i++)
                        assert_int_equal(series.items[i].row.mono_ns, i * series.stride);
                series_done(&series);
        }
}

/* A caller who follows the stride himself has every offer kept, still evenly spaced. */
static void test_spaced(void **state)
{
        Series series;
        uint64_t now = 0;

        (void) state;
        assert_int_equal(series_init(&series, 64), 0);
        for (int i = 0; i < 1000; i++) {
                Reading reading = at(now);
                series_add_spaced(&series, &reading);
                assert_int_equal(series.items[series.n - 1].row.mono_ns, now);
                now += series.stride;
        }
        for (size_t i = 1; i < series.n; i++)
                assert_int_equal(series.items[i].row.mono_ns - series.items[i - 1].row.mono_ns,
                                 series.stride);
        series_done(&series);
}

/* One gap anywhere is still told, by its own snapshot or the next one kept, unless none came after it. */
static void test_gaps_stay(void **state)
{
        (void) state;
        srandom(2);
        for (int round = 0; round < 3000; round++) {
                uint64_t offered = 2 + (uint64_t) (random() % 500);
                uint64_t broken = (uint64_t) random() % offered;
                Series series;
                bool told = false;

                assert_int_equal(series_init(&series, 8), 0);
                for (uint64_t i = 0; i < offered; i++) {
                        Reading reading = at(i);
                        if (i == broken)
                                reading.row.gap = GAP_RESET;
                        series_add(&series, &reading);
                }
                for (size_t i = 0; i < series.n; i++)
                        told = told || series.items[i].row.gap == GAP_RESET;
                assert_true(told || (series.pending_gap == GAP_RESET &&
                                     broken > series.items[series.n - 1].row.mono_ns));
                series_done(&series);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_spacing), cmocka_unit_test(test_spaced),
                                            cmocka_unit_test(test_gaps_stay) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
