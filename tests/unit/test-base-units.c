/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes, durations, numbers and times: exact, whole-text, and back again. */

#include "tierprobe/clock.h"
#include "tierprobe/units.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void test_size(void **state)
{
        uint64_t v = 7;

        (void) state;
        assert_int_equal(parse_size("1M", &v), 0);
        assert_int_equal(v, 1 << 20);
        assert_int_equal(parse_size("1.5G", &v), 0);
        assert_int_equal(v, UINT64_C(3) << 29);
        assert_int_equal(parse_size("4KiB", &v), 0);
        assert_int_equal(v, 4096);
        assert_int_equal(parse_size("512B", &v), 0);
        assert_int_equal(v, 512);
        v = 7;
        static const char *const bad[] = { "",     "M",   "-1",  "1 M",   "1MM", "1Mi", "1X",
                                           "0x10", "1.M", ".5M", "1..5M", "1e3", "١" };
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
                assert_int_equal(parse_size(bad[i], &v), -EINVAL);
        assert_int_equal(parse_size("99999999999999999999", &v), -ERANGE);
        assert_int_equal(parse_size("20000P", &v), -ERANGE);
        assert_int_equal(v, 7); /* untouched on failure */
}

static void test_duration(void **state)
{
        uint64_t v = 7;

        (void) state;
        assert_int_equal(parse_duration("20ms", &v), 0);
        assert_int_equal(v, 20 * NS_PER_MS);
        assert_int_equal(parse_duration("1h30m", &v), 0);
        assert_int_equal(v, 5400 * NS_PER_S);
        assert_int_equal(parse_duration("1.5s", &v), 0);
        assert_int_equal(v, 1500 * NS_PER_MS);
        assert_int_equal(parse_duration("0s", &v), 0);
        assert_int_equal(v, 0);
        v = 7;
        static const char *const bad[] = { "",     "1",   "s",   "1s1h", "1s1s", "-1s",
                                           "1sec", "1 s", "1s ", "1.s",  "1h 1" };
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
                assert_int_equal(parse_duration(bad[i], &v), -EINVAL);
        assert_int_equal(parse_duration("99999999999999999h", &v), -ERANGE);
        assert_int_equal(v, 7);
}

static void test_double(void **state)
{
        double v = 7;

        (void) state;
        assert_int_equal(parse_double("0.90", &v), 0);
        assert_true(v > 0.8999999 && v < 0.9000001);
        assert_int_equal(parse_double("-1.5e3", &v), 0);
        assert_true(v < -1499.99 && v > -1500.01);
        static const char *const bad[] = {
                "", ".", "nan", "inf", "0x1p3", "1,5", "1 ", "1e", "--1", "1.2.3"
        };
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
                assert_int_equal(parse_double(bad[i], &v), -EINVAL);
        assert_int_equal(parse_double("1e309", &v), -ERANGE);
}

static void test_round_trips(void **state)
{
        char buf[FORMAT_SIZE], time[RFC3339_SIZE];

        (void) state;
        srandom(20261130);
        for (int i = 0; i < 20000; i++) {
                uint64_t v = ((uint64_t) random() << 31 | (uint64_t) random()) >> (random() % 62);
                uint64_t back = 0;
                int64_t then = 0;

                if (random() % 2)
                        v = v >> 20 << 20;
                assert_int_equal(parse_size(format_size(buf, v), &back), 0);
                assert_int_equal(back, v);
                assert_int_equal(parse_duration(format_duration(buf, v), &back), 0);
                assert_int_equal(back, v);
                assert_int_equal(rfc3339_parse(rfc3339_format(time, (int64_t) v), &then), 0);
                assert_int_equal(then, (int64_t) (v / NS_PER_MS * NS_PER_MS));
        }
}

static void test_rfc3339(void **state)
{
        int64_t ns = 7;
        char buf[RFC3339_SIZE];

        (void) state;
        assert_int_equal(rfc3339_parse("2026-11-30T13:14:05.25Z", &ns), 0);
        assert_string_equal(rfc3339_format(buf, ns), "2026-11-30T13:14:05.250Z");
        assert_int_equal(rfc3339_parse("2026-11-30T15:14:05+02:00", &ns), 0);
        assert_string_equal(rfc3339_format(buf, ns), "2026-11-30T13:14:05.000Z");
        static const char *const bad[] = { "",
                                           "2026-11-30",
                                           "2026-11-30 13:14:05Z",
                                           "2026-11-30T13:14:05",
                                           "2026-13-30T13:14:05Z",
                                           "2026-11-30T13:14:05.Z",
                                           "2026-11-30T13:14:05Zx",
                                           "9999-11-30T13:14:05Z",
                                           "2026-11-30T13:14:05+25:00" };
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
                assert_int_equal(rfc3339_parse(bad[i], &ns), -EINVAL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_size),    cmocka_unit_test(test_duration),
                cmocka_unit_test(test_double),  cmocka_unit_test(test_round_trips),
                cmocka_unit_test(test_rfc3339),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
