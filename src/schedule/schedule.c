/* SPDX-License-Identifier: Apache-2.0 */
/* When the next run is due, and whether one may start now. Pure but for local time, which the C library
 * keeps: the zone's rules are read once. Knows base. */

#include "tierprobe/schedule.h"

#include "tierprobe/clock.h"

#include <time.h>

#define MINUTE_S INT64_C(60)
#define DAY_MIN 1440

/* A window opens every day, but for days that a change of the clocks takes away: of it, or whole (a zone
 * that jumps over the date line). Not within this time: never. */
#define SEARCH_MIN (4 * DAY_MIN)

#define STALE_WITHOUT_SCHEDULE_NS (7 * 24 * 3600 * NS_PER_S)
#define SOONEST_NS (60 * NS_PER_S)

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

/* Windows are found by looking at every minute: days have 23, 24 or 25 hours, an hour can come twice or not
 * at all, and no arithmetic on the clock's face is right on all of them. Minutes are those of the wall
 * clock, which in every zone of this century begin with those of UTC. */

/* The first minute, going back from SECONDS, before which the state is other than WANTED (in a window, or
 * not). */
static int64_t search_back(const ScheduleRules *rules, int64_t seconds, bool wanted)
{
        int64_t minute = seconds - seconds % MINUTE_S;

        for (int i = 0; i < SEARCH_MIN && in_window(rules, minute - MINUTE_S) == wanted; i++)
                minute -= MINUTE_S;
        return minute;
}

/* The first minute from SECONDS on that is in a window, or outside, as WANTED; -1 when there is none. */
static int64_t search_ahead(const ScheduleRules *rules, int64_t seconds, bool wanted)
{
        int64_t minute = seconds - seconds % MINUTE_S;

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

/* ---- the next run ---- */

/* When a run due at DUE_NS is meant to start, had the machine been up all the time.
 *
 * In another window than the last run's it may start somewhat before it is due: a due time that moved on by
 * its jitter with every run would soon fall behind the window's end and lose a whole day. */
static int64_t planned(const ScheduleRules *rules, int64_t last_ns, int64_t due_ns, uint64_t seed)
{
        int64_t at_ns = add(due_ns, spread(rules->jitter_ns, seed));

        if (!rules->window.set || at_ns == SCHEDULE_NEVER)
                return at_ns;
        int64_t due = due_ns / (int64_t) NS_PER_S;
        if (!in_window(rules, due))
                return move_into_window(rules, due_ns, seed);
        int64_t opening_ns = search_back(rules, due, true) * (int64_t) NS_PER_S;
        if (last_ns >= opening_ns)
                return move_into_window(rules, at_ns, seed);

        uint64_t early_ns = rules->interval_ns / 24;
        if (early_ns < rules->jitter_ns)
                early_ns = shorter(rules->jitter_ns, rules->interval_ns / 2);
        return place_in_window(rules, later(opening_ns, due_ns - (int64_t) early_ns), seed);
}

/* The first of AT_NS + k intervals that is not before NOT_BEFORE_NS. */
static int64_t next_on_grid(int64_t at_ns, uint64_t interval_ns, int64_t not_before_ns)
{
        uint64_t ahead_ns = 0;

        if (at_ns >= not_before_ns)
                return at_ns;
        uint64_t behind_ns = (uint64_t) not_before_ns - (uint64_t) at_ns;
        uint64_t n = behind_ns / interval_ns + (behind_ns % interval_ns != 0);
        return __builtin_mul_overflow(n, interval_ns, &ahead_ns) ? SCHEDULE_NEVER : add(at_ns, ahead_ns);
}

/* The next of the due times after a missed one, DUE_NS. One between windows stands for the opening after it;
 * that it has passed itself must not put the run off, however often this is asked. */
static int64_t next_due_time(const ScheduleRules *rules, int64_t due_ns, int64_t now_ns, uint64_t seed)
{
        int64_t next_ns = next_on_grid(due_ns, rules->interval_ns, now_ns);

        if (!rules->window.set || next_ns == SCHEDULE_NEVER)
                return next_ns;
        int64_t now = now_ns / (int64_t) NS_PER_S;
        int64_t opening =
                in_window(rules, now) ? search_back(rules, now, true) : search_ahead(rules, now, true);
        if (opening < 0)
                return SCHEDULE_NEVER;
        int64_t closing_before = search_back(rules, opening, false);
        int64_t start_ns = place_in_window(rules, opening * (int64_t) NS_PER_S, seed);
        int64_t in_window_ns = move_into_window(rules, next_ns, seed);
        bool stands_for_opening =
                next_on_grid(due_ns, rules->interval_ns, closing_before * (int64_t) NS_PER_S) <
                opening * (int64_t) NS_PER_S;
        return stands_for_opening && start_ns >= now_ns && start_ns < in_window_ns ? start_ns : in_window_ns;
}

int64_t schedule_next(const ScheduleRules *rules, int64_t last_real_ns, int64_t now_real_ns, uint64_t seed)
{
        if (rules->interval_ns == 0)
                return SCHEDULE_NEVER;
        int64_t now_ns = later(now_real_ns, 0);
        int64_t last_ns = last_real_ns > now_ns ? now_ns : later(last_real_ns, 0);
        int64_t soonest_ns = add(now_ns, shorter(rules->interval_ns, SOONEST_NS));

        /* Without a last run the due times begin at the epoch, so that a daemon that does not catch up and
         * is restarted more often than it runs does not put off its first run for ever. */
        int64_t due_ns = last_ns > 0 ? add(last_ns, rules->interval_ns) : 0;
        int64_t at_ns = planned(rules, last_ns, due_ns, seed);
        if (at_ns < now_ns)
                at_ns = rules->catch_up ? soonest_ns
                                        : next_due_time(rules, add(due_ns, spread(rules->jitter_ns, seed)),
                                                        now_ns, seed);
        at_ns = later(at_ns, soonest_ns);
        if (!rules->window.set || at_ns == SCHEDULE_NEVER)
                return at_ns;
        return move_into_window(rules, at_ns, seed);
}

bool schedule_is_overdue(const ScheduleRules *rules, int64_t last_real_ns, int64_t now_real_ns)
{
        return rules->interval_ns > 0 && rules->catch_up && last_real_ns > 0 &&
               add(add(last_real_ns, rules->interval_ns), rules->jitter_ns) < now_real_ns;
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
