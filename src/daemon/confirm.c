/* SPDX-License-Identifier: Apache-2.0 */
/* A fail that follows a pass is tested once more before it counts. Reads past runs and the ledger. */

#include "confirm.h"

#include "tierprobe/clock.h"

#include <string.h>

/* A guard may keep the second test from starting for so long, before the fail counts without it: a disk that
 * has become bad is not to pass for a good one much longer. */
#define PATIENCE_NS ((int64_t) (3600 * NS_PER_S))

static bool is_candidate(const Parts *parts, const Target *target, const RunRecord *record)
{
        const PastStanding *standing = past_standing(parts->past, target->config->name);

        return target->config->confirm_ns > 0 && record->official &&
               (record->state == RUN_FINISHED || record->state == RUN_FAILED) &&
               record->judgement.verdict == VERDICT_FAIL && standing && standing->run &&
               standing->facts.verdict == VERDICT_PASS && !standing->unconfirmed;
}

void confirm_mark(const Parts *parts, const Target *target, RunRecord *record)
{
        char at[RFC3339_SIZE], counts[RFC3339_SIZE];

        if (!is_candidate(parts, target, record))
                return;
        const GuardRules *guard = &parts->config->guard;
        uint64_t wait_ns = target->config->confirm_ns > guard->cooldown_ns ? target->config->confirm_ns
                                                                           : guard->cooldown_ns;
        int64_t at_ns =
                schedule_in_window(&parts->config->schedule, record->finished_real_ns + (int64_t) wait_ns);
        const LedgerFacts ledger =
                ledger_file_facts(parts->ledger, target->device, profile_bytes(&record->profile),
                                  guard->daily_write_budget_bytes);
        bool has_budget = guard->daily_write_budget_bytes == 0 || ledger.room_real_ns <= at_ns;
        if (at_ns == SCHEDULE_NEVER || !has_budget)
                return;
        record->confirm_at_real_ns = at_ns;
        record->counts_from_real_ns = at_ns + PATIENCE_NS;
        reasons_add(&record->judgement.reasons, REASON_UNCONFIRMED,
                    "It passed before, and is tested once more at %s ([target] confirm); this fail counts "
                    "unless that "
                    "passes, from %s on in any case. See whether others wrote to the disk.",
                    rfc3339_format(at, at_ns), rfc3339_format(counts, record->counts_from_real_ns));
}

const char *confirm_subject(const Parts *parts, const Target *target, const Profile *profile)
{
        const PastStanding *standing = past_standing(parts->past, target->config->name);

        return standing && standing->unconfirmed && strcmp(profile->name, target->config->profile) == 0
                       ? standing->unconfirmed->id
                       : NULL;
}
