/* SPDX-License-Identifier: Apache-2.0 */
/* The grid of samples: what holds of the next tick, whenever one asks. */

#include "tierprobe/clock.h"
#include "tierprobe/iostat.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define SEED 20261206

static void test_in_time(void **state)
{
        uint64_t missed = 7;

        (void) state;
        assert_int_equal(tick_after(1000, 100, 1000, &missed), 1100);
        assert_int_equal(missed, 0);
        assert_int_equal(tick_after(1000, 100, 1099, &missed), 1100); /* late, but not by an interval */
        assert_int_equal(missed, 0);
        assert_int_equal(tick_after(1000, 100, 500, &missed), 1100); /* a little early */
        assert_int_equal(missed, 0);
        assert_int_equal(tick_after(1000, 100, 1000, NULL), 1100);
}

static void test_late(void **state)
{
        uint64_t missed = 7;

        (void) state;
        assert_int_equal(tick_after(1000, 100, 1100, &missed), 1200);
        assert_int_equal(missed, 1);
        assert_int_equal(tick_after(1000, 100, 1150, &missed), 1200);
        assert_int_equal(missed, 1);
        assert_int_equal(tick_after(1000, 100, 1151, &missed), 1300); /* 49 of 100 would be left */
        assert_int_equal(missed, 2);
        assert_int_equal(tick_after(1000, 1, 5000, &missed), 5001);
        assert_int_equal(missed, 4000);
}

static void test_at_random(void **state)
{
        (void) state;
        srandom(SEED);
        for (unsigned i = 0; i < 100000; i++) {
                uint64_t interval = (uint64_t) random() % (random() % 2 ? 10 : 60 * NS_PER_S) + 1;
                uint64_t tick = (uint64_t) random() * (uint64_t) (random() % 1000);
                uint64_t now = tick + (uint64_t) random() % (20 * interval), missed = 0;
                uint64_t next = tick_after(tick, interval, now, &missed);

                if (next <= now || (next - tick) % interval != 0 || next != tick + (missed + 1) * interval ||
                    next - now > interval + interval / 2)
                        fail_msg("seed %d, case %u", SEED, i);
                if (now - tick < interval)
                        assert_int_equal(missed, 0);
                else
                        assert_true(next - now >= interval / 2);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_in_time),
                cmocka_unit_test(test_late),
                cmocka_unit_test(test_at_random),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
