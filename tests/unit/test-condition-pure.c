/* SPDX-License-Identifier: Apache-2.0 */
/* What is worked out of what was read: limits reached, differences, changes, limits of heat. */

#include "tierprobe/cleanup.h"
#include "tierprobe/condition.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SEED 20261204

static void test_reached(void **state)
{
        OwnLimits limits = { .n = 4,
                             .items = { { .kind = LIMIT_PROCESSORS, .value = 0.5 },
                                        { .kind = LIMIT_WRITE_BYTES, .value = 200e6 },
                                        { .kind = LIMIT_WRITE_BYTES, .value = 100e6 },
                                        { .kind = LIMIT_FILE_SIZE, .value = 1000 } } };
        const LimitUse nothing = { .write_bytes_per_s = NAN, .writes_per_s = NAN, .processors = NAN };
        LimitUse use = nothing;

        (void) state;
        assert_null(own_limits_reached(&limits, &use));
        use.write_bytes_per_s = 84e6;
        assert_null(own_limits_reached(&limits, &use));
        use.write_bytes_per_s = 99e6;
        assert_ptr_equal(own_limits_reached(&limits, &use), &limits.items[2]);
        use.write_bytes_per_s = 199e6; /* of two that are reached the strictest */
        assert_ptr_equal(own_limits_reached(&limits, &use), &limits.items[2]);
        use = nothing;
        use.processors = 0.49;
        assert_ptr_equal(own_limits_reached(&limits, &use), &limits.items[0]);
        use = nothing;
        use.file_bytes = 1000;
        assert_null(own_limits_reached(&limits, &use));
        use.file_bytes = 1001;
        assert_ptr_equal(own_limits_reached(&limits, &use), &limits.items[3]);
        limits = (OwnLimits){ .n = 1, .items = { { .kind = LIMIT_IDLE_IO } } };
        assert_ptr_equal(own_limits_reached(&limits, &nothing), &limits.items[0]);
        limits.n = 0;
        assert_null(own_limits_reached(&limits, &use));
        for (int kind = 0; kind < _LIMIT_KIND_MAX; kind++)
                assert_non_null(limit_kind_to_string((LimitKind) kind));
        assert_null(limit_kind_to_string(_LIMIT_KIND_MAX));
}

/* Whatever the limits: what is named is one of them, and was used to 85 % at least. */
static void test_reached_at_random(void **state)
{
        (void) state;
        srandom(SEED);
        for (unsigned i = 0; i < 20000; i++) {
                OwnLimits limits = { .n = (size_t) random() % (MAX_OWN_LIMITS + 1) };
                LimitUse use = { .write_bytes_per_s = (double) (random() % 1000),
                                 .writes_per_s = random() % 5 ? (double) (random() % 1000) : NAN,
                                 .processors = (double) (random() % 1000),
                                 .file_bytes = (uint64_t) random() % 1000 };

                for (size_t j = 0; j < limits.n; j++)
                        limits.items[j] = (OwnLimit){ .kind = (LimitKind) (random() % LIMIT_IDLE_IO),
                                                      .value = (double) (random() % 3000) };
                const OwnLimit *found = own_limits_reached(&limits, &use);
                bool any = false;
                for (size_t j = 0; j < limits.n; j++) {
                        const double used[] = { use.write_bytes_per_s, use.writes_per_s, use.processors,
                                                (double) use.file_bytes * 0.85 };
                        any = any || used[limits.items[j].kind] >= 0.85 * limits.items[j].value;
                }
                if (!found && any) /* of a file's size all must be used, and more */
                        for (size_t j = 0; j < limits.n; j++)
                                any = any && limits.items[j].kind == LIMIT_FILE_SIZE;
                if (found && (found < limits.items || found >= limits.items + limits.n || !any))
                        fail_msg("seed %d, case %u", SEED, i);
        }
}

static void test_subtract(void **state)
{
        WaitCounters before, after, difference;
        int64_t *b = (int64_t *) &before, *a = (int64_t *) &after, *d = (int64_t *) &difference;

        (void) state;
        srandom(SEED);
        for (unsigned i = 0; i < 20000; i++) {
                for (size_t j = 0; j < sizeof before / sizeof *b; j++) {
                        b[j] = random() % 4 ? random() : -1;
                        a[j] = random() % 4 ? b[j] + random() % 1000 : random() % 2 ? -1 : random();
                }
                wait_counters_subtract(&before, &after, &difference);
                for (size_t j = 0; j < sizeof before / sizeof *b; j++) {
                        bool known = b[j] >= 0 && a[j] >= b[j];
                        assert_true(d[j] == (known ? a[j] - b[j] : -1));
                }
                wait_counters_subtract(&before, &after, &after); /* in place as well */
                assert_memory_equal(&after, &difference, sizeof after);
        }
}

static void test_compare(void **state)
{
        States before = { .n = 2,
                          .items = { { .device = "sda", .name = "scsi.timeouts", .value = "0x1" },
                                     { .device = "md0", .name = "md.sync_action", .value = "check" } } };
        States after = { .n = 3,
                         .items = { { .device = "md0", .name = "md.sync_action", .value = "idle" },
                                    { .device = "sdb", .name = "scsi.timeouts", .value = "0x2" },
                                    { .device = "sda",
                                      .name = "scsi.timeouts",
                                      .value = "0x2",
                                      .if_changed = "it hung" } } };

        (void) state;
        assert_null(states_worst(&after));
        states_compare(&before, &after);
        assert_string_equal(after.items[0].was, "check");
        assert_string_equal(after.items[1].was, "");
        assert_string_equal(after.items[2].was, "0x1");
        assert_ptr_equal(states_worst(&after), &after.items[2]);
        assert_string_equal(after.items[2].meaning, "it hung");
        states_compare(&after, &after);
        assert_string_equal(after.items[0].was, "check");
}

static void test_crossed(void **state)
{
        Heat heat = { .n = 3,
                      .items = { { .peak_c = 70, .max_c = 80, .crit_c = 60 },
                                 { .peak_c = 70, .max_c = NAN, .crit_c = 70 },
                                 { .peak_c = NAN, .max_c = 0, .crit_c = 0 } } };

        (void) state;
        assert_ptr_equal(heat_crossed(&heat), &heat.items[1]); /* its limit is max where there is one */
        heat.items[0].peak_c = 81;
        assert_ptr_equal(heat_crossed(&heat), &heat.items[0]);
        heat.items[0].peak_c = heat.items[1].peak_c = 69;
        assert_null(heat_crossed(&heat));
        heat.items[1].max_c = heat.items[1].crit_c = NAN;
        heat.items[1].peak_c = 1000;
        assert_null(heat_crossed(&heat));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_reached),  cmocka_unit_test(test_reached_at_random),
                cmocka_unit_test(test_subtract), cmocka_unit_test(test_compare),
                cmocka_unit_test(test_crossed),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
