/* SPDX-License-Identifier: Apache-2.0 */
/* Runs: what waits and what runs. Runs of targets that meet on a disk never overlap. */

#include "manager.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/guards.h"
#include "tierprobe/log.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- one disk, one run ---- */

static bool is_active(const Target *target)
{
        return target->run && run_record(target->run)->state == RUN_RUNNING;
}

static bool disk_is_busy(const Manager *manager, const Target *wanted)
{
        for (size_t i = 0; i < manager->n_targets; i++) {
                const Target *other = manager->targets[i];

                if (other != wanted && is_active(other) && wanted->device && run_record(other->run)->device &&
                    device_shares_disk(run_record(other->run)->device, wanted->device))
                        return true;
        }
        for (size_t i = 0; i < manager->n_lingering; i++)
                if (wanted->device && manager->lingering[i].device &&
                    device_shares_disk(manager->lingering[i].device, wanted->device))
                        return true;
        return false;
}

/* Whether a run that was asked for before this one waits for the same disk: turns are kept, even while its
 * path is still being looked at. */
static bool is_not_its_turn(const Manager *manager, const Target *wanted)
{
        int64_t queued_ns = run_record(wanted->run)->queued_real_ns;

        for (size_t i = 0; i < manager->n_targets; i++) {
                const Target *other = manager->targets[i];

                if (other == wanted || !other->run || !other->device || !wanted->device)
                        continue;
                const RunRecord *record = run_record(other->run);
                if (record->state == RUN_QUEUED && record->queued_real_ns < queued_ns &&
                    device_shares_disk(other->device, wanted->device))
                        return true;
        }
        return false;
}

bool runs_active(const Manager *manager)
{
        for (size_t i = 0; i < manager->n_targets; i++)
                if (manager->targets[i]->run)
                        return true;
        return false;
}

/* ---- a run's events ---- */

static Target *find_by_run(Manager *manager, const Run *run)
{
        for (size_t i = 0; i < manager->n_targets; i++)
                if (manager->targets[i]->run == run)
                        return manager->targets[i];
        return NULL; /* cannot be: a run is its target's until it has ended */
}

static void on_changed(Run *run, void *userdata)
{
        Manager *manager = userdata;
        Target *target = find_by_run(manager, run);
        const RunRecord *record = run_record(run);

        if (target && record->stalled_ns > 0 && !target->run_stall_said) {
                journal_run_stalled(record);
                target->run_stall_said = true;
        }
        manager_changed(manager);
}

static void on_ended(Run *run, void *userdata)
{
        Manager *manager = userdata;
        Target *target = find_by_run(manager, run);
        const Device *device = run_record(run)->device;
        _cleanup_(run_record_freep) RunRecord *record = run_take_record(run);

        if (!run_is_gone(run) && manager->n_lingering < ELEMENTSOF(manager->lingering)) {
                Lingering *lingering = &manager->lingering[manager->n_lingering++];

                *lingering = (Lingering){ .run = run, .target = target };
                if (device)
                        (void) device_copy(device, &lingering->device);
        }
        journal_run_ended(record);
        past_add(manager->past, record);
        if (target) {
                target->run = NULL;
                target->run_ready = false;
                target->runs_ended[record->judgement.verdict]++;
                target->test_written_bytes += record->bytes_written;
                timetable_plan(target);
        }
        manager_changed(manager);
        if (target && !manager->stopping)
                target_inspect(target); /* its free space has changed */
}

static void forget_lingering(Manager *manager, size_t index)
{
        device_free(manager->lingering[index].device);
        manager->lingering[index] = manager->lingering[--manager->n_lingering];
}

static void on_gone(Run *run, void *userdata)
{
        Manager *manager = userdata;

        for (size_t i = 0; i < manager->n_lingering; i++)
                if (manager->lingering[i].run == run) {
                        Target *target = manager->lingering[i].target;

                        forget_lingering(manager, i);
                        if (target && !manager->stopping)
                                target_inspect(target); /* only now is its space free again */
                        break;
                }
        run_free(run);
        runs_dispatch(manager);
}

/* ---- starting and aborting ---- */

/* Writes by others in the seconds before the run: the last regular sample. */
static double background_mb_per_s(const Target *target)
{
        Metrics metrics;

        if (target->sample_gap != GAP_NONE)
                return NAN;
        metrics_from_delta(&target->sample_delta, &metrics);
        return metrics.wkb_s / 1000;
}

static bool space_is_known(const Target *target)
{
        const Manager *manager = target->manager;

        for (size_t i = 0; i < manager->n_lingering; i++)
                if (manager->lingering[i].target == target)
                        return false;
        return target->facts_known && !target->inspection && target->facts.error == 0 &&
               target->facts.total_bytes > 0;
}

static GuardFacts guard_facts(const Target *target, const Profile *profile)
{
        const Manager *manager = target->manager;
        const char *name = target->config->name;
        const PastRun *last = past_last_run(manager->past, name);
        int64_t now_ns = (int64_t) clock_ns(CLOCK_REALTIME);

        return (GuardFacts){
                .target = name,
                .device = target->device ? target->device->name : NULL,
                .now_real_ns = now_ns,
                /* A run that wrote nothing has not worn anything. */
                .last_written_real_ns = last && last->bytes_written > 0 ? last->finished_real_ns : 0,
                .written_last_day_bytes =
                        past_written_since(manager->past, name, now_ns - (int64_t) NS_PER_DAY),
                .test_bytes = profile_bytes(profile),
                .test_space_bytes = profile_space_bytes(profile),
                /* Facts from before the last run's files were gone would refuse the next one for their space.
                 */
                .space_known = space_is_known(target),
                .free_bytes = target->facts.free_bytes,
                .total_bytes = target->facts.total_bytes,
                .foreign_mb_per_s = background_mb_per_s(target),
        };
}

static void answer_blocked(const GuardAnswer *guard, StartAnswer *ret)
{
        switch (guard->block) {
        case GUARD_NONE:
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

int runs_start(Target *target, const char *profile_name, RunTrigger trigger, const char *who,
               StartAnswer *ret)
{
        Manager *manager = target->manager;
        const Config *config = manager->config;
        const Profile *profile = config_find_profile(config, profile_name ? profile_name : "procedure");

        *ret = (StartAnswer){ .target = target->config->name };
        if (!profile) {
                ret->result = START_NO_PROFILE;
                return 0;
        }
        if (target->run) {
                ret->result = START_BUSY;
                (void) snprintf(ret->run_id, sizeof ret->run_id, "%s", run_record(target->run)->id);
                (void) snprintf(ret->detail, sizeof ret->detail,
                                "target %s has run %s queued or running already", target->config->name,
                                ret->run_id);
                return 0;
        }
        if (manager->stopping) {
                ret->result = START_REFUSED;
                ret->reason = REASON_ABORTED;
                (void) snprintf(ret->detail, sizeof ret->detail, "tierprobed is being stopped");
                return 0;
        }
        const GuardFacts facts = guard_facts(target, profile);
        GuardAnswer guard;

        if (!guards_allow(&config->guard, &facts, &guard)) {
                answer_blocked(&guard, ret);
                if (guard.block == GUARD_NO_SPACE)
                        target_inspect(target); /* somebody may have made room since */
                return 0;
        }

        const RunEvents events = {
                .userdata = manager, .changed = on_changed, .ended = on_ended, .gone = on_gone
        };
        int r = run_new(&target->run, manager->event,
                        &(RunRequest){ .target = target->config->name,
                                       .path = target->config->path,
                                       .profile = profile,
                                       .limits = &config->limits,
                                       .guard = &config->guard,
                                       .trigger = trigger,
                                       .procfs = manager->roots.procfs,
                                       .sysfs = manager->roots.sysfs },
                        &events);
        if (r < 0)
                return r;
        target->run_ready = false;
        target->run_stall_said = false;
        ret->result = START_ACCEPTED;
        (void) snprintf(ret->run_id, sizeof ret->run_id, "%s", run_record(target->run)->id);
        log_info("run %s of %s asked for by %s", ret->run_id, target->config->name, who);
        manager_changed(manager);
        /* What the path stands on is looked at anew for every run: a disk may have gone since the last one.
         */
        target_inspect(target);
        if (!target->inspection) {
                char detail[256];

                (void) snprintf(
                        detail, sizeof detail,
                        "No child process could be started to look at %.150s. Free memory, processes or "
                        "descriptors and run again.",
                        target->config->path);
                run_refuse(target->run, REASON_ABORTED, detail);
        }
        return 0;
}

static void begin(Target *target)
{
        Run *run = target->run;

        if (!target->device && target->device_reasons.n > 0) {
                const Reason *reason = &target->device_reasons.items[0];

                run_refuse(run, reason->code, reason->detail);
                return;
        }
        run_start(run, target->device, background_mb_per_s(target));
        /* It may have ended already; then its record has been kept. */
        if (target->run == run) {
                journal_run_started(run_record(run), run_trigger_to_string(run_record(run)->trigger));
                past_keep(target->manager->past, run_record(run));
        }
}

void runs_dispatch(Manager *manager)
{
        if (manager->stopping)
                return;
        for (;;) {
                Target *oldest = NULL;

                for (size_t i = 0; i < manager->n_targets; i++) {
                        Target *target = manager->targets[i];

                        if (!target->run || !target->run_ready ||
                            run_record(target->run)->state != RUN_QUEUED || disk_is_busy(manager, target) ||
                            is_not_its_turn(manager, target))
                                continue;
                        if (!oldest ||
                            run_record(target->run)->queued_real_ns < run_record(oldest->run)->queued_real_ns)
                                oldest = target;
                }
                if (!oldest)
                        return;
                begin(oldest);
        }
}

AbortResult runs_abort(Manager *manager, const char *id, const char *who)
{
        char detail[160];

        for (size_t i = 0; i < manager->n_targets; i++) {
                Target *target = manager->targets[i];

                if (!target->run || strcmp(run_record(target->run)->id, id) != 0)
                        continue;
                (void) snprintf(detail, sizeof detail, "Aborted by %s", who);
                run_abort(target->run, detail);
                manager_changed(manager);
                return ABORT_ACCEPTED;
        }
        return past_has(manager->past, id) ? ABORT_ENDED : ABORT_NO_RUN;
}

void runs_abort_all(Manager *manager, const char *detail)
{
        for (size_t i = 0; i < manager->n_targets; i++)
                if (manager->targets[i]->run)
                        run_abort(manager->targets[i]->run, detail);
}

void runs_drop_target(Target *target)
{
        Manager *manager = target->manager;

        if (target->run)
                run_cut(target->run,
                        "its target was taken out of the configuration, or moved to another path");
        for (size_t i = 0; i < manager->n_lingering; i++)
                if (manager->lingering[i].target == target)
                        manager->lingering[i].target = NULL;
}

void runs_free(Manager *manager)
{
        for (size_t i = 0; i < manager->n_targets; i++)
                manager->targets[i]->run = run_free(manager->targets[i]->run);
        while (manager->n_lingering > 0) {
                run_free(manager->lingering[0].run);
                forget_lingering(manager, 0);
        }
}
