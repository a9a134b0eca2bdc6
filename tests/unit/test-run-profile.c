/* SPDX-License-Identifier: Apache-2.0 */
/* What a profile amounts to, in words, and which runs certify. */

#include "tierprobe/clock.h"
#include "tierprobe/run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void expect_plan(const Profile *profile, double mb_per_s, uint64_t max_duration_ns,
                        const char *expected)
{
        char plan[PROFILE_PLAN_SIZE];

        profile_describe_plan(plan, profile, mb_per_s, max_duration_ns);
        assert_string_equal(plan, expected);
}

static void test_plan(void **state)
{
        Profile profile = PROFILE_PROCEDURE;

        (void) state;
        expect_plan(&profile, 600, 600 * NS_PER_S,
                    "writes 10000 MiB, which takes 18 s at 600 MB/s; 10000 MiB must be free; ends after 10m "
                    "at the "
                    "latest");
        expect_plan(&profile, 0, 0, "writes 10000 MiB; 10000 MiB must be free");
        profile.streams = 4;
        expect_plan(&profile, 1000, 0,
                    "writes 40000 MiB, which takes 41 s at 1000 MB/s; 40000 MiB must be free");
        profile.streams = 1;
        profile.duration_ns = 600 * NS_PER_S;
        expect_plan(&profile, 600, 0,
                    "writes for 10m, which is 351562 MiB at 600 MB/s; 20000 MiB must be free");
        profile.ramp = true;
        profile.streams = 64;
        profile.duration_ns = 5 * NS_PER_S;
        expect_plan(&profile, 600, 0,
                    "writes up to 7 steps of 10000 MiB or 5s, at most 70000 MiB; 10000 MiB must be free");
        profile.duration_ns = 0;
        expect_plan(&profile, 600, 0,
                    "writes up to 7 steps of 10000 MiB, at most 70000 MiB; 10000 MiB must be free");
        /* Whatever the figures, it fits. */
        profile = (Profile){ .block_size = UINT64_MAX,
                             .count = UINT64_MAX,
                             .streams = 128,
                             .ramp = true,
                             .duration_ns = UINT64_MAX };
        char plan[PROFILE_PLAN_SIZE];
        profile_describe_plan(plan, &profile, 1e300, UINT64_MAX);
        assert_non_null(strstr(plan, " must be free"));
}

/* Other limits are another question, as other writes are. */
static void test_certifying(void **state)
{
        const Profile procedure = PROFILE_PROCEDURE;
        const Limits documented = limits_default();

        (void) state;
        assert_true(run_is_certifying(&procedure, &documented));
        for (size_t i = 0; i <= N_CRITERIA; i++)
                for (int more = 0; more < 2; more++) {
                        Limits limits = documented;
                        double *value = i < N_CRITERIA ? &limits.value[i] : &limits.pass_ratio;

                        *value *= more ? 1.000001 : 0.999999;
                        assert_false(run_is_certifying(&procedure, &limits));
                }
        const Profile others[] = {
                { .block_size = 1 << 19, .count = 10000, .streams = 1 },
                { .block_size = 1 << 20, .count = 9999, .streams = 1 },
                { .block_size = 1 << 20, .count = 10000, .streams = 2 },
                { .block_size = 1 << 20, .count = 10000, .streams = 1, .pattern = PATTERN_RANDOM },
                { .block_size = 1 << 20, .count = 10000, .streams = 1, .duration_ns = NS_PER_S },
                { .block_size = 1 << 20, .count = 10000, .streams = 1, .ramp = true },
        };
        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
                assert_false(run_is_certifying(&others[i], &documented));
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_plan), cmocka_unit_test(test_certifying) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
