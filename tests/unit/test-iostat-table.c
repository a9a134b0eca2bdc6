/* SPDX-License-Identifier: Apache-2.0 */
/* Tables: recorded and live rows of many devices. */

#include "iostat-testing.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_uptime(void **state)
{
        static const struct {
                const char *text;
                uint64_t cs;
        } good[] = {
                { "0.00 0.00\n", 0 },
                { "100.00 1.00\n", 10000 },
                { "12.34", 1234 },
                { "12.3 1", 1230 },
                { "12.349 1.00", 1234 },
                { "12\n", 1200 },
                { "7.\t1", 700 },
                { "1.00\r\n", 100 },
                { "4294967296.05 1", UINT64_C(429496729605) },
        };
        static const char *const bad[] = { "",
                                           " 1.00",
                                           "x",
                                           "-1.00",
                                           "+1.00",
                                           "1.00x",
                                           "1,00 1",
                                           "0x10 1",
                                           "18446744073.71 1",
                                           "99999999999999999999 1" };
        uint64_t cs = 7;

        (void) state;
        for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
                assert_int_equal(uptime_parse(good[i].text, &cs), 0);
                assert_true(cs == good[i].cs);
        }
        cs = 7;
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
                assert_int_equal(uptime_parse(bad[i], &cs), -EINVAL);
        assert_int_equal(cs, 7); /* untouched on failure */
}

static void test_parse(void **state)
{
        static const char text[] = "   8       0 sda 1 0 8 1 0 0 0 0 0 1 1\n"
                                   "\n"
                                   "   8       1 sda1 1 2 3 4\n"
                                   " 104       0 cciss/c0d0 2 0 8 1 0 0 0 0 0 1 1 0 0 0 0\n"
                                   "   0       0 nvme0c0n1 3 0 8 1 0 0 0 0 0 1 1 0 0 0 0 0 0";
        Snapshot when = { .mono_ns = 11, .boot_ns = 22, .bracket_ns = 3 };
        SnapshotTable table = { 0 };

        (void) state;
        assert_int_equal(snapshot_table_parse(&table, text, sizeof text - 1, &when), 0);
        assert_int_equal(table.n, 3);
        const NamedSnapshot *row = snapshot_table_find(&table, "cciss/c0d0", 0);
        assert_non_null(row);
        assert_int_equal(row->snapshot.counters.r_ios, 2);
        assert_int_equal(row->snapshot.counters.n_fields, 15);
        assert_int_equal(row->snapshot.major, 104);
        assert_int_equal(row->snapshot.mono_ns, 11);
        assert_int_equal(row->snapshot.boot_ns, 22);
        assert_int_equal(row->snapshot.bracket_ns, 3);
        assert_int_equal(row->snapshot.gap, GAP_NONE);
        for (size_t hint = 0; hint < 10; hint++) { /* a hint is only that */
                assert_ptr_equal(snapshot_table_find(&table, "cciss/c0d0", hint), row);
                assert_null(snapshot_table_find(&table, "sda1", hint));
        }
        snapshot_table_clear(&table);
        assert_null(snapshot_table_find(&table, "sda", 0));
        assert_int_equal(snapshot_table_parse(&table, "", 0, &when), 0);
        assert_int_equal(snapshot_table_parse(&table, "\n", 1, &when), -EINVAL);
        assert_int_equal(snapshot_table_parse(&table, "8 1 sda1 1 2 3 4\n", 17, &when), -EINVAL);
        assert_int_equal(table.n, 0);
        snapshot_table_done(&table);
        assert_null(table.rows);
}

static void test_long_name(void **state)
{
        SnapshotTable table = { 0 };
        Snapshot snapshot = { 0 };
        char name[DEVICE_NAME_SIZE + 1];

        (void) state;
        memset(name, 'x', sizeof name);
        name[DEVICE_NAME_SIZE] = '\0';
        assert_int_equal(snapshot_table_add(&table, name, &snapshot), -EINVAL);
        name[DEVICE_NAME_SIZE - 1] = '\0';
        assert_int_equal(snapshot_table_add(&table, name, &snapshot), 0);
        assert_non_null(snapshot_table_find(&table, name, 0));
        snapshot_table_done(&table);
}

static void test_live(void **state)
{
        SnapshotTable before = { 0 }, after = { 0 };

        (void) state;
        assert_int_equal(snapshot_table_read(&before, "/nonexistent"), -ENOENT);
        if (snapshot_table_read(&before, "/proc") < 0) {
                skip(); /* a container without diskstats */
                return;
        }
        assert_int_equal(snapshot_table_read(&after, "/proc"), 0);
        for (size_t i = 0; i < after.n; i++) {
                const NamedSnapshot *row = snapshot_table_find(&before, after.rows[i].name, i);
                Delta d;
                Gap gap = delta_compute(row ? &row->snapshot : NULL, &after.rows[i].snapshot, &d);
                if (row && row->snapshot.major == after.rows[i].snapshot.major && gap != GAP_NONE &&
                    gap != GAP_REPLACED && gap != GAP_RESET) /* others may take devices away meanwhile */
                        fail_msg("%s: %s", row->name, gap_to_string(gap));
        }
        snapshot_table_done(&before);
        snapshot_table_done(&after);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_uptime),
                cmocka_unit_test(test_parse),
                cmocka_unit_test(test_long_name),
                cmocka_unit_test(test_live),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
