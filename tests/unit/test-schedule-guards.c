/* SPDX-License-Identifier: Apache-2.0 */
/* The guards over random facts, each against a rule written down a second time in another way. */

#include "tierprobe/cleanup.h"
#include "tierprobe/guards.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N_SEEDS 20000
#define HUGE_BYTES (UINT64_C(1) << 62)

static uint64_t rng;

static uint64_t next_random(void)
{
        rng ^= rng << 13;
        rng ^= rng >> 7;
        rng ^= rng << 17;
        return rng;
}

/* Small numbers meet each other, large ones overflow, zero switches off: all three are to be seen often. */
static uint64_t some_bytes(void)
{
        switch (next_random() % 4) {
        case 0:
                return 0;
        case 1:
                return next_random() % 16 << 20;
        case 2:
                return next_random() % HUGE_BYTES;
        default:
                return next_random() % (UINT64_C(64) << 30);
        }
}

static void make_case(uint64_t seed, GuardRules *rules, GuardFacts *facts)
{
        rng = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
        *rules = (GuardRules){ .cooldown_ns = next_random() % 3 * 1800 * NS_PER_S,
                               .daily_write_budget_bytes = some_bytes(),
                               .min_free = { .bytes = some_bytes(),
                                             .ratio = (double) (next_random() % 5) / 8 },
                               .max_foreign_mb_per_s = (double) (next_random() % 3 * 50) };
        *facts = (GuardFacts){ .target = "cache",
                               .device = next_random() % 2 ? "sda" : NULL,
                               .now_real_ns = INT64_C(1793366045) * (int64_t) NS_PER_S,
                               .written_last_day_bytes = some_bytes(),
                               .test_bytes = next_random() % 8 ? some_bytes() : UINT64_MAX,
                               .test_space_bytes = some_bytes(),
                               .space_known = next_random() % 4 != 0,
                               .free_bytes = some_bytes(),
                               .total_bytes = some_bytes(),
                               .asked_for = next_random() % 4 == 0,
                               .foreign_mb_per_s = next_random() % 4 ? (double) (next_random() % 200) : NAN };
        facts->budget_room_real_ns =
                next_random() % 4 ? facts->now_real_ns + (int64_t) (next_random() % NS_PER_DAY) : INT64_MAX;
        if (next_random() % 4 != 0)
                facts->last_written_real_ns = facts->now_real_ns -
                                              (int64_t) (next_random() % (7200 * NS_PER_S)) +
                                              (int64_t) (next_random() % 2 * 600 * NS_PER_S);
}

/* ---- the rules a second time ---- */

static bool rests(const GuardRules *rules, const GuardFacts *facts)
{
        if (facts->last_written_real_ns == 0)
                return false;
        int64_t since_ns = facts->now_real_ns - facts->last_written_real_ns;
        return rules->cooldown_ns > 0 && since_ns < (int64_t) rules->cooldown_ns;
}

static bool exceeds_budget(const GuardRules *rules, const GuardFacts *facts)
{
        unsigned __int128 sum = (unsigned __int128) facts->written_last_day_bytes + facts->test_bytes;

        return rules->daily_write_budget_bytes > 0 && sum > rules->daily_write_budget_bytes;
}

static bool lacks_space(const GuardRules *rules, const GuardFacts *facts)
{
        double part = rules->min_free.ratio * (double) facts->total_bytes;
        double reserve = fmax(part, (double) rules->min_free.bytes);

        return facts->space_known && (double) facts->free_bytes - reserve < (double) facts->test_space_bytes;
}

static bool others_write(const GuardRules *rules, const GuardFacts *facts)
{
        return !facts->asked_for && rules->max_foreign_mb_per_s > 0 && !isnan(facts->foreign_mb_per_s) &&
               facts->foreign_mb_per_s > rules->max_foreign_mb_per_s;
}

/* ---- the tests ---- */

static void check_one(uint64_t seed, const char *name, bool allowed, bool blocked, GuardBlock block,
                      const GuardAnswer *answer)
{
        if (allowed == blocked)
                fail_msg("seed %" PRIu64 ": %s says %d", seed, name, allowed);
        if (blocked &&
            (answer->block != block || !*answer->detail || answer->detail[strlen(answer->detail) - 1] == '.'))
                fail_msg("seed %" PRIu64 ": %s answers %d, '%s'", seed, name, (int) answer->block,
                         answer->detail);
}

static void test_random(void **state)
{
        unsigned counts[GUARD_FOREIGN_IO + 1] = { 0 };

        (void) state;
        for (uint64_t seed = 1; seed <= N_SEEDS; seed++) {
                GuardAnswer answer = { 0 };
                GuardRules rules;
                GuardFacts facts;
                bool allowed;

                make_case(seed, &rules, &facts);
                allowed = guard_cooldown(&rules, &facts, &answer);
                check_one(seed, "cooldown", allowed, rests(&rules, &facts), GUARD_COOLDOWN, &answer);
                /* To come back when told to is neither too early nor needlessly late. */
                if (!allowed) {
                        GuardFacts later = facts;

                        assert_true(answer.retry_after_s >= 1);
                        later.now_real_ns += (int64_t) (answer.retry_after_s * NS_PER_S);
                        if (facts.last_written_real_ns <= facts.now_real_ns && rests(&rules, &later))
                                fail_msg("seed %" PRIu64 ": %" PRIu64 " s are too few", seed,
                                         answer.retry_after_s);
                        later.now_real_ns -= (int64_t) NS_PER_S;
                        if (!rests(&rules, &later))
                                fail_msg("seed %" PRIu64 ": %" PRIu64 " s are too many", seed,
                                         answer.retry_after_s);
                }
                allowed = guard_budget(&rules, &facts, &answer);
                check_one(seed, "budget", allowed, exceeds_budget(&rules, &facts), GUARD_OVER_BUDGET,
                          &answer);
                if (!allowed && facts.budget_room_real_ns == INT64_MAX)
                        assert_int_equal(answer.retry_after_s, 3600);
                else if (!allowed) {
                        int64_t wait_ns = facts.budget_room_real_ns - facts.now_real_ns;
                        int64_t told_ns = (int64_t) (answer.retry_after_s * NS_PER_S);

                        assert_true(told_ns >= wait_ns && told_ns >= (int64_t) NS_PER_S);
                        assert_true(told_ns - wait_ns < (int64_t) NS_PER_S || told_ns == (int64_t) NS_PER_S);
                }
                allowed = guard_space(&rules, &facts, &answer);
                check_one(seed, "space", allowed, lacks_space(&rules, &facts), GUARD_NO_SPACE, &answer);
                allowed = guard_foreign(&rules, &facts, &answer);
                check_one(seed, "foreign", allowed, others_write(&rules, &facts), GUARD_FOREIGN_IO, &answer);

                GuardBlock first = rests(&rules, &facts)            ? GUARD_COOLDOWN
                                   : exceeds_budget(&rules, &facts) ? GUARD_OVER_BUDGET
                                   : lacks_space(&rules, &facts)    ? GUARD_NO_SPACE
                                   : others_write(&rules, &facts)   ? GUARD_FOREIGN_IO
                                                                    : GUARD_NONE;
                memset(&answer, 0xff, sizeof answer);
                allowed = guards_allow(&rules, &facts, &answer);
                if (allowed != (first == GUARD_NONE) || answer.block != first)
                        fail_msg("seed %" PRIu64 ": all say %d, %d is right", seed, (int) answer.block,
                                 (int) first);
                counts[first]++;
        }
        for (size_t i = 0; i < ELEMENTSOF(counts); i++)
                assert_true(counts[i] > N_SEEDS / 100);
}

/* What does not concern a guard must not move it. */
static void test_each_has_its_own_facts(void **state)
{
        (void) state;
        for (uint64_t seed = 1; seed <= N_SEEDS; seed++) {
                GuardRules rules, other_rules;
                GuardFacts facts, other;
                GuardAnswer answer;

                make_case(seed, &rules, &facts);
                make_case(seed + N_SEEDS, &other_rules, &other);
                other.last_written_real_ns = facts.last_written_real_ns;
                other_rules.cooldown_ns = rules.cooldown_ns;
                assert_int_equal(guard_cooldown(&rules, &facts, &answer),
                                 guard_cooldown(&other_rules, &other, &answer));
                other.foreign_mb_per_s = facts.foreign_mb_per_s;
                other.asked_for = facts.asked_for;
                other_rules.max_foreign_mb_per_s = rules.max_foreign_mb_per_s;
                assert_int_equal(guard_foreign(&rules, &facts, &answer),
                                 guard_foreign(&other_rules, &other, &answer));
        }
}

static void test_sentences(void **state)
{
        const GuardRules rules = { .cooldown_ns = 90 * NS_PER_S,
                                   .daily_write_budget_bytes = UINT64_C(3) << 30,
                                   .min_free.bytes = UINT64_C(100) << 20,
                                   .max_foreign_mb_per_s = 50 };
        const GuardFacts facts = { .target = "cache",
                                   .device = "nvme0n1",
                                   .now_real_ns = INT64_C(1000000) * (int64_t) NS_PER_S,
                                   .last_written_real_ns = INT64_C(999999) * (int64_t) NS_PER_S,
                                   .written_last_day_bytes = UINT64_C(2) << 30,
                                   .test_bytes = UINT64_C(2) << 30,
                                   .test_space_bytes = UINT64_C(2) << 30,
                                   .space_known = true,
                                   .free_bytes = UINT64_C(1) << 30,
                                   .total_bytes = UINT64_C(4) << 30,
                                   .foreign_mb_per_s = 70.25 };
        GuardAnswer answer;

        (void) state;
        assert_false(guard_cooldown(&rules, &facts, &answer));
        assert_string_equal(
                answer.detail,
                "the disk of target cache rests after its last test for another 89 s ([guard] cooldown)");
        assert_false(guard_budget(&rules, &facts, &answer));
        assert_string_equal(answer.detail, "tests have written or reserved 2048 MiB on the disk of target "
                                           "cache in the last 24 h, another "
                                           "2048 MiB would exceed [guard] daily_write_budget = 3072 MiB");
        assert_false(guard_space(&rules, &facts, &answer));
        assert_string_equal(answer.detail,
                            "1024 MiB are free for target cache, the test and its reserve need 2148 MiB");
        assert_false(guard_foreign(&rules, &facts, &answer));
        assert_string_equal(answer.detail,
                            "others write 70.2 MB/s to nvme0n1, more than [guard] max_foreign_mb_per_s = 50");
}

/* Random disks: a run gives way when, and only when, three whole seconds on end others have written more. */
static void test_gives_way(void **state)
{
        unsigned n_ends = 0;

        (void) state;
        for (uint64_t seed = 1; seed <= N_SEEDS / 10; seed++) {
                rng = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
                const GuardRules rules = { .abort_foreign_mb_per_s = (double) (next_random() % 4 * 50) };
                uint64_t now_ns = 1 + next_random() % NS_PER_DAY, own_bytes = 0;
                uint64_t step_ns = (1 + next_random() % 4) * 250 * NS_PER_MS;
                unsigned in_step = 0, over = 0;
                double second_mb = 0;
                GiveWay give_way = { 0 };

                for (int i = 0; i < 60; i++) {
                        double mb_per_s = 0;
                        uint64_t foreign = next_random() % 4 ? next_random() % 300 * 1024000 : 0;
                        uint64_t foreign_bytes = foreign / 4 * (step_ns / (250 * NS_PER_MS));
                        uint64_t own = next_random() % 600 * 256000 * (step_ns / (250 * NS_PER_MS));
                        bool ends = guard_gives_way(&rules, &give_way, now_ns, i ? own + foreign_bytes : 0,
                                                    own_bytes += i ? own : 0, &mb_per_s);

                        now_ns += step_ns;
                        if (i == 0) {
                                assert_false(ends);
                                continue;
                        }
                        second_mb += (double) foreign_bytes / 1024e3;
                        in_step++;
                        if (in_step * step_ns < NS_PER_S) {
                                assert_false(ends);
                                continue;
                        }
                        double seconds = (double) (in_step * step_ns) / 1e9;
                        bool is_over = rules.abort_foreign_mb_per_s > 0 &&
                                       second_mb / seconds > rules.abort_foreign_mb_per_s;
                        over = is_over ? over + in_step : 0;
                        bool wanted = over * step_ns >= 3 * NS_PER_S;
                        if (ends != wanted)
                                fail_msg("seed %" PRIu64 " step %d: %d", seed, i, ends);
                        if (ends &&
                            (mb_per_s < second_mb / seconds - 0.01 || mb_per_s > second_mb / seconds + 0.01))
                                fail_msg("seed %" PRIu64 " step %d: %g MB/s", seed, i, mb_per_s);
                        n_ends += ends;
                        in_step = 0;
                        second_mb = 0;
                }
        }
        assert_true(n_ends > 100);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_random),
                cmocka_unit_test(test_each_has_its_own_facts),
                cmocka_unit_test(test_sentences),
                cmocka_unit_test(test_gives_way),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
