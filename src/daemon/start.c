/* SPDX-License-Identifier: Apache-2.0 */
/* Asking for a run: collects what the guards must know, from memory alone, and queues what they let pass. */

#include "start.h"

#include "confirm.h"
#include "journal.h"

#include "tierprobe/clock.h"
#include "tierprobe/guards.h"
#include "tierprobe/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* What was seen of the space longer ago than this does not refuse a run: it is queued, and looked at. */
#define FRESH_NS (1500 * NS_PER_MS)

/* Where space is short it is looked at so often, so that what is known of it is fresh. */
#define LOOK_FOR_SPACE_NS NS_PER_S

/* A file system gives the space of files that are gone back in its own time: XFS was seen to take 11 s. */
#define SETTLE_NS (20 * NS_PER_S)

/* Where there is no device to judge that is the better reason, and the run will tell it. */
static bool space_counts(const Target *target)
{
        return target->facts.error == 0 && target->facts.total_bytes > 0 && target_row(target);
}

static bool is_settling(const Parts *parts)
{
        return runs_quiet_ns(parts->runs) < SETTLE_NS;
}

static uint64_t facts_age_ns(const Target *target)
{
        return clock_ns(CLOCK_MONOTONIC) - target->inspected_ns;
}

static bool space_is_known(const Parts *parts, const Target *target)
{
        return space_counts(target) && !target_is_waiting(target) && facts_age_ns(target) < FRESH_NS &&
               !is_settling(parts);
}

/* As far as is known now. */
static bool has_space(const Parts *parts, const Target *target, const Profile *profile, GuardAnswer *ret)
{
        const GuardFacts facts = { .target = target->config->name,
                                   .test_space_bytes = profile_space_bytes(profile),
                                   .space_known = space_counts(target),
                                   .free_bytes = target->facts.free_bytes,
                                   .total_bytes = target->facts.total_bytes };

        return guard_space(&parts->config->guard, &facts, ret);
}

void start_take_look(const Parts *parts, Target *target)
{
        const RunRecord *run = runs_of(parts->runs, target);
        char detail[sizeof((GuardAnswer){ 0 }.detail) + 40];
        GuardAnswer guard;

        if (!run || !runs_wait_for_look(parts->runs, target))
                return;
        if (has_space(parts, target, &run->profile, &guard)) {
                runs_set_ready(parts->runs, target);
        } else if (!is_settling(parts)) {
                (void) snprintf(detail, sizeof detail, "%s. Free some, or use a smaller profile.",
                                guard.detail);
                runs_refuse(parts->runs, target, REASON_NO_SPACE, detail);
        } /* else start_look_for_space() looks again */
}

void start_look_for_space(const Parts *parts, Target *target)
{
        const Profile *official = config_find_profile(parts->config, target->config->profile);
        GuardAnswer guard;

        if (target_is_waiting(target))
                return;
        if (runs_wait_for_look(parts->runs, target) ||
            (official && facts_age_ns(target) >= LOOK_FOR_SPACE_NS &&
             !has_space(parts, target, official, &guard)))
                (void) target_inspect(target);
}

static GuardFacts guard_facts(const Parts *parts, const Target *target, const Profile *profile,
                              RunTrigger trigger)
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
                .asked_for = trigger == TRIGGER_MANUAL,
                .foreign_mb_per_s = samples_foreign_mb_per_s(&target->samples),
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

/* Once for each kind of refusal, until a run is let pass: a schedule and a script ask again and again. */
static void say_refusal(Target *target, const StartOrder *order, const StartAnswer *answer)
{
        int refusal = (int) answer->result * (_REASON_MAX + 1) + (int) answer->reason;

        if (answer->result == START_ACCEPTED) {
                target->refusal = 0;
        } else if (target->refusal != refusal) {
                journal_run_refused(answer->target, order->who, answer->detail);
                target->refusal = refusal;
        }
}

int start_run(const Parts *parts, const StartOrder *order, StartAnswer *ret)
{
        const Config *config = parts->config;
        Target *target = parts_find_target(parts, order->target);
        const Profile *profile = profile_of(config, target, order->profile);
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
        const GuardFacts facts = guard_facts(parts, target, profile, order->trigger);
        bool allowed = guards_allow(&config->guard, &facts, &guard);
        take_guard_answer(&guard, ret);
        say_refusal(target, order, ret);
        if (!allowed)
                return 0;
        int r = runs_queue(parts->runs, target,
                           &(RunsOrder){ .profile = profile,
                                         .limits = &config->limits,
                                         .guard = &config->guard,
                                         .interval_ns = config->sample_interval_ns,
                                         .trigger = order->trigger,
                                         .confirms = confirm_subject(parts, target, profile),
                                         .together = order->together },
                           &run);
        if (r < 0)
                return r;
        (void) snprintf(ret->run_id, sizeof ret->run_id, "%s", run->id);
        ledger_file_reserve(parts->ledger, run->id, target->device, facts.test_bytes);
        log_info("run %s of %s asked for by %s", ret->run_id, ret->target, order->who);
        if (config->guard.max_foreign_mb_per_s > 0 &&
            facts.foreign_mb_per_s > config->guard.max_foreign_mb_per_s)
                log_warning(
                        "run %s begins while others write %.0f MB/s to %s, more than a scheduled one would",
                        ret->run_id, facts.foreign_mb_per_s, facts.device ? facts.device : "its device");
        look_first(parts, target);
        return 0;
}
