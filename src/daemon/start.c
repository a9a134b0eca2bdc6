/* SPDX-License-Identifier: Apache-2.0 */
/* Asking for a run: collects what the guards must know, from memory alone, and queues what they let pass. */

#include "start.h"

#include "tierprobe/clock.h"
#include "tierprobe/guards.h"
#include "tierprobe/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Facts from before the last run's files were gone would refuse the next one for their space. */
static bool space_is_known(const Parts *parts, const Target *target)
{
        return target->facts.error == 0 && !target_is_waiting(target) && target->facts.total_bytes > 0 &&
               !runs_linger(parts->runs, target);
}

static GuardFacts guard_facts(const Parts *parts, const Target *target, const Profile *profile)
{
        uint64_t bytes = profile_bytes(profile);
        const LedgerFacts ledger = ledger_file_facts(parts->ledger, target->device, bytes,
                                                     parts->config->guard.daily_write_budget_bytes);

        return (GuardFacts){
                .target = target->config->name,
                .device = target->device ? target->device->name : NULL,
                .now_real_ns = (int64_t) clock_ns(CLOCK_REALTIME),
                .last_written_real_ns = ledger.last_end_real_ns,
                .written_last_day_bytes = ledger.last_day_bytes,
                .budget_room_real_ns = ledger.room_real_ns,
                .test_bytes = bytes,
                .test_space_bytes = profile_space_bytes(profile),
                .space_known = space_is_known(parts, target),
                .free_bytes = target->facts.free_bytes,
                .total_bytes = target->facts.total_bytes,
                .foreign_mb_per_s = samples_write_mb_per_s(&target->samples),
        };
}

static void take_guard_answer(const GuardAnswer *guard, StartAnswer *ret)
{
        switch (guard->block) {
        case GUARD_NONE:
                ret->result = START_ACCEPTED;
                break;
        case GUARD_COOLDOWN:
                ret->result = START_COOLDOWN;
                break;
        case GUARD_OVER_BUDGET:
                ret->result = START_OVER_BUDGET;
                break;
        case GUARD_NO_SPACE:
                ret->result = START_REFUSED;
                ret->reason = REASON_NO_SPACE;
                break;
        case GUARD_FOREIGN_IO:
                ret->result = START_REFUSED;
                ret->reason = REASON_FOREIGN_IO;
                break;
        }
        ret->retry_after_s = guard->retry_after_s;
        memcpy(ret->detail, guard->detail, sizeof ret->detail);
}

static void answer_busy(const RunRecord *run, StartAnswer *ret)
{
        ret->result = START_BUSY;
        (void) snprintf(ret->run_id, sizeof ret->run_id, "%s", run->id);
        (void) snprintf(ret->detail, sizeof ret->detail, "target %s has run %s queued or running already",
                        ret->target, ret->run_id);
}

/* What the path stands on is looked at anew for every run: a disk may have gone since the last one. */
static void look_first(const Parts *parts, Target *target)
{
        char detail[256];

        if (target_inspect(target) < 0) {
                (void) snprintf(
                        detail, sizeof detail,
                        "No child process could be started to look at %.150s. Free memory, processes or "
                        "descriptors and run again.",
                        target->config->path);
                runs_refuse(parts->runs, target, REASON_ABORTED, detail);
        } else if (target_hangs(target)) {
                /* The answer may take hours: that there is none yet counts as one. */
                runs_set_ready(parts->runs, target);
                runs_dispatch(parts->runs);
        }
}

/* The one named, or the target's official one. */
static const Profile *profile_of(const Config *config, const Target *target, const char *name)
{
        if (!target)
                return NULL;
        return config_find_profile(config, name ? name : target->config->profile);
}

int start_run(const Parts *parts, const char *target_name, const char *profile_name, RunTrigger trigger,
              const char *who, StartAnswer *ret)
{
        const Config *config = parts->config;
        Target *target = parts_find_target(parts, target_name);
        const Profile *profile = profile_of(config, target, profile_name);
        const RunRecord *run = NULL;
        GuardAnswer guard;

        *ret = (StartAnswer){ .result = !target ? START_NO_TARGET : START_NO_PROFILE };
        if (!target || !profile)
                return 0;
        ret->target = target->config->name;
        run = runs_of(parts->runs, target);
        if (run) {
                answer_busy(run, ret);
                return 0;
        }
        if (runs_are_stopping(parts->runs)) {
                ret->result = START_REFUSED;
                ret->reason = REASON_ABORTED;
                (void) snprintf(ret->detail, sizeof ret->detail, "tierprobed is being stopped");
                return 0;
        }
        const GuardFacts facts = guard_facts(parts, target, profile);
        bool allowed = guards_allow(&config->guard, &facts, &guard);
        take_guard_answer(&guard, ret);
        if (!allowed) {
                if (guard.block == GUARD_NO_SPACE)
                        (void) target_inspect(target); /* somebody may have made room since */
                return 0;
        }
        int r = runs_queue(parts->runs, target, profile, &config->limits, &config->guard,
                           config->sample_interval_ns, trigger, &run);
        if (r < 0)
                return r;
        (void) snprintf(ret->run_id, sizeof ret->run_id, "%s", run->id);
        ledger_file_reserve(parts->ledger, run->id, target->device, facts.test_bytes);
        log_info("run %s of %s asked for by %s", ret->run_id, ret->target, who);
        look_first(parts, target);
        return 0;
}
