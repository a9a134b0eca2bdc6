/* SPDX-License-Identifier: Apache-2.0 */
/* What a run's id and a name may be. */

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/profile.h"
#include "tierprobe/record.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_run_id(void **state)
{
        static const char *const bad[] = { "",       ".",        "..",
                                           "a.json", "a/b",      "a b",
                                           "a_b",    "\xc3\xa9", "012345678901234567890123" };

        (void) state;
        assert_true(run_id_is_valid("20261130T131405-7f3a9c"));
        assert_true(run_id_is_valid("01234567890123456789012"));
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_false(run_id_is_valid(bad[i]));
}

static void test_name(void **state)
{
        static const char *const bad[] = { "", ".", ".a", "..", "a/b", "a b", "\xc3\xa9" };
        char name[NAME_SIZE + 1];

        (void) state;
        assert_true(name_is_valid("cache"));
        assert_true(name_is_valid("-Az09_.-"));
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_false(name_is_valid(bad[i]));
        memset(name, 'x', sizeof name);
        name[NAME_SIZE] = '\0';
        assert_false(name_is_valid(name));
        name[NAME_SIZE - 1] = '\0';
        assert_true(name_is_valid(name));
}

/* Every byte by itself, so that nothing slips into a file's name or a URL. */
static void test_every_byte(void **state)
{
        static const char letters[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-";

        (void) state;
        for (int c = 1; c < 256; c++) {
                char text[] = { 'a', (char) c, '\0' };
                bool letter = strchr(letters, c) != NULL;

                assert_int_equal(run_id_is_valid(text), letter);
                assert_int_equal(name_is_valid(text), letter || c == '_' || c == '.');
        }
}

/* The time in an id is the one it was made at, to the second. */
static void test_id_time(void **state)
{
        static const char *const none[] = { "",
                                            "a",
                                            "20261130T131405",
                                            "20261130T131405x7f3a9c",
                                            "20261130-131405-7f3a9c",
                                            "20261330T131405-7f3a9c",
                                            "2026-1130T1314-7f3a9c" };
        int64_t time_ns = 0;

        (void) state;
        assert_int_equal(run_id_time("20261130T131405-7f3a9c", &time_ns), 0);
        assert_true(time_ns == INT64_C(1796044445) * (int64_t) NS_PER_S);
        srandom(5);
        for (int i = 0; i < 5000; i++) {
                int64_t at_ns = (int64_t) random() * 4 * (int64_t) NS_PER_S + random();
                char id[RUN_ID_SIZE];

                run_id_make(id, at_ns);
                assert_true(run_id_is_valid(id));
                assert_int_equal(run_id_time(id, &time_ns), 0);
                assert_true(time_ns == at_ns / (int64_t) NS_PER_S * (int64_t) NS_PER_S);
        }
        /* Many at once differ, and are in the order in which they were asked for. */
        char before[RUN_ID_SIZE] = "", id[RUN_ID_SIZE];
        for (int i = 0; i < 5000; i++) {
                run_id_make(id, INT64_C(1796044445) * (int64_t) NS_PER_S + i / 100 * (int64_t) NS_PER_MS);
                assert_true(strcmp(before, id) < 0);
                memcpy(before, id, sizeof id);
        }
        for (size_t i = 0; i < ELEMENTSOF(none); i++)
                assert_int_equal(run_id_time(none[i], &time_ns), -EINVAL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_run_id),
                cmocka_unit_test(test_name),
                cmocka_unit_test(test_every_byte),
                cmocka_unit_test(test_id_time),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
