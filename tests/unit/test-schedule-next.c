/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule over simulated years, in zones that change their clocks, with and without windows. */

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/schedule.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "seeds.h"

#define SECOND INT64_C(1000000000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define SOONEST (2 * MINUTE) /* after a start */

static void set_zone(const char *zone)
{
        assert_int_equal(setenv("TZ", zone, 1), 0); /* NOLINT(concurrency-mt-unsafe): one thread */
        tzset();
}

static int64_t at(const char *text)
{
        int64_t ns = 0;

        assert_int_equal(rfc3339_parse(text, &ns), 0);
        return ns;
}

static void assert_time(int64_t ns, const char *wanted)
{
        char text[RFC3339_SIZE];

        assert_string_equal(rfc3339_format(text, ns), wanted);
}

static ScheduleRules rules_of(int64_t interval_ns, int64_t jitter_ns)
{
        return (ScheduleRules){ .interval_ns = (uint64_t) interval_ns,
                                .jitter_ns = (uint64_t) jitter_ns,
                                .catch_up = true };
}

static ScheduleRules windowed(int64_t interval_ns, int64_t jitter_ns, unsigned start_min, unsigned end_min)
{
        ScheduleRules rules = rules_of(interval_ns, jitter_ns);

        rules.window.set = true;
        rules.window.start_min = (uint16_t) start_min;
        rules.window.end_min = (uint16_t) end_min;
        return rules;
}

/* The window by the face of the clock, said another way than in the code that is tested. */
static bool face_in_window(const ScheduleRules *rules, int64_t ns)
{
        struct tm tm;
        time_t seconds = ns / SECOND;

        assert_non_null(localtime_r(&seconds, &tm));
        int length = (rules->window.end_min - rules->window.start_min + 1440) % 1440;
        int since = (tm.tm_hour * 60 + tm.tm_min - rules->window.start_min + 1440) % 1440;
        return since < length;
}

/* As different as machine ids are. */
static uint64_t mix_host(uint64_t host)
{
        return (host + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static uint64_t random_u64(void)
{
        return (uint64_t) random() << 33 ^ (uint64_t) random() << 11 ^ (uint64_t) random();
}

/* ---- without a window ---- */

static void test_plain(void **state)
{
        int64_t now = at("2026-11-30T12:00:00Z");
        ScheduleRules rules = rules_of(DAY, 0);

        (void) state;
        assert_true(schedule_next(&(ScheduleRules){ .interval_ns = 0 }, 0, now, 1) == SCHEDULE_NEVER);
        set_zone("UTC");
        assert_int_equal(schedule_next(&rules, now - HOUR, now, 1), now + 12 * HOUR);
        assert_int_equal(schedule_next(&rules, 0, now, 1), now + SOONEST);               /* never ran */
        assert_int_equal(schedule_next(&rules, now - 3 * DAY, now, 1), now + SOONEST);   /* overdue */
        assert_int_equal(schedule_next(&rules, now + DAY, now, 1), now + 12 * HOUR);     /* clock set back */
        assert_int_equal(schedule_next(&rules, now - 26 * HOUR, now, 1), now + SOONEST); /* missed midnight */
        rules.interval_ns = 2 * NS_PER_S;
        assert_int_equal(schedule_next(&rules, now - HOUR, now, 1), now + 2 * SECOND);
}

static void test_without_catching_up(void **state)
{
        int64_t now = at("2026-11-30T12:00:00Z");
        ScheduleRules rules = rules_of(DAY, 0);

        (void) state;
        rules.catch_up = false;
        set_zone("UTC");
        assert_int_equal(schedule_next(&rules, now - HOUR, now, 1), now + 12 * HOUR);
        assert_int_equal(schedule_next(&rules, now - 49 * HOUR, now, 1), now + 12 * HOUR);
        assert_time(schedule_next(&rules, 0, now, 1), "2026-12-01T00:00:00.000Z");

        /* Asked again between the due time and its jitter, the run is not lost. */
        rules.jitter_ns = (uint64_t) HOUR;
        int64_t midnight = now + 12 * HOUR;
        for (uint64_t seed = 0; seed < seeds_of(100); seed++) {
                int64_t next = schedule_next(&rules, now, midnight - 30 * MINUTE, seed);

                assert_true(next >= midnight && next < midnight + HOUR);
                if (next > midnight + 3 * MINUTE)
                        assert_int_equal(schedule_next(&rules, now, next - 2 * MINUTE, seed), next);
        }
}

/* Restarted every few minutes, the daemon still runs its first test. */
static void test_restarts_do_not_put_off_the_first_run(void **state)
{
        ScheduleRules rules = rules_of(DAY, HOUR);
        int64_t now = at("2026-11-30T12:00:00Z");
        int64_t end = now + 2 * DAY;
        bool ran = false;

        (void) state;
        rules.catch_up = false;
        for (; now < end && !ran; now += 7 * MINUTE)
                ran = schedule_next(&rules, 0, now, 5) < now + 7 * MINUTE;
        assert_true(ran);
}

static void test_jitter_spreads(void **state)
{
        ScheduleRules rules = rules_of(DAY, HOUR);
        int64_t now = at("2026-11-30T12:00:00Z");
        unsigned tenths[10] = { 0 };

        (void) state;
        set_zone("UTC");
        for (uint64_t i = 0; i < 10000; i++) {
                int64_t j = schedule_next(&rules, now, now, schedule_seed("cache", i)) - now - 12 * HOUR;

                assert_true(j >= 0 && j < HOUR);
                tenths[j / (HOUR / 10)]++;
        }
        for (size_t i = 0; i < 10; i++)
                assert_in_range(tenths[i], 850, 1150);
        assert_true(schedule_seed("a", 1) != schedule_seed("b", 1));
        assert_true(schedule_seed("a", 1) != schedule_seed("a", 2));
        assert_true(schedule_seed("a", 1) == schedule_seed("a", 1));
}

/* Whatever the numbers: not before the earliest, the same when asked again, never an overflow. */
static void test_random(void **state)
{
        (void) state;
        set_zone("Europe/Berlin");
        srandom(20261130);
        for (unsigned i = 0; i < seeds_of(30000); i++) {
                ScheduleRules rules = {
                        .interval_ns = random_u64() >> (random() % 64),
                        .jitter_ns = random_u64() >> (random() % 64),
                        .catch_up = random() % 2,
                        .window.set = random() % 4 == 0,
                        .window.start_min = (uint16_t) (random() % 1440),
                        .window.end_min = (uint16_t) (random() % 1440),
                };
                int64_t now = (int64_t) (random_u64() >> (1 + random() % 40));
                int64_t last =
                        (int64_t) (random_u64() >> (1 + random() % 40)) - (random() % 100 ? 0 : INT64_MAX);
                uint64_t seed = random_u64();

                if (rules.window.start_min == rules.window.end_min)
                        rules.window.set = false;
                int64_t next = schedule_next(&rules, last, now, seed);
                assert_true(next == schedule_next(&rules, last, now, seed));
                if (next == SCHEDULE_NEVER)
                        continue;
                assert_true(rules.interval_ns != 0);
                assert_true(next - now >= (int64_t) (rules.interval_ns < (uint64_t) SOONEST
                                                             ? rules.interval_ns
                                                             : (uint64_t) SOONEST));
                if (rules.window.set)
                        assert_true(face_in_window(&rules, next));
        }
        (void) schedule_next(&(ScheduleRules){ .interval_ns = 1 }, INT64_MIN, INT64_MIN, 0);
}

/* ---- windows ---- */

static void test_window_by_example(void **state)
{
        ScheduleRules rules = windowed(DAY, 0, 60, 300);

        (void) state;
        set_zone("Europe/Berlin"); /* UTC+1 in winter */
        /* Last run last night: tonight at the window's opening. */
        assert_time(schedule_next(&rules, at("2026-11-30T00:30:00Z"), at("2026-11-30T00:31:00Z"), 1),
                    "2026-12-01T00:00:00.000Z");
        /* At noon, by hand: that moves no other run. */
        assert_time(schedule_next(&rules, at("2026-11-30T11:00:00Z"), at("2026-11-30T11:01:00Z"), 1),
                    "2026-12-01T00:00:00.000Z");
        /* Never ran, at noon: tonight. In the window: soon. */
        assert_time(schedule_next(&rules, 0, at("2026-11-30T11:00:00Z"), 1), "2026-12-01T00:00:00.000Z");
        assert_time(schedule_next(&rules, 0, at("2026-11-30T02:00:00Z"), 1), "2026-11-30T02:02:00.000Z");
        /* Too late for this window. */
        assert_time(schedule_next(&rules, 0, at("2026-11-30T03:59:30Z"), 1), "2026-12-01T00:00:00.000Z");

        /* Shorter than the window: as it is within, then the next night. */
        rules.interval_ns = (uint64_t) HOUR;
        assert_time(schedule_next(&rules, at("2026-11-30T00:30:00Z"), at("2026-11-30T00:31:00Z"), 1),
                    "2026-11-30T01:00:00.000Z");
        assert_time(schedule_next(&rules, at("2026-11-30T03:30:00Z"), at("2026-11-30T03:31:00Z"), 1),
                    "2026-12-01T00:00:00.000Z");

        /* Missed and not made up: the next due time, not the open window. */
        rules.interval_ns = (uint64_t) DAY;
        rules.catch_up = false;
        assert_time(schedule_next(&rules, at("2026-11-27T00:30:00Z"), at("2026-11-30T01:00:00Z"), 1),
                    "2026-12-01T00:00:00.000Z");
        rules.catch_up = true;
        assert_time(schedule_next(&rules, at("2026-11-27T00:30:00Z"), at("2026-11-30T01:00:00Z"), 1),
                    "2026-11-30T01:02:00.000Z");

        /* Over midnight. */
        rules = windowed(DAY, 0, 22 * 60, 4 * 60);
        assert_time(schedule_next(&rules, 0, at("2026-11-30T11:00:00Z"), 1), "2026-11-30T21:00:00.000Z");
        assert_time(schedule_next(&rules, 0, at("2026-11-30T22:59:30Z"), 1), "2026-11-30T23:01:30.000Z");
        assert_true(schedule_may_start(&rules, at("2026-11-30T21:00:00Z")));
        assert_true(schedule_may_start(&rules, at("2026-11-30T02:59:59Z")));
        assert_false(schedule_may_start(&rules, at("2026-11-30T03:00:00Z")));
        assert_false(schedule_may_start(&rules, at("2026-11-30T20:59:59Z")));
        rules.window.set = false;
        assert_true(schedule_may_start(&rules, at("2026-11-30T12:00:00Z")));
}

/* The nights on which clocks change, in Berlin: 02:00 to 03:00 is missing on 2026-03-29 and comes twice on
 * 2026-10-25. */
static void test_window_when_clocks_change(void **state)
{
        ScheduleRules rules = windowed(DAY, 0, 2 * 60, 3 * 60);

        (void) state;
        set_zone("Europe/Berlin");
        assert_time(schedule_next(&rules, 0, at("2026-03-28T12:00:00Z"), 1), "2026-03-30T00:00:00.000Z");
        assert_time(schedule_next(&rules, 0, at("2026-10-24T12:00:00Z"), 1), "2026-10-25T00:00:00.000Z");
        assert_true(schedule_may_start(&rules, at("2026-10-25T00:30:00Z")));
        assert_true(schedule_may_start(&rules, at("2026-10-25T01:30:00Z")));
        assert_false(schedule_may_start(&rules, at("2026-10-25T02:00:00Z")));

        /* The missing hour takes the beginning of this one. */
        rules = windowed(DAY, 0, 2 * 60 + 15, 5 * 60);
        assert_time(schedule_next(&rules, 0, at("2026-03-28T12:00:00Z"), 1), "2026-03-29T01:00:00.000Z");
}

/* Ten years: the daemon is up all the time, a run takes a minute. In its window every time, and once a night
 * but for the nights that have no window. */
static void test_years_of_nights(void **state)
{
        static const char *const zones[] = { "UTC",          "Europe/Berlin",       "America/New_York",
                                             "Asia/Kolkata", "Australia/Lord_Howe", "America/St_Johns",
                                             "Pacific/Apia", "Africa/Casablanca",   "Asia/Kathmandu" };
        static const unsigned windows[][2] = {
                { 60, 300 }, { 1320, 240 }, { 0, 1439 }, { 120, 180 }, { 1439, 0 }
        };

        (void) state;
        for (size_t z = 0; z < seeds_of(ELEMENTSOF(zones)); z++) {
                set_zone(zones[z]);
                for (size_t w = 0; w < ELEMENTSOF(windows); w++) {
                        int years = w == 0 ? 10 : 2;
                        ScheduleRules rules = windowed(DAY, HOUR, windows[w][0], windows[w][1]);
                        int64_t start = at("2020-01-15T12:00:00Z"), last = 0, now = start;
                        int64_t end = start + years * 365 * DAY;
                        int runs = 0, long_gaps = 0;

                        while (now < end) {
                                int64_t next = schedule_next(&rules, last, now, schedule_seed("cache", w));

                                assert_true(face_in_window(&rules, next));
                                assert_true(schedule_may_start(&rules, next));
                                assert_true(next > now);
                                if (runs > 1) { /* the first one is soon after the start */
                                        assert_true(next - last >= 23 * HOUR);
                                        assert_true(next - last <= 52 * HOUR);
                                        long_gaps += next - last > 27 * HOUR;
                                }
                                last = next;
                                now = last + MINUTE;
                                runs++;
                        }
                        /* A night may lose its window when the clocks go forward; a day of 25 hours may
                         * have two runs in one that is as long as a day. */
                        assert_in_range(long_gaps, 0, 2 * years);
                        assert_in_range(runs, years * 365 - 4 * years, years * 365 + 2 + years);
                }
        }
}

/* Years with down times, reloads (which ask again), manual runs and clocks that are set: always in the
 * window, and never starved while the daemon is up. */
static void test_years_of_trouble(void **state)
{
        static const char *const zones[] = { "Europe/Berlin", "America/New_York", "Asia/Kolkata" };

        (void) state;
        for (unsigned seed = 0; seed < seeds_of(100); seed++) {
                srandom(seed);
                set_zone(zones[seed % ELEMENTSOF(zones)]);
                unsigned start_min = (unsigned) random() % 1440;
                ScheduleRules rules =
                        windowed((1 + random() % 72) * HOUR, (random() % 180) * MINUTE, start_min,
                                 (start_min + 90 + (unsigned) random() % 1300) % 1440);
                int64_t now = at("2026-01-01T00:00:00Z"), last = 0, waiting_since = now;

                rules.catch_up = random() % 2;
                if (rules.window.start_min == rules.window.end_min || random() % 4 == 0)
                        rules.window.set = false;
                for (int step = 0; step < 400; step++) {
                        uint64_t jitter_seed = schedule_seed("cache", seed);
                        int64_t next = schedule_next(&rules, last, now, jitter_seed);

                        if (rules.window.set)
                                assert_true(face_in_window(&rules, next));
                        if (last > 0 && last <= now)
                                assert_true(next - last >=
                                            (int64_t) rules.interval_ns / 4 - (int64_t) rules.jitter_ns);
                        switch (random() % 12) {
                        case 0: /* asked again on the way: not put off, if the last run is not in the future
                                 */
                                if (next - now > 5 * MINUTE) {
                                        int64_t then =
                                                now + random() % ((next - now) / SECOND - 120) * SECOND;

                                        int64_t again = schedule_next(&rules, last, then, jitter_seed);

                                        if (again > next && last <= now)
                                                fail_msg("seed %u step %d: interval %" PRIu64
                                                         " jitter %" PRIu64
                                                         " window %d %u-%u catch_up %d; last %" PRId64
                                                         " now %" PRId64 " then %" PRId64 ": %" PRId64
                                                         " put off to %" PRId64,
                                                         seed, step, rules.interval_ns / NS_PER_S,
                                                         rules.jitter_ns / NS_PER_S, rules.window.set,
                                                         rules.window.start_min, rules.window.end_min,
                                                         rules.catch_up, last / SECOND, now / SECOND,
                                                         then / SECOND, next / SECOND, again / SECOND);
                                        now = then;
                                }
                                continue;
                        case 1: /* down, longer than it waits */
                                now = next + random() % (200 * HOUR / SECOND) * SECOND;
                                waiting_since = now;
                                continue;
                        case 2: /* run by hand */
                                now += random() % (10 * HOUR / SECOND) * SECOND;
                                last = waiting_since = now;
                                continue;
                        case 3: /* the clock is set */
                                now += (random() % 7200 - 3600) * SECOND;
                                waiting_since = now;
                                continue;
                        default:
                                break;
                        }
                        /* Up: at most the interval, its jitter and what the window makes of it. */
                        assert_true(next - waiting_since <=
                                    (int64_t) (rules.interval_ns + rules.interval_ns / 4) +
                                            (int64_t) rules.jitter_ns + 2 * DAY + 2 * HOUR);
                        last = waiting_since = next;
                        now = next + MINUTE;
                }
        }
}

/* ---- no drift ---- */

static int second_of_day(int64_t ns)
{
        struct tm tm;
        time_t seconds = ns / SECOND;

        assert_non_null(localtime_r(&seconds, &tm));
        return (tm.tm_hour * 60 + tm.tm_min) * 60 + tm.tm_sec;
}

/* A year of days, in which runs come late, are missed and are asked for by hand: when one comes by the clock,
 * it is at the same time of day as ever, but for a jitter that reaches into an hour that a day does not have.
 */
static void test_a_year_without_drift(void **state)
{
        static const char *const zones[] = { "UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata" };

        (void) state;
        for (unsigned seed = 0; seed < seeds_of(200); seed++) {
                srandom(seed);
                set_zone(zones[seed % ELEMENTSOF(zones)]);
                ScheduleRules rules = seed % 2 ? windowed(DAY, HOUR, 60, 300) : rules_of(DAY, HOUR);
                uint64_t place = schedule_seed("cache", seed);
                int64_t now = at("2026-01-01T12:00:00Z"), last = now, end = now + 365 * DAY;
                int wanted = second_of_day(schedule_next(&rules, last, now, place)), moved = 0, runs = 0;

                while (now < end) {
                        int64_t next = schedule_next(&rules, last, now, place);
                        int off = second_of_day(next) - wanted;

                        moved += off < -1 || off > 1;
                        runs++;
                        last = next;
                        now = next + MINUTE;
                        if (random() % 10 == 0) { /* by hand, some time of the day */
                                last = now + random() % (20 * HOUR / SECOND) * SECOND;
                                now = last + MINUTE;
                        }
                        if (random() % 20 ==
                            0) { /* down over night: made up for at the start, or in a window */
                                now += (24 + random() % 8) * HOUR;
                                int64_t late = schedule_next(&rules, last, now, place);
                                last = late;
                                now = late + MINUTE;
                        }
                }
                assert_in_range(runs, 250, 366);
                assert_in_range(moved, 0, 2);
        }
}

/* A thousand hosts with the defaults: no minute of the hour has more than twice its share, and each keeps its
 * own. */
static void test_a_fleet_is_spread(void **state)
{
        const ScheduleRules rules = SCHEDULE_RULES_DEFAULT;
        int64_t now = at("2026-11-30T12:00:00Z");
        unsigned minutes[60] = { 0 };

        (void) state;
        set_zone("UTC");
        for (uint64_t host = 0; host < 1000; host++) {
                uint64_t place = schedule_seed("cache", mix_host(host));
                int64_t next = schedule_next(&rules, now, now, place), again = next;

                minutes[second_of_day(next) / 60 % 60]++;
                for (int day = 0; day < 7; day++) {
                        int64_t after = schedule_next(&rules, again, again + MINUTE, place);

                        assert_int_equal(after, again + DAY);
                        again = after;
                }
        }
        for (size_t i = 0; i < 60; i++)
                assert_in_range(minutes[i], 1, 2 * 1000 / 60);
}

/* ---- the rest ---- */

static void test_stale_and_cooldown(void **state)
{
        ScheduleRules rules = rules_of(DAY, HOUR);

        (void) state;
        assert_int_equal(schedule_stale_after_ns(&rules), 49 * HOUR);
        rules.interval_ns = 0;
        assert_int_equal(schedule_stale_after_ns(&rules), 7 * DAY);
        rules.interval_ns = UINT64_MAX / 2 + 1;
        assert_true(schedule_stale_after_ns(&rules) == UINT64_MAX);

        assert_int_equal(schedule_cooldown_left_ns(600, 0, 1000), 0);
        assert_int_equal(schedule_cooldown_left_ns(600, 900, 1000), 500);
        assert_int_equal(schedule_cooldown_left_ns(600, 400, 1000), 0);
        assert_int_equal(schedule_cooldown_left_ns(600, 401, 1000), 1);
        assert_int_equal(schedule_cooldown_left_ns(600, 5000, 1000), 600);
        assert_int_equal(schedule_cooldown_left_ns(0, 5000, 1000), 0);
        assert_int_equal(schedule_cooldown_left_ns(UINT64_MAX, 1, INT64_MAX),
                         UINT64_MAX - (uint64_t) INT64_MAX + 1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_plain),
                cmocka_unit_test(test_without_catching_up),
                cmocka_unit_test(test_restarts_do_not_put_off_the_first_run),
                cmocka_unit_test(test_jitter_spreads),
                cmocka_unit_test(test_random),
                cmocka_unit_test(test_window_by_example),
                cmocka_unit_test(test_window_when_clocks_change),
                cmocka_unit_test(test_years_of_nights),
                cmocka_unit_test(test_years_of_trouble),
                cmocka_unit_test(test_a_year_without_drift),
                cmocka_unit_test(test_a_fleet_is_spread),
                cmocka_unit_test(test_stale_and_cooldown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
