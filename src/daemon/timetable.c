/* Runs that start by themselves: each target's next time, and its timer. */

#include "manager.h"

#include "tierprobe/clock.h"
#include "tierprobe/log.h"

#include <string.h>

static int on_due(sd_event_source *source, uint64_t usec, void *userdata)
{
        Target *target = userdata;
        StartAnswer answer;

        (void) source;
        (void) usec;
        int r = runs_start(target, NULL, TRIGGER_SCHEDULE, "schedule", &answer);
        if (r < 0)
                log_error("target %s: the scheduled run could not start: %s", target->config->name,
                          strerror(-r));
        else if (answer.result != START_ACCEPTED)
                journal_run_refused(target, &answer);
        /* The end of a run plans the next one; without a run, try again one interval from now. */
        if (!target->run)
                timetable_plan(target);
        return 0;
}

/* A wall-clock time as a timer that a clock step cannot fire or hold back: BOOTTIME counts on in a suspend.
 */
static uint64_t to_boot_ns(int64_t real_ns, int64_t now_real_ns)
{
        uint64_t now_boot_ns = clock_ns(CLOCK_BOOTTIME);

        return real_ns <= now_real_ns ? now_boot_ns : now_boot_ns + (uint64_t) (real_ns - now_real_ns);
}

void timetable_plan(Target *target)
{
        Manager *manager = target->manager;
        const RunRecord *last = target->last_run;
        int64_t now_ns = (int64_t) clock_ns(CLOCK_REALTIME);
        /* A new target is tested one interval after it came: nobody expects ten gigabytes of writes from an
         * installation. Not one after this start, or a daemon restarted every day would never test. */
        int64_t last_ns = !last                   ? target_known_since_real_ns(target)
                          : last->started_real_ns ? last->started_real_ns
                                                  : last->queued_real_ns;
        uint64_t seed = schedule_seed(target->config->name, (uint64_t) last_ns);

        target->next_run_real_ns = schedule_next(&manager->config->schedule, last_ns, now_ns, seed);
        target->schedule_timer = sd_event_source_disable_unref(target->schedule_timer);
        if (target->next_run_real_ns == SCHEDULE_NEVER)
                return;
        int r = sd_event_add_time(manager->event, &target->schedule_timer, CLOCK_BOOTTIME,
                                  to_boot_ns(target->next_run_real_ns, now_ns) / NS_PER_US, 50 * 1000, on_due,
                                  target);
        if (r < 0)
                log_error("target %s: no timer for its schedule: %s", target->config->name, strerror(-r));
}
