/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a run may start now: cooldown, write budget, free space, what others write. From memory alone. */

#include "manager.h"

#include "tierprobe/clock.h"

#include <inttypes.h>
#include <string.h>

static bool space_is_known(const Target *target)
{
        const Manager *manager = target->manager;

        for (size_t i = 0; i < manager->n_lingering; i++)
                if (manager->lingering[i].target == target)
                        return false;
        return target->facts_known && !target->inspection && target->facts.error == 0 &&
               target->facts.total_bytes > 0;
}

bool guards_allow(Target *target, const Profile *profile, StartAnswer *answer)
{
        Manager *manager = target->manager;
        const GuardRules *guard = &manager->config->guard;
        int64_t now_ns = (int64_t) clock_ns(CLOCK_REALTIME);
        const RunRecord *last = past_last_run(manager->past, target->config->name);
        uint64_t bytes = profile_bytes(profile);

        /* A run that wrote nothing has not worn anything. */
        uint64_t wait_ns =
                last && last->bytes_written > 0
                        ? schedule_cooldown_left_ns(guard->cooldown_ns, last->finished_real_ns, now_ns)
                        : 0;
        if (wait_ns > 0) {
                answer->result = START_COOLDOWN;
                answer->retry_after_s = (wait_ns + NS_PER_S - 1) / NS_PER_S;
                (void) snprintf(answer->detail, sizeof answer->detail,
                                "target %s rests after its last run for another %" PRIu64
                                " s ([guard] cooldown)",
                                target->config->name, answer->retry_after_s);
                return false;
        }
        if (guard->daily_write_budget_bytes > 0) {
                uint64_t written = past_written_since(manager->past, target->config->name,
                                                      now_ns - (int64_t) NS_PER_DAY);

                if (written + bytes > guard->daily_write_budget_bytes) {
                        answer->result = START_OVER_BUDGET;
                        answer->retry_after_s = 3600;
                        (void) snprintf(answer->detail, sizeof answer->detail,
                                        "%.0f MiB were written to target %s in the last 24 h, another %.0f "
                                        "MiB would exceed "
                                        "[guard] daily_write_budget",
                                        (double) written / 1048576, target->config->name,
                                        (double) bytes / 1048576);
                        return false;
                }
        }
        /* Facts from before the last run's files were gone would refuse the next one for their space. */
        if (space_is_known(target)) {
                double reserve = guard->min_free.ratio * (double) target->facts.total_bytes;
                if (reserve < (double) guard->min_free.bytes)
                        reserve = (double) guard->min_free.bytes;
                double needed = (double) profile_space_bytes(profile) + reserve;

                if ((double) target->facts.free_bytes < needed) {
                        answer->result = START_REFUSED;
                        answer->reason = REASON_NO_SPACE;
                        (void) snprintf(
                                answer->detail, sizeof answer->detail,
                                "%.0f MiB are free for target %s, the test and its reserve need %.0f MiB",
                                (double) target->facts.free_bytes / 1048576, target->config->name,
                                needed / 1048576);
                        target_inspect(target); /* somebody may have made room since */
                        return false;
                }
        }
        if (guard->max_foreign_mb_per_s > 0 && target->sample_gap == GAP_NONE) {
                Metrics metrics;

                metrics_from_delta(&target->sample_delta, &metrics);
                if (metrics.wkb_s / 1000 > guard->max_foreign_mb_per_s) {
                        answer->result = START_REFUSED;
                        answer->reason = REASON_FOREIGN_IO;
                        (void) snprintf(
                                answer->detail, sizeof answer->detail,
                                "others write %.1f MB/s to %s, more than [guard] max_foreign_mb_per_s = %g",
                                metrics.wkb_s / 1000, target->device ? target->device->name : "the device",
                                guard->max_foreign_mb_per_s);
                        return false;
                }
        }
        return true;
}
