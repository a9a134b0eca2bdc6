/* SPDX-License-Identifier: Apache-2.0 */
/* What keeps a run from starting now: cooldown, write budget, free space, what others write. Pure. */

#include "tierprobe/guards.h"

#include "tierprobe/cleanup.h"

#include <inttypes.h>
#include <stdio.h>

#define MIB 1048576.0

/* Runs under way may write less than they are allowed to, so the time cannot be known. */
#define BUDGET_RETRY_S 3600

static uint64_t seconds_until(int64_t real_ns, int64_t now_real_ns)
{
        if (real_ns == INT64_MAX)
                return BUDGET_RETRY_S;
        if (real_ns <= now_real_ns)
                return 1;
        return ((uint64_t) real_ns - (uint64_t) now_real_ns + NS_PER_S - 1) / NS_PER_S;
}

bool guard_cooldown(const GuardRules *rules, const GuardFacts *facts, GuardAnswer *ret)
{
        uint64_t left_ns = schedule_cooldown_left_ns(rules->cooldown_ns, facts->last_written_real_ns,
                                                     facts->now_real_ns);

        if (left_ns == 0)
                return true;
        *ret = (GuardAnswer){ .block = GUARD_COOLDOWN,
                              .retry_after_s = left_ns / NS_PER_S + (left_ns % NS_PER_S != 0) };
        (void) snprintf(ret->detail, sizeof ret->detail,
                        "the disk of target %s rests after its last test for another %" PRIu64
                        " s ([guard] cooldown)",
                        facts->target, ret->retry_after_s);
        return false;
}

bool guard_budget(const GuardRules *rules, const GuardFacts *facts, GuardAnswer *ret)
{
        uint64_t sum = 0;

        if (rules->daily_write_budget_bytes == 0)
                return true;
        if (!__builtin_add_overflow(facts->written_last_day_bytes, facts->test_bytes, &sum) &&
            sum <= rules->daily_write_budget_bytes)
                return true;
        *ret = (GuardAnswer){ .block = GUARD_OVER_BUDGET,
                              .retry_after_s =
                                      seconds_until(facts->budget_room_real_ns, facts->now_real_ns) };
        (void) snprintf(
                ret->detail, sizeof ret->detail,
                "tests have written or reserved %.0f MiB on the disk of target %s in the last 24 h, another "
                "%.0f MiB would exceed [guard] daily_write_budget = %.0f MiB",
                (double) facts->written_last_day_bytes / MIB, facts->target, (double) facts->test_bytes / MIB,
                (double) rules->daily_write_budget_bytes / MIB);
        return false;
}

bool guard_space(const GuardRules *rules, const GuardFacts *facts, GuardAnswer *ret)
{
        double reserve = rules->min_free.ratio * (double) facts->total_bytes;

        if (!facts->space_known)
                return true;
        if (reserve < (double) rules->min_free.bytes)
                reserve = (double) rules->min_free.bytes;
        double needed = (double) facts->test_space_bytes + reserve;
        if ((double) facts->free_bytes >= needed)
                return true;
        *ret = (GuardAnswer){ .block = GUARD_NO_SPACE };
        (void) snprintf(ret->detail, sizeof ret->detail,
                        "%.0f MiB are free for target %s, the test and its reserve need %.0f MiB",
                        (double) facts->free_bytes / MIB, facts->target, needed / MIB);
        return false;
}

bool guard_foreign(const GuardRules *rules, const GuardFacts *facts, GuardAnswer *ret)
{
        /* Not known (NAN) is not more. */
        if (facts->asked_for || rules->max_foreign_mb_per_s <= 0 ||
            !(facts->foreign_mb_per_s > rules->max_foreign_mb_per_s))
                return true;
        *ret = (GuardAnswer){ .block = GUARD_FOREIGN_IO };
        (void) snprintf(ret->detail, sizeof ret->detail,
                        "others write %.1f MB/s to %s, more than [guard] max_foreign_mb_per_s = %g",
                        facts->foreign_mb_per_s, facts->device ? facts->device : "the device",
                        rules->max_foreign_mb_per_s);
        return false;
}

bool guards_allow(const GuardRules *rules, const GuardFacts *facts, GuardAnswer *ret)
{
        static bool (*const guards[])(const GuardRules *, const GuardFacts *,
                                      GuardAnswer *) = { guard_cooldown, guard_budget, guard_space,
                                                         guard_foreign };

        for (size_t i = 0; i < ELEMENTSOF(guards); i++)
                if (!guards[i](rules, facts, ret))
                        return false;
        *ret = (GuardAnswer){ .block = GUARD_NONE };
        return true;
}
