/* SPDX-License-Identifier: Apache-2.0 */
/* What a run's id and a name may be. */

#include "tierprobe/cleanup.h"
#include "tierprobe/profile.h"
#include "tierprobe/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
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

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_run_id),
                cmocka_unit_test(test_name),
                cmocka_unit_test(test_every_byte),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
