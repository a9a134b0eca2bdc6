/* SPDX-License-Identifier: Apache-2.0 */
/* When the next run is due, and whether one may start now. Pure but for local time, which the C library
 * keeps: the zone's rules are read once. Knows base. */

#include "tierprobe/schedule.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"

#include <assert.h>
#include <time.h>

#define MINUTE_S INT64_C(60)
#define DAY_MIN 1440

/* A window opens every day, but for days that a change of the clocks takes away: of it, or whole (a zone
 * that jumps over the date line). Not within this time: never. */
#define SEARCH_MIN (4 * DAY_MIN)

#define STALE_WITHOUT_SCHEDULE_NS (7 * 24 * 3600 * NS_PER_S)
#define SOONEST_NS (120 * NS_PER_S)

const char *next_why_to_string(NextWhy why)
{
        static const char *const names[] = {
                [NEXT_NONE] = "none",       [NEXT_DUE] = "due",     [NEXT_MISSED] = "missed",
                [NEXT_CONFIRM] = "confirm", [NEXT_RETRY] = "retry",
        };
        static_assert(ELEMENTSOF(names) == _NEXT_WHY_MAX, "each has its name");

        return names[why];
}

/* ---- numbers that cannot run over ---- */

static int64_t add(int64_t real_ns, uint64_t ns)
{
        int64_t sum = 0;

        if (ns > INT64_MAX || __builtin_add_overflow(real_ns, (int64_t) ns, &sum))
                return SCHEDULE_NEVER;
        return sum;
}

static int64_t later(int64_t a, int64_t b)
{
        return a > b ? a : b;
}

static uint64_t shorter(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}

/* Mixes all bits of X into each (the finalizer of splitmix64). */
static uint64_t mix(uint64_t x)
{
        x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
        return x ^ (x >> 31);
}

uint64_t schedule_seed(const char *name, uint64_t salt)
{
        uint64_t hash = UINT64_C(0xcbf29ce484222325);

        for (; *name; name++)
                hash = (hash ^ (unsigned char) *name) * UINT64_C(0x100000001b3);
        return mix(hash ^ mix(salt + UINT64_C(0x9e3779b97f4a7c15)));
}

/* The seed's part of RANGE_NS: 0 <= it < RANGE_NS, or 0. Taken as a fraction, so that the same seed keeps
 * its place in a shorter range. */
static uint64_t spread(uint64_t range_ns, uint64_t seed)
{
        return (uint64_t) (((unsigned __int128) range_ns * mix(seed)) >> 64);
}

/* ---- windows of local time ---- */

static bool in_window(const ScheduleRules *rules, int64_t seconds)
{
        struct tm tm;
        time_t time = seconds;

        if (!localtime_r(&time, &tm))
                return false;
        int minute = tm.tm_hour * 60 + tm.tm_min;
        bool after_start = minute >= rules->window.start_min, before_end = minute < rules->window.end_min;
        return rules->window.start_min < rules->window.end_min ? after_start && before_end
                                                               : after_start || before_end;
}

bool schedule_may_start(const ScheduleRules *rules, int64_t now_real_ns)
{
        return !rules->window.set || in_window(rules, now_real_ns / (int64_t) NS_PER_S);
}

/* Windows are found by the clock's face where the zone keeps its distance from UTC in between, and by looking
 * at every minute where it does not: such days have 23 or 25 hours, or none at all, and an hour can come
 * twice. Minutes are those of the wall clock, which in every zone of this century begin with those of UTC. */

/* How many minutes the face is from EDGE_MIN, ahead or back; -1 where the face alone does not tell. */
static int minutes_to(int64_t minute, unsigned edge_min, bool ahead)
{
        struct tm here, there;
        time_t time = minute;

        if (!localtime_r(&time, &here))
                return -1;
        int face_min = here.tm_hour * 60 + here.tm_min;
        int distance_min = ahead ? (int) edge_min - face_min : face_min - (int) edge_min;
        distance_min = (distance_min + DAY_MIN) % DAY_MIN;
        time += (ahead ? distance_min : -distance_min) * (time_t) MINUTE_S;
        return localtime_r(&time, &there) && here.tm_gmtoff == there.tm_gmtoff ? distance_min : -1;
}

/* The first minute, going back from SECONDS, before which the state is other than WANTED (in a window, or
 * not). */
static int64_t search_back(const ScheduleRules *rules, int64_t seconds, bool wanted)
{
        int64_t minute = seconds - seconds % MINUTE_S;
        int back_min =
                in_window(rules, minute - MINUTE_S) == wanted
                        ? minutes_to(minute, wanted ? rules->window.start_min : rules->window.end_min, false)
                        : 0;

        if (back_min >= 0)
                return minute - back_min * MINUTE_S;
        for (int i = 0; i < SEARCH_MIN && in_window(rules, minute - MINUTE_S) == wanted; i++)
                minute -= MINUTE_S;
        return minute;
}

/* The first minute from SECONDS on that is in a window, or outside, as WANTED; -1 when there is none. */
static int64_t search_ahead(const ScheduleRules *rules, int64_t seconds, bool wanted)
{
        int64_t minute = seconds - seconds % MINUTE_S;
        int ahead_min =
                in_window(rules, minute) == wanted
                        ? 0
                        : minutes_to(minute, wanted ? rules->window.start_min : rules->window.end_min, true);

        if (ahead_min >= 0)
                return minute + ahead_min * MINUTE_S;
        for (int i = 0; i < SEARCH_MIN; i++, minute += MINUTE_S)
                if (in_window(rules, minute) == wanted)
                        return minute;
        return -1;
}

/* A time in the window that holds FROM_NS, not before it, spread over jitter_ns as far as the window goes. */
static int64_t place_in_window(const ScheduleRules *rules, int64_t from_ns, uint64_t seed)
{
        int64_t closing = search_ahead(rules, from_ns / (int64_t) NS_PER_S, false);
        uint64_t room_ns =
                closing < 0 ? rules->jitter_ns : (uint64_t) (closing * (int64_t) NS_PER_S - from_ns);

        return add(from_ns, spread(shorter(rules->jitter_ns, room_ns), seed));
}

/* AT_NS when it lies in a window, else a time in the next one; SCHEDULE_NEVER when none opens. */
static int64_t move_into_window(const ScheduleRules *rules, int64_t at_ns, uint64_t seed)
{
        int64_t seconds = at_ns / (int64_t) NS_PER_S;

        if (in_window(rules, seconds))
                return at_ns;
        int64_t opening = search_ahead(rules, seconds, true);
        return opening < 0 ? SCHEDULE_NEVER : place_in_window(rules, opening * (int64_t) NS_PER_S, seed);
}

int64_t schedule_in_window(const ScheduleRules *rules, int64_t real_ns)
{
        return rules->window.set ? move_into_window(rules, real_ns, 0) : real_ns;
}

/* ---- the grid ---- */

/* How far local time is ahead of UTC. */
static int64_t zone_offset_ns(int64_t ns)
{
        struct tm tm;
        time_t time = ns / (int64_t) NS_PER_S;

        return localtime_r(&time, &tm) ? tm.tm_gmtoff * (int64_t) NS_PER_S : 0;
}

/* The first due time that is not before FROM_NS. Due times are whole intervals of local time, counted from
 * its epoch: those of a day come at midnight, in summer and in winter. */
static int64_t next_due(uint64_t interval_ns, int64_t from_ns)
{
        int64_t offset_ns = zone_offset_ns(from_ns), local_ns = 0;

        if (from_ns <= 0 || interval_ns > INT64_MAX || __builtin_add_overflow(from_ns, offset_ns, &local_ns))
                return from_ns <= 0 ? 0 : SCHEDULE_NEVER;
        int64_t interval = (int64_t) interval_ns, behind_ns = local_ns % interval;
        local_ns = behind_ns > 0 ? add(local_ns, (uint64_t) (interval - behind_ns)) : local_ns;
        /* Where the clocks change in between, what was found may be before it. */
        for (int i = 0; i < 3 && local_ns != SCHEDULE_NEVER; i++) {
                int64_t due_ns = local_ns - zone_offset_ns(local_ns - offset_ns);

                if (due_ns >= from_ns)
                        return due_ns;
                local_ns = add(local_ns, interval_ns);
        }
        return local_ns == SCHEDULE_NEVER ? local_ns : from_ns;
}

/* ---- the next run ---- */

/* When a run due at DUE_NS is meant to start, had the machine been up all the time. */
static int64_t planned(const ScheduleRules *rules, int64_t due_ns, uint64_t seed)
{
        if (due_ns == SCHEDULE_NEVER || !rules->window.set)
                return due_ns == SCHEDULE_NEVER ? due_ns : add(due_ns, spread(rules->jitter_ns, seed));
        return in_window(rules, due_ns / (int64_t) NS_PER_S) ? place_in_window(rules, due_ns, seed)
                                                             : move_into_window(rules, due_ns, seed);
}

/* The first start that is not before BOUND_NS.
 *
 * A due time between windows stands for the opening after it; that it has passed itself must not put the run
 * off, however often this is asked. */
static int64_t next_start(const ScheduleRules *rules, int64_t bound_ns, uint64_t seed)
{
        uint64_t jitter_ns = spread(rules->jitter_ns, seed);
        int64_t from_ns = (uint64_t) bound_ns > jitter_ns ? bound_ns - (int64_t) jitter_ns : 0;
        int64_t due_ns = bound_ns == SCHEDULE_NEVER ? SCHEDULE_NEVER : next_due(rules->interval_ns, from_ns);
        int64_t at_ns = planned(rules, due_ns, seed);

        if (!rules->window.set || at_ns == SCHEDULE_NEVER)
                return at_ns;
        if (at_ns < bound_ns) /* the window's end has cut its jitter */
                at_ns = planned(rules, next_due(rules->interval_ns, due_ns + 1), seed);
        int64_t bound = bound_ns / (int64_t) NS_PER_S;
        int64_t opening =
                in_window(rules, bound) ? search_back(rules, bound, true) : search_ahead(rules, bound, true);
        if (opening < 0)
                return SCHEDULE_NEVER;
        int64_t closing_before_ns = search_back(rules, opening, false) * (int64_t) NS_PER_S;
        int64_t opening_ns = opening * (int64_t) NS_PER_S;
        int64_t start_ns = place_in_window(rules, opening_ns, seed);
        bool stands_for_opening = next_due(rules->interval_ns, closing_before_ns) < opening_ns;
        return stands_for_opening && start_ns >= bound_ns && start_ns < at_ns ? start_ns : at_ns;
}

/* When the run after the one at LAST_NS (0: there was none) is meant to start. One that came late, or was
 * asked for in between, stands for a start that is less than a quarter of an interval away. */
static int64_t start_after(const ScheduleRules *rules, int64_t last_ns, uint64_t seed)
{
        return last_ns > 0 ? next_start(rules, add(last_ns, rules->interval_ns / 4), seed) : 0;
}

int64_t schedule_next(const ScheduleRules *rules, int64_t last_real_ns, int64_t now_real_ns, uint64_t seed)
{
        if (rules->interval_ns == 0)
                return SCHEDULE_NEVER;
        int64_t now_ns = later(now_real_ns, 0);
        int64_t last_ns = last_real_ns > now_ns ? now_ns : later(last_real_ns, 0);
        int64_t soonest_ns = add(now_ns, shorter(rules->interval_ns, SOONEST_NS));

        int64_t at_ns = start_after(rules, last_ns, seed);
        if (at_ns < now_ns)
                at_ns = rules->catch_up ? soonest_ns : next_start(rules, now_ns, seed);
        at_ns = later(at_ns, soonest_ns);
        if (!rules->window.set || at_ns == SCHEDULE_NEVER)
                return at_ns;
        return move_into_window(rules, at_ns, seed);
}

uint64_t schedule_place_ns(const ScheduleRules *rules, uint64_t seed)
{
        return spread(rules->jitter_ns, seed);
}

bool schedule_is_overdue(const ScheduleRules *rules, int64_t last_real_ns, int64_t now_real_ns, uint64_t seed)
{
        return rules->interval_ns > 0 && rules->catch_up && last_real_ns > 0 &&
               start_after(rules, last_real_ns, seed) < now_real_ns;
}

uint64_t schedule_stale_after_ns(const ScheduleRules *rules)
{
        uint64_t after_ns = 0;

        if (rules->interval_ns == 0)
                return STALE_WITHOUT_SCHEDULE_NS;
        if (__builtin_mul_overflow(rules->interval_ns, UINT64_C(2), &after_ns) ||
            __builtin_add_overflow(after_ns, rules->jitter_ns, &after_ns))
                return UINT64_MAX;
        return after_ns;
}

uint64_t schedule_cooldown_left_ns(uint64_t cooldown_ns, int64_t last_end_real_ns, int64_t now_real_ns)
{
        if (last_end_real_ns == 0)
                return 0;
        uint64_t passed_ns =
                last_end_real_ns > now_real_ns ? 0 : (uint64_t) now_real_ns - (uint64_t) last_end_real_ns;
        return passed_ns < cooldown_ns ? cooldown_ns - passed_ns : 0;
}
