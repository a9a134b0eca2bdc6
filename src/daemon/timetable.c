/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that start by themselves: each target's next time, and its timer. Touches the event loop alone. */

#include "timetable.h"

#include "tierprobe/clock.h"
#include "tierprobe/config.h"
#include "tierprobe/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <systemd/sd-id128.h>

/* Slewing and leap seconds are smaller steps than this; a clock that is set moves further. */
#define CLOCK_STEP_NS (2 * (int64_t) NS_PER_S)

/* Timers of the same moment may fire one after the other. */
#define TOGETHER_NS ((int64_t) NS_PER_S)

/* A run that a guard has refused is tried again after so long, if the guard does not know better. */
#define RETRY_NS (600 * NS_PER_S)

typedef struct Entry {
        Timetable *timetable;
        Target *target; /* NULL: free */
        char name[NAME_SIZE];
        int64_t last_real_ns, not_before_real_ns, confirm_at_real_ns, next_real_ns;
        bool missed; /* the next run is one that was missed before the daemon's start */
        NextWhy why;
        sd_event_source *timer;
} Entry;

struct Timetable {
        sd_event *event;
        TimetableEvents events;
        ScheduleRules rules;
        int64_t clock_offset_ns; /* REALTIME less BOOTTIME when the plans were made */
        Entry entries[CONFIG_MAX_TARGETS];
};

static int64_t clock_offset_ns(void)
{
        return (int64_t) clock_ns(CLOCK_REALTIME) - (int64_t) clock_ns(CLOCK_BOOTTIME);
}

/* A wall-clock time as a timer that a clock step cannot fire or hold back: BOOTTIME counts on in a suspend.
 */
static uint64_t to_boot_ns(int64_t real_ns, int64_t now_real_ns)
{
        uint64_t now_boot_ns = clock_ns(CLOCK_BOOTTIME);

        return real_ns <= now_real_ns ? now_boot_ns : now_boot_ns + (uint64_t) (real_ns - now_real_ns);
}

/* ---- entries ---- */

/* The index of TARGET's entry, or of a free one for NULL; CONFIG_MAX_TARGETS when there is none. */
static size_t find_entry(const Timetable *timetable, const Target *target)
{
        size_t i = 0;

        while (i < CONFIG_MAX_TARGETS && timetable->entries[i].target != target)
                i++;
        return i;
}

static int on_due(sd_event_source *source, uint64_t usec, void *userdata);

static void set_time(Entry *entry, int64_t at_real_ns, int64_t now_real_ns, NextWhy why)
{
        entry->next_real_ns = at_real_ns;
        entry->why = at_real_ns == SCHEDULE_NEVER ? NEXT_NONE : why;
        entry->timer = sd_event_source_disable_unref(entry->timer);
        if (at_real_ns == SCHEDULE_NEVER)
                return;
        int r = sd_event_add_time(entry->timetable->event, &entry->timer, CLOCK_BOOTTIME,
                                  to_boot_ns(at_real_ns, now_real_ns) / NS_PER_US, 50 * 1000, on_due, entry);
        if (r < 0)
                log_error("target %s: no timer for its schedule: %s", entry->name, strerror(-r));
}

static void plan(Entry *entry)
{
        int64_t now_ns = (int64_t) clock_ns(CLOCK_REALTIME);
        int64_t from_ns = now_ns > entry->not_before_real_ns ? now_ns : entry->not_before_real_ns;
        uint64_t seed = timetable_seed(&entry->timetable->rules, entry->name);

        int64_t next_ns = schedule_next(&entry->timetable->rules, entry->last_real_ns, from_ns, seed);
        NextWhy why = schedule_is_overdue(&entry->timetable->rules, entry->last_real_ns, from_ns, seed)
                              ? NEXT_MISSED
                              : NEXT_DUE;
        if (entry->confirm_at_real_ns) {
                int64_t at_ns = entry->confirm_at_real_ns > now_ns ? entry->confirm_at_real_ns : now_ns;

                at_ns = schedule_in_window(&entry->timetable->rules, at_ns);
                if (at_ns < next_ns) {
                        next_ns = at_ns;
                        why = NEXT_CONFIRM;
                }
        }
        set_time(entry, next_ns, now_ns, why);
}

static int on_due(sd_event_source *source, uint64_t usec, void *userdata)
{
        Entry *due = userdata;
        Timetable *timetable = due->timetable;
        int64_t now_ns = (int64_t) clock_ns(CLOCK_REALTIME);

        (void) source;
        (void) usec;
        /* A step of the clock may have carried the timer past the window's end. */
        if (!schedule_may_start(&timetable->rules, now_ns)) {
                plan(due);
                return 0;
        }
        for (Entry *entry = timetable->entries; entry < timetable->entries + CONFIG_MAX_TARGETS; entry++)
                if (entry == due || (timetable->rules.together && entry->timer &&
                                     entry->next_real_ns <= now_ns + TOGETHER_NS)) {
                        entry->timer = sd_event_source_disable_unref(entry->timer);
                        timetable->events.due(entry->target, entry->missed, timetable->events.userdata);
                }
        return 0;
}

/* ---- the outside ---- */

uint64_t timetable_seed(const ScheduleRules *rules, const char *target)
{
        static const sd_id128_t application =
                SD_ID128_MAKE(6b, 0e, 52, 3c, 41, 9d, 4f, 0a, 9e, 27, 5d, 8f, 70, c1, 3b, 84);
        char name[256] = "";
        sd_id128_t host;

        if (rules->together)
                target = "";
        if (sd_id128_get_machine_app_specific(application, &host) >= 0)
                return schedule_seed(target, host.qwords[0] ^ host.qwords[1]);
        /* A container has no id, but a name of its own. */
        (void) gethostname(name, sizeof name - 1);
        return schedule_seed(target, schedule_seed(name, 0));
}

int timetable_new(Timetable **ret, sd_event *event, const TimetableEvents *events)
{
        Timetable *timetable = calloc(1, sizeof *timetable);

        if (!timetable)
                return -ENOMEM;
        timetable->event = sd_event_ref(event);
        timetable->events = *events;
        timetable->clock_offset_ns = clock_offset_ns();
        *ret = timetable;
        return 0;
}

Timetable *timetable_free(Timetable *timetable)
{
        if (!timetable)
                return NULL;
        for (size_t i = 0; i < CONFIG_MAX_TARGETS; i++)
                sd_event_source_disable_unref(timetable->entries[i].timer);
        sd_event_unref(timetable->event);
        free(timetable);
        return NULL;
}

void timetable_freep(Timetable **timetable)
{
        timetable_free(*timetable);
}

void timetable_set_rules(Timetable *timetable, const ScheduleRules *rules)
{
        timetable->rules = *rules;
}

void timetable_plan(Timetable *timetable, Target *target, const char *name, int64_t last_real_ns,
                    int64_t not_before_real_ns, int64_t confirm_at_real_ns)
{
        size_t i = find_entry(timetable, target);

        if (i == CONFIG_MAX_TARGETS)
                i = find_entry(timetable, NULL);
        if (i == CONFIG_MAX_TARGETS)
                return; /* cannot be: there is one for each target of a configuration */
        Entry *entry = &timetable->entries[i];
        entry->missed = !entry->target && schedule_is_overdue(&timetable->rules, last_real_ns,
                                                              (int64_t) clock_ns(CLOCK_REALTIME),
                                                              timetable_seed(&timetable->rules, name));
        entry->timetable = timetable;
        entry->target = target;
        memcpy(entry->name, name, strnlen(name, NAME_SIZE - 1) + 1);
        entry->last_real_ns = last_real_ns;
        entry->not_before_real_ns = not_before_real_ns;
        entry->confirm_at_real_ns = confirm_at_real_ns;
        plan(entry);
}

void timetable_retry(Timetable *timetable, Target *target, uint64_t wait_ns)
{
        size_t i = find_entry(timetable, target);
        int64_t now_ns = (int64_t) clock_ns(CLOCK_REALTIME);

        if (i < CONFIG_MAX_TARGETS)
                set_time(&timetable->entries[i], now_ns + (int64_t) (wait_ns > 0 ? wait_ns : RETRY_NS),
                         now_ns, NEXT_RETRY);
}

void timetable_drop(Timetable *timetable, const Target *target)
{
        size_t i = find_entry(timetable, target);

        if (i == CONFIG_MAX_TARGETS)
                return;
        sd_event_source_disable_unref(timetable->entries[i].timer);
        timetable->entries[i] = (Entry){ 0 };
}

int64_t timetable_next_real_ns(const Timetable *timetable, const Target *target, NextWhy *ret_why)
{
        size_t i = find_entry(timetable, target);

        if (ret_why)
                *ret_why = i < CONFIG_MAX_TARGETS ? timetable->entries[i].why : NEXT_NONE;
        return i < CONFIG_MAX_TARGETS ? timetable->entries[i].next_real_ns : SCHEDULE_NEVER;
}

bool timetable_follow_clock(Timetable *timetable)
{
        int64_t offset_ns = clock_offset_ns();
        int64_t step_ns = offset_ns - timetable->clock_offset_ns;

        if (step_ns > -CLOCK_STEP_NS && step_ns < CLOCK_STEP_NS)
                return false;
        timetable->clock_offset_ns = offset_ns;
        log_info("the clock was set by %.0f s: runs are planned anew", (double) step_ns / 1e9);
        for (size_t i = 0; i < CONFIG_MAX_TARGETS; i++)
                if (timetable->entries[i].target)
                        plan(&timetable->entries[i]);
        return true;
}
