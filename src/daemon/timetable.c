/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that start by themselves: each target's next time, and its timer. */

#include "manager.h"

#include "tierprobe/clock.h"
#include "tierprobe/log.h"

#include <string.h>

/* Slewing and leap seconds stay below; whoever sets a clock means more. */
#define CLOCK_STEP_NS (2 * (int64_t) NS_PER_S)

/* A run that a guard has refused is tried again after so long, if the guard does not know better. */
#define RETRY_NS (600 * NS_PER_S)

/* A wall-clock time as a timer that a clock step cannot fire or hold back: BOOTTIME counts on in a suspend.
 */
static uint64_t to_boot_ns(int64_t real_ns, int64_t now_real_ns)
{
        uint64_t now_boot_ns = clock_ns(CLOCK_BOOTTIME);

        return real_ns <= now_real_ns ? now_boot_ns : now_boot_ns + (uint64_t) (real_ns - now_real_ns);
}

static int on_due(sd_event_source *source, uint64_t usec, void *userdata);

static void plan_at(Target *target, int64_t at_real_ns, int64_t now_real_ns)
{
        target->next_run_real_ns = at_real_ns;
        target->schedule_timer = sd_event_source_disable_unref(target->schedule_timer);
        if (at_real_ns == SCHEDULE_NEVER)
                return;
        int r = sd_event_add_time(target->manager->event, &target->schedule_timer, CLOCK_BOOTTIME,
                                  to_boot_ns(at_real_ns, now_real_ns) / NS_PER_US, 50 * 1000, on_due, target);
        if (r < 0)
                log_error("target %s: no timer for its schedule: %s", target->config->name, strerror(-r));
}

static int on_due(sd_event_source *source, uint64_t usec, void *userdata)
{
        Target *target = userdata;
        StartAnswer answer = { .result = START_REFUSED };

        (void) source;
        (void) usec;
        /* A step of the clock may have carried the timer past the window's end. */
        if (!schedule_may_start(&target->manager->config->schedule, (int64_t) clock_ns(CLOCK_REALTIME))) {
                timetable_plan(target);
                return 0;
        }
        int r = runs_start(target, NULL, TRIGGER_SCHEDULE, "schedule", &answer);
        if (r < 0)
                log_error("target %s: the scheduled run could not start: %s", target->config->name,
                          strerror(-r));
        else if (answer.result != START_ACCEPTED)
                journal_run_refused(target, &answer);
        /* The end of a run plans the next one; without one, it is tried again. */
        if (r < 0 || answer.result != START_ACCEPTED) {
                int64_t now_ns = (int64_t) clock_ns(CLOCK_REALTIME);
                uint64_t wait_ns = answer.retry_after_s > 0 ? answer.retry_after_s * NS_PER_S : RETRY_NS;

                plan_at(target, now_ns + (int64_t) wait_ns, now_ns);
        }
        return 0;
}

void timetable_plan(Target *target)
{
        Manager *manager = target->manager;
        const PastRun *last = past_last_run(manager->past, target->config->name);
        int64_t now_ns = (int64_t) clock_ns(CLOCK_REALTIME);
        /* A new target is tested one interval after it came: nobody expects ten gigabytes of writes from an
         * installation. Not one after this start, or a daemon restarted every day would never test. */
        int64_t last_ns = last ? past_run_begin_real_ns(last) : target_known_since_real_ns(target);
        uint64_t seed = schedule_seed(target->config->name, (uint64_t) last_ns);

        plan_at(target, schedule_next(&manager->config->schedule, last_ns, now_ns, seed), now_ns);
}

void timetable_follow_clock(Manager *manager)
{
        int64_t offset_ns = (int64_t) clock_ns(CLOCK_REALTIME) - (int64_t) clock_ns(CLOCK_BOOTTIME);
        int64_t step_ns = offset_ns - manager->clock_offset_ns;

        if (step_ns > -CLOCK_STEP_NS && step_ns < CLOCK_STEP_NS)
                return;
        manager->clock_offset_ns = offset_ns;
        log_info("the clock was set by %.0f s: runs are planned anew", (double) step_ns / 1e9);
        for (size_t i = 0; i < manager->n_targets; i++)
                timetable_plan(manager->targets[i]);
        manager_changed(manager);
}
