/* When the next run is due, and whether one may start now. Pure: time is an argument. Knows base. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct ScheduleRules {
        uint64_t interval_ns; /* 0: never */
        uint64_t jitter_ns;   /* up to this much is added, differently for each target and run */
        bool catch_up;        /* an overdue run is made up soon, else it is skipped to the next due time */
        bool has_window;      /* runs start only inside a window of local time: */
        uint16_t window_start_min, window_end_min; /* minutes after midnight, from start until before end; it
                                                    * spans midnight when end < start; never equal */
} ScheduleRules;

#define SCHEDULE_NEVER INT64_MAX

/* When the next run is due, in nanoseconds of CLOCK_REALTIME, or SCHEDULE_NEVER.
 *
 * LAST_REAL_NS is when the last run of the target began (any trigger), 0 when there was none; NOW_REAL_NS is
 * now; SEED picks the jitter: the same seed gives the same time. A run is never due at start-up itself: an
 * overdue one waits at least min(interval, 1 min). A last run in the future (the clock was set back) counts
 * as now. */
int64_t schedule_next(const ScheduleRules *rules, int64_t last_real_ns, int64_t now_real_ns, uint64_t seed);

/* How old a verdict may be: 2 x interval + jitter; with no schedule 7 days. A verdict older is stale. */
uint64_t schedule_stale_after_ns(const ScheduleRules *rules);

/* How long a run must still wait for the cooldown, 0 when it may start. LAST_END_REAL_NS is when the last one
 * ended (0: none); a time in the future counts as now. */
uint64_t schedule_cooldown_left_ns(uint64_t cooldown_ns, int64_t last_end_real_ns, int64_t now_real_ns);

/* A 64-bit seed out of a target's name and a number, so that targets and hosts do not run in step. */
uint64_t schedule_seed(const char *name, uint64_t salt);
