/* SPDX-License-Identifier: Apache-2.0 */
/* Counters: every width of row that kernels print, and everything they never would. */

#include "iostat-testing.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int parse(const char *text, Counters *ret)
{
        return counters_parse(text, strlen(text), ret);
}

static int parse_line(const char *line, DiskstatsRow *ret)
{
        return diskstats_parse_line(line, strlen(line), ret);
}

static void test_widths(void **state)
{
        uint64_t truth[17];
        char text[512] = "";

        (void) state;
        for (size_t i = 0; i < 17; i++)
                truth[i] = 101 + i;
        for (size_t n = 0; n <= 17; n++) {
                Counters c = { .n_fields = 99 };
                size_t size = print_fields(text, sizeof text, truth, n);
                int r = counters_parse(text, size, &c);
                assert_int_equal(r, n < 11 ? -EINVAL : 0);
                assert_int_equal(c.n_fields, n < 11 ? 99 : n < 15 ? 11 : n < 17 ? 15 : 17);
                if (n < 11)
                        continue;
                assert_int_equal(c.r_ios, 101);
                assert_int_equal(c.r_ms, 104);
                assert_int_equal(c.w_ios, 105);
                assert_int_equal(c.w_merges, 106);
                assert_int_equal(c.w_sectors, 107);
                assert_int_equal(c.w_ms, 108);
                assert_int_equal(c.in_flight, 109);
                assert_int_equal(c.io_ms, 110);
                assert_int_equal(c.queue_ms, 111);
                assert_int_equal(c.d_ios, n >= 15 ? 112 : 0);
                assert_int_equal(c.d_ms, n >= 15 ? 115 : 0);
                assert_int_equal(c.f_ios, n >= 17 ? 116 : 0);
                assert_int_equal(c.f_ms, n >= 17 ? 117 : 0);
        }
}

static void test_liberal(void **state)
{
        Counters c;

        (void) state;
        /* In flight with a sign, without one, wider milliseconds, 18 digits. */
        assert_int_equal(parse("1 2 3 4 5 6 7 8 -3 10 11", &c), 0);
        assert_int_equal(c.in_flight, -3);
        assert_int_equal(parse("1 2 3 4 5 6 7 8 4294967295 10 11", &c), 0);
        assert_int_equal(c.in_flight, -1);
        assert_int_equal(parse("1 2 3 4 5 6 7 4294967303 9 10 11", &c), 0);
        assert_int_equal(c.w_ms, 7);
        assert_int_equal(parse("999999999999999999 2 18446744073709551615 4 5 6 7 8 9 10 11", &c), 0);
        assert_true(c.r_ios == UINT64_C(999999999999999999));
        assert_true(c.r_sectors == UINT64_MAX);
        /* The blanks of sysfs, tabs, a carriage return, fields of kernels to come. */
        assert_int_equal(parse("       1\t2  3 4 5 6 7 8 9 10 11   \r\n", &c), 0);
        assert_int_equal(c.queue_ms, 11);
        assert_int_equal(parse("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 -19 new", &c), 0);
        assert_int_equal(c.f_ms, 17);
}

static void test_refused(void **state)
{
        static const char *const bad[] = {
                "",
                " ",
                "\n",
                "1",
                "1 2 3 4",
                "1 2 3 4 5 6 7 8 9 10",
                "1 2 3 4 5 6 7 8 9 10 x",
                "-1 2 3 4 5 6 7 8 9 10 11",
                "+1 2 3 4 5 6 7 8 9 10 11",
                "1 2 3 4 5 6 7 8 - 10 11",
                "1 2 3 4 5 6 7 8 --9 10 11",
                "1 2 3 4 5 6 7 -8 9 10 11",
                "1 2 3 4 5 6 7 8 9 10 1e3",
                "1 2 3 4 5 6 7 8 9 10 0x11",
                "1.0 2 3 4 5 6 7 8 9 10 11",
                "18446744073709551616 2 3 4 5 6 7 8 9 10 11",
                "1 2 3 4 5 6 7 8 9 10 11 twelve 13 14 15",
                "99999999999999999999999999999999999999999 2 3 4 5 6 7 8 9 10 11",
        };
        Counters c = { .r_ios = 7 };

        (void) state;
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
                assert_int_equal(parse(bad[i], &c), -EINVAL);
        assert_int_equal(counters_parse("1 2 3 4 5 6 7 8 9 10 11\0", 24, &c), -EINVAL);
        assert_int_equal(c.r_ios, 7); /* untouched on failure */
}

static void test_lines(void **state)
{
        DiskstatsRow row;

        (void) state;
        assert_int_equal(parse_line(" 259       0 nvme0n1 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17", &row),
                         0);
        assert_string_equal(row.name, "nvme0n1");
        assert_int_equal(row.major, 259);
        assert_int_equal(row.minor, 0);
        assert_int_equal(row.counters.n_fields, 17);
        assert_int_equal(parse_line("104 0 cciss/c0d0 1 2 3 4 5 6 7 8 9 10 11", &row), 0);
        assert_string_equal(row.name, "cciss/c0d0");
        assert_int_equal(parse_line("0\t0\tnvme0c0n1\t0 0 0 0 0 0 0 0 0 0 0\r", &row), 0);
        assert_int_equal(
                parse_line("8 0 a_name_that_takes_all_of_the_room_a_device_name_may_take_here_63_ 1 2 3 4 5 "
                           "6 7 8 9 10 11",
                           &row),
                -EINVAL);
        assert_int_equal(
                parse_line("8 0 a_name_that_takes_all_of_the_room_a_device_name_may_take_here63 1 2 3 4 5 6 "
                           "7 8 9 10 11",
                           &row),
                0);
        assert_int_equal(strlen(row.name), DEVICE_NAME_SIZE - 1);

        static const char *const bad[] = {
                "",
                "8",
                "8 0",
                "8 0 sda",
                "8 1 sda1 1 2 3 4",                                    /* a partition before 2.6.25 */
                "8 0 17921835 sda 1 2 3 4 5 6 7 8 9 10 11",            /* the layout of 2.4 */
                "-8 0 sda 1 2 3 4 5 6 7 8 9 10 11",                    /* */
                "8 4294967296 sda 1 2 3 4 5 6 7 8 9 10 11",            /* */
                "8 0 s\033[2Ja 1 2 3 4 5 6 7 8 9 10 11",               /* never to a terminal */
                "8 0 sd\303\244 1 2 3 4 5 6 7 8 9 10 11",              /* */
                "sda 8 0 1 2 3 4 5 6 7 8 9 10 11",                     /* */
                "8 0 sda 1 2 3 4 5 6 7 8 9 10 9999999999999999999999", /* */
        };
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
                assert_int_equal(parse_line(bad[i], &row), -EINVAL);
}

/* What was printed comes back, whatever the values and the width. */
static void test_round_trips(void **state)
{
        uint64_t seed = UINT64_C(20261130), rng = seed;

        (void) state;
        for (int i = 0; i < 20000; i++) {
                uint64_t truth[17];
                char text[512];

                for (size_t f = 0; f < 17; f++)
                        truth[f] = random_u64(&rng) >> random_below(&rng, 64);
                truth[8] &= UINT32_MAX;
                size_t n = 11 + random_below(&rng, 7);
                size_t size = print_fields(text, sizeof text, truth, n);
                Counters c;
                if (counters_parse(text, size, &c) != 0)
                        fail_msg("seed %" PRIu64 " case %d: %s", seed, i, text);
                bool d = n >= 15, f = n >= 17;
                uint64_t back[17] = { c.r_ios,     c.r_merges,  c.r_sectors,
                                      c.r_ms,      c.w_ios,     c.w_merges,
                                      c.w_sectors, c.w_ms,      (uint32_t) c.in_flight,
                                      c.io_ms,     c.queue_ms,  c.d_ios,
                                      c.d_merges,  c.d_sectors, c.d_ms,
                                      c.f_ios,     c.f_ms };
                for (size_t k = 0; k < 17; k++) {
                        bool ms = k == 3 || k == 7 || k == 9 || k == 10 || k == 14 || k == 16;
                        uint64_t wanted = ms ? (uint32_t) truth[k] : truth[k];
                        if ((k >= 11 && !d) || (k >= 15 && !f))
                                wanted = 0;
                        if (back[k] != wanted)
                                fail_msg("seed %" PRIu64 " case %d field %zu: %s", seed, i, k, text);
                }
        }
}

/* Any bytes, and any valid row with a byte changed or cut anywhere: an answer, and never a read outside
 * (the text is on the heap without a terminator, for the sanitizers to see). */
static void test_hostile(void **state)
{
        static const char row[] =
                "254 0 vda 33757 8949 3816578 8146 75893 10788 2657992 13680 0 7720 22830 1 2 3 4 5 6";
        uint64_t seed = 4711, rng = seed;
        int taken = 0, refused = 0;

        (void) state;
        for (int i = 0; i < 20000; i++) {
                size_t size = random_below(&rng, sizeof row);
                char *text = malloc(size ? size : 1);
                DiskstatsRow parsed;

                assert_non_null(text);
                memcpy(text, row, size);
                for (uint64_t k = random_below(&rng, 3); k > 0 && size > 0; k--)
                        text[random_below(&rng, size)] = (char) random_below(&rng, 256);
                int r = diskstats_parse_line(text, size, &parsed);
                assert_true(r == 0 || r == -EINVAL);
                *(r == 0 ? &taken : &refused) += 1;
                if (r == 0)
                        assert_true(strlen(parsed.name) > 0 && strlen(parsed.name) < sizeof parsed.name);
                free(text);
        }
        assert_true(taken > 100 && refused > 100);
}

/* Every row comes once and in order, whatever stands between; a text without an end is not read beyond. */
static void test_iterator(void **state)
{
        static const char row[] = "8 %d sd%d 1 2 3 4 5 6 7 8 9 10 11\n";
        static const char *const junk[] = { "", "\n", "8 0\n", "nonsense\n", "8 0 sda 1 2 3\n", "\r\n" };
        uint64_t seed = 815, rng = seed;

        (void) state;
        for (int i = 0; i < 2000; i++) {
                char text[2048];
                size_t size = 0, n_rows = random_below(&rng, 12);
                DiskstatsRow found;

                for (size_t j = 0; j < n_rows; j++) {
                        size += (size_t) sprintf(text + size, "%s", junk[random_below(&rng, 6)]);
                        size += (size_t) sprintf(text + size, row, (int) j, (int) j);
                }
                if (size > 0 && random_below(&rng, 2) == 0)
                        size--;                        /* the last newline is not needed */
                char *exact = malloc(size ? size : 1); /* for the sanitizer and valgrind */
                assert_non_null(exact);
                memcpy(exact, text, size);
                Diskstats rest = { .text = exact, .size = size };
                for (size_t j = 0; j < n_rows; j++) {
                        assert_true(diskstats_next(&rest, &found));
                        assert_int_equal(found.minor, j);
                        assert_int_equal(found.counters.queue_ms, 11);
                }
                assert_false(diskstats_next(&rest, &found));
                assert_int_equal(rest.size, 0);
                free(exact);
        }
}

static void test_names(void **state)
{
        char name[] = "cciss!c0d0";

        (void) state;
        name_to_diskstats(name);
        assert_string_equal(name, "cciss/c0d0");
        name_to_sysfs(name);
        assert_string_equal(name, "cciss!c0d0");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_widths),      cmocka_unit_test(test_liberal),
                cmocka_unit_test(test_refused),     cmocka_unit_test(test_lines),
                cmocka_unit_test(test_round_trips), cmocka_unit_test(test_hostile),
                cmocka_unit_test(test_iterator),    cmocka_unit_test(test_names),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
