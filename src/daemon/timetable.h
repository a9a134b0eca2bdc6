/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that start by themselves: each target's next time, and its timer. That one is due goes up by a
 * callback. Knows schedule; of a target only that it is another one than its neighbour. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <systemd/sd-event.h>

#include "tierprobe/schedule.h"

typedef struct Target Target;
typedef struct Timetable Timetable;

typedef struct TimetableEvents {
        void *userdata;
        /* A run is due and may start now; MISSED: it was overdue when its target was first planned, at the
         * start of the daemon, and is made up for. What comes of it is told by timetable_plan() or
         * timetable_retry(). */
        void (*due)(Target *target, bool missed, void *userdata);
} TimetableEvents;

/* A target's place in the jitter: of this host (its machine id, which nobody can tell from it) and the
 * target, or of the host alone where RULES have all due together. */
uint64_t timetable_seed(const ScheduleRules *rules, const char *target);

int timetable_new(Timetable **ret, sd_event *event, const TimetableEvents *events);
Timetable *timetable_free(Timetable *timetable);
void timetable_freep(Timetable **timetable);

/* The rules for all plans that are made from now on. */
void timetable_set_rules(Timetable *timetable, const ScheduleRules *rules);

/* Plans the next run of TARGET, whose name is NAME and whose last one began at LAST_REAL_NS (see
 * schedule_next()), for not before NOT_BEFORE_REAL_NS; one that confirms another (CONFIRM_AT_REAL_NS, 0:
 * none) for that time if it comes first, or for when a window opens. In place of what was planned before. */
void timetable_plan(Timetable *timetable, Target *target, const char *name, int64_t last_real_ns,
                    int64_t not_before_real_ns, int64_t confirm_at_real_ns);

/* Tries a run that was due once more, after WAIT_NS; 0: after a while. */
void timetable_retry(Timetable *timetable, Target *target, uint64_t wait_ns);

/* Forgets TARGET. */
void timetable_drop(Timetable *timetable, const Target *target);

/* When the next run is due, CLOCK_REALTIME, or SCHEDULE_NEVER; RET_WHY (may be NULL): why then. */
int64_t timetable_next_real_ns(const Timetable *timetable, const Target *target, NextWhy *ret_why);

/* Plans everything anew when the clock was set, and then returns true: timers are set for a span from their
 * planning, as a step of the clock must not fire them. To be called now and then. */
bool timetable_follow_clock(Timetable *timetable);
