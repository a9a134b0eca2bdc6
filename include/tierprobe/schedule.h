/* SPDX-License-Identifier: Apache-2.0 */
/* When the next run is due, and whether one may start now. Pure: time is an argument; of the machine only the
 * zone of local time is known (windows). Knows base. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tierprobe/clock.h"
#include "tierprobe/parameter.h"

typedef struct ScheduleWindow {
        bool set;
        uint16_t start_min, end_min; /* minutes after midnight, from start until before end; it spans midnight
                                      * when end < start; never equal */
} ScheduleWindow;

typedef struct ScheduleRules {
        uint64_t interval_ns;  /* 0: never */
        uint64_t jitter_ns;    /* up to this much is added, differently for each host and target */
        bool catch_up;         /* an overdue run is made up soon, else it is skipped to the next due time */
        bool together;         /* all targets of a host are due at the same moment */
        ScheduleWindow window; /* of local time: when set, runs start only inside */
} ScheduleRules;

/* Once a day, somewhere in the hour after. */
#define SCHEDULE_RULES_DEFAULT \
        ((ScheduleRules){      \
                .interval_ns = 24 * 3600 * NS_PER_S, .jitter_ns = 3600 * NS_PER_S, .catch_up = true })

/* What must stay free beside the test's own bytes; the larger counts. */
typedef struct MinFree {
        uint64_t bytes;
        double ratio; /* of the file system */
} MinFree;

/* What may keep a run that is due or asked for from starting, or end it. */
typedef struct GuardRules {
        uint64_t cooldown_ns;              /* 0: none */
        uint64_t daily_write_budget_bytes; /* 0: no budget */
        MinFree min_free;
        double max_foreign_mb_per_s;   /* 0: no limit */
        double abort_foreign_mb_per_s; /* 0: no limit */
        double abort_io_pressure;      /* percent of the time that others wait for disks; 0: no limit */
        uint64_t max_duration_ns;
} GuardRules;

/* Ten tests a day, and none that the schedule begins on a device that is busy: a tenth of the documented 600
 * MB/s. */
#define GUARD_RULES_DEFAULT                                             \
        ((GuardRules){ .daily_write_budget_bytes = UINT64_C(100) << 30, \
                       .min_free.ratio = 0.01,                          \
                       .max_foreign_mb_per_s = 60,                      \
                       .max_duration_ns = 600 * NS_PER_S })

/* The parameters of both by index, NULL past the end. */
const Parameter *schedule_parameter(size_t index);
const Parameter *guard_parameter(size_t index);

#define SCHEDULE_NEVER INT64_MAX

/* Why the next run is when it is. */
typedef enum NextWhy {
        NEXT_NONE,    /* none is planned */
        NEXT_DUE,     /* a due time of the schedule */
        NEXT_MISSED,  /* it makes up for one that should have begun by now */
        NEXT_CONFIRM, /* it tests a fail once more */
        NEXT_RETRY,   /* it was due, and kept from starting */
        _NEXT_WHY_MAX
} NextWhy;

const char *next_why_to_string(NextWhy why); /* "none", "due", "missed", "confirm", "retry" */

/* When the next run is due, in nanoseconds of CLOCK_REALTIME, or SCHEDULE_NEVER.
 *
 * Due times are whole intervals of local time (24h: midnight, 6h: 0, 6, 12 and 18 o'clock), moved into the
 * next window when they lie in none, plus SEED's place within the jitter, as far as the window goes: the same
 * seed has the same time of every day, whatever runs came late or were asked for in between, and in summer
 * and winter.
 *
 * LAST_REAL_NS is when the last run of the target began (any trigger), 0 when there was none; NOW_REAL_NS is
 * now. A last run in the future (the clock was set back) counts as now. The next run is at least a quarter
 * of an interval, less the jitter, after it.
 *
 * A run is never due at start-up itself: the earliest is min(interval, 2 min) from now. An overdue one, and
 * the first ever, is due then (in a window: when one is open) if catch_up, else at the next of its due times.
 */
int64_t schedule_next(const ScheduleRules *rules, int64_t last_real_ns, int64_t now_real_ns, uint64_t seed);

/* Whether a run should have begun by now and schedule_next() makes up for it. */
bool schedule_is_overdue(const ScheduleRules *rules, int64_t last_real_ns, int64_t now_real_ns,
                         uint64_t seed);

/* SEED's place within the jitter: how much later than its due time a run starts, where no window cuts it. */
uint64_t schedule_place_ns(const ScheduleRules *rules, uint64_t seed);

/* Whether NOW_REAL_NS lies in the window (true without one): for the moment a timer fires, since the clock
 * may have been set in the meantime. */
bool schedule_may_start(const ScheduleRules *rules, int64_t now_real_ns);

/* The first time from REAL_NS on that lies in a window (REAL_NS itself without one); SCHEDULE_NEVER: none
 * opens. */
int64_t schedule_in_window(const ScheduleRules *rules, int64_t real_ns);

/* How old a verdict may be: 2 x interval + jitter; with no schedule 7 days. A verdict older is stale. */
uint64_t schedule_stale_after_ns(const ScheduleRules *rules);

/* How long a run must still wait for the cooldown, 0 when it may start. LAST_END_REAL_NS is when the last one
 * ended (0: none); a time in the future counts as now. */
uint64_t schedule_cooldown_left_ns(uint64_t cooldown_ns, int64_t last_end_real_ns, int64_t now_real_ns);

/* A 64-bit seed out of a target's name and a number, so that targets and hosts do not run in step. */
uint64_t schedule_seed(const char *name, uint64_t salt);
