/* SPDX-License-Identifier: Apache-2.0 */
/* Whoever reads the counters may be late, anywhere in a run and for any time: that must not turn the verdict
 * on a device of which the truth is known, whatever others write before and after the run. */

#include "tierprobe/clock.h"
#include "tierprobe/verdict.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "seeds.h"

#define STEP_NS NS_PER_MS
#define BEFORE_MS 15000 /* simulated before the writers begin: the first reading may be that early */
#define RUN_MS 60000
#define AFTER_MS 60000
#define ALL_MS (BEFORE_MS + RUN_MS + AFTER_MS)
#define START_NS (1000 * NS_PER_S)
#define MAX_READINGS 1000

static uint64_t rng;

static uint64_t any(uint64_t below)
{
        rng = rng * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return below ? (rng >> 33) % below : 0;
}

static bool once_in(uint64_t n)
{
        return any(n) == 0;
}

typedef enum Kind { GOOD, SLOW, LATENCY, HALF_SLOW, CLIFF, N_KINDS } Kind;

/* What is known of the kinds: a factor of four between what they do and each limit. */
static const Verdict truth[N_KINDS] = { VERDICT_PASS, VERDICT_FAIL, VERDICT_FAIL, VERDICT_FAIL,
                                        VERDICT_FAIL };

typedef struct Simulation {
        Kind kind;
        uint64_t interval_ms, period_ms;
        uint64_t begin_ms, end_ms; /* of the writers */
        uint64_t bytes;            /* theirs */
        /* The counters at each millisecond. */
        uint64_t sectors[ALL_MS + 1], ios[ALL_MS + 1], ms[ALL_MS + 1], written_kb[ALL_MS + 1];
} Simulation;

/* kB written in millisecond AT of the run, and how many ms each of its writes takes. */
static uint64_t device_kb(const Simulation *s, uint64_t at, uint64_t done_kb, uint64_t total_kb,
                          uint64_t *ret_await)
{
        const uint64_t limit = 600; /* kB a millisecond */

        *ret_await = s->kind == LATENCY ? 80 : 5;
        switch (s->kind) {
        case GOOD:
        case LATENCY:
                return limit * 4;
        case SLOW:
                return limit / 4;
        case HALF_SLOW:
                return at % s->period_ms < s->period_ms / 2 ? limit / 4 : limit * 4;
        case CLIFF:
                return done_kb < total_kb / 10 * 6 ? limit * 4 : limit / 8;
        case N_KINDS:
                break;
        }
        return 0;
}

static void add_writes(Simulation *s, uint64_t at, uint64_t kb, uint64_t await)
{
        uint64_t ios = kb / 100 + 1;

        s->sectors[at + 1] += kb * 2;
        s->ios[at + 1] += ios;
        s->ms[at + 1] += ios * await;
}

static void simulate(Simulation *s)
{
        uint64_t wanted_ms, done_kb = 0, others = once_in(2) ? any(2000) : 0,
                            within = once_in(2) ? any(20) : 0;

        *s = (Simulation){ .kind = (Kind) any(N_KINDS), .interval_ms = once_in(2) ? 1000 : 100 };
        s->period_ms = s->interval_ms * (3 + any(9));
        wanted_ms = s->interval_ms * (16 + any(24));
        if (s->kind == HALF_SLOW && wanted_ms < 10000)
                wanted_ms = 10000; /* four seconds and more, where one decides */
        static const uint64_t mean_kb[N_KINDS] = { 2400, 150, 2400, 1275, 200 };
        uint64_t total_kb = wanted_ms * mean_kb[s->kind];

        s->begin_ms = BEFORE_MS;
        for (uint64_t at = 0; at < ALL_MS; at++) {
                uint64_t await = 0;

                s->sectors[at + 1] = s->sectors[at];
                s->ios[at + 1] = s->ios[at];
                s->ms[at + 1] = s->ms[at];
                s->written_kb[at + 1] = s->written_kb[at];
                if (at < s->begin_ms || (done_kb >= total_kb && at >= s->end_ms)) {
                        add_writes(s, at, others, 100); /* the database does what it waited for */
                        continue;
                }
                uint64_t kb = device_kb(s, at - s->begin_ms, done_kb, total_kb, &await);
                kb = kb < total_kb - done_kb ? kb : total_kb - done_kb;
                add_writes(s, at, kb, await);
                add_writes(s, at, kb * within / 1000, await);
                done_kb += kb;
                s->written_kb[at + 1] = done_kb;
                s->end_ms = at + 1;
        }
        s->bytes = total_kb * 1024;
        assert_true(s->end_ms < BEFORE_MS + RUN_MS);
}

static Reading reading_at(const Simulation *s, uint64_t ms)
{
        assert_true(ms <= ALL_MS);
        return (Reading){ .row = { .mono_ns = START_NS + ms * STEP_NS,
                                   .boot_ns = START_NS + ms * STEP_NS,
                                   .major = 8,
                                   .counters = { .n_fields = 17,
                                                 .w_ios = s->ios[ms],
                                                 .w_sectors = s->sectors[ms],
                                                 .w_ms = (uint32_t) s->ms[ms] } },
                          .written_bytes = s->written_kb[ms] * 1024 };
}

/* How late the readers are. */
typedef struct Lateness {
        uint64_t first_ms, last_ms;   /* from the window's edges */
        uint64_t tick_ms;             /* each tick: at most */
        uint64_t stop_at_ms, stop_ms; /* nothing is read for so long; from the begin of the run */
} Lateness;

static Verdict judge(const Simulation *s, const Lateness *late, Judgement *ret)
{
        static Reading readings[MAX_READINGS];
        uint64_t stop_ms = s->begin_ms + late->stop_at_ms, go_on_ms = stop_ms + late->stop_ms;
        uint64_t last_ms = s->end_ms + late->last_ms;
        size_t n = 0;

        if (last_ms >= stop_ms && last_ms < go_on_ms)
                last_ms = go_on_ms;
        readings[n++] = reading_at(s, s->begin_ms - late->first_ms);
        for (uint64_t tick = s->begin_ms + s->interval_ms; tick < last_ms; tick += s->interval_ms) {
                uint64_t at = tick + any(late->tick_ms + 1);

                if (at >= stop_ms && at < go_on_ms)
                        at = go_on_ms;
                while (tick + s->interval_ms <= at)
                        tick += s->interval_ms;
                if (at < last_ms)
                        readings[n++] = reading_at(s, at);
                assert_true(n < MAX_READINGS - 1);
        }
        readings[n++] = reading_at(s, last_ms);

        RunWindow window = { .readings = readings,
                             .n_readings = n,
                             .begin_ns = START_NS + s->begin_ms * STEP_NS,
                             .end_ns = START_NS + s->end_ms * STEP_NS,
                             .interval_ns = s->interval_ms * STEP_NS,
                             .in_flight_bytes = 1 << 20 };
        window_settle(&window);
        assert_true(window.n_readings >= 1 && window.readings == readings);
        assert_true(readings[0].row.mono_ns >= window.begin_ns || window.n_readings == 1);
        assert_true(readings[window.n_readings - 1].row.mono_ns <= window.end_ns || window.n_readings == 1);
        const RunFacts facts = { .end = TEST_COMPLETE,
                                 .device_name = "sdc",
                                 .readings = window.readings,
                                 .n_readings = window.n_readings,
                                 .first_is_tick = window.first_is_tick,
                                 .last_is_tick = window.last_is_tick,
                                 .writers_ns = window.end_ns - window.begin_ns,
                                 .unseen_ns = window.unseen_ns,
                                 .interval_ns = window.interval_ns,
                                 .bytes_total = s->bytes,
                                 .bytes_written = s->bytes,
                                 .block_size = 1 << 20,
                                 .streams = 1,
                                 .background_write_mb_per_s = NAN };
        const Limits limits = limits_default();

        judge_run(&limits, &facts, ret);
        return ret->verdict;
}

static void expect(unsigned seed, const Simulation *s, const Lateness *late, Verdict wanted,
                   const Judgement *j)
{
        if (j->verdict != wanted)
                fail_msg("seed %u, kind %d, interval %ju ms, run %ju ms, late %ju %ju %ju ms, stopped for "
                         "%ju at %ju: "
                         "%s (%s)",
                         seed, (int) s->kind, (uintmax_t) s->interval_ms,
                         (uintmax_t) (s->end_ms - s->begin_ms), (uintmax_t) late->first_ms,
                         (uintmax_t) late->last_ms, (uintmax_t) late->tick_ms, (uintmax_t) late->stop_ms,
                         (uintmax_t) late->stop_at_ms, verdict_to_string(j->verdict),
                         j->reasons.n ? j->reasons.items[0].detail : "");
}

/* Late by less than half an interval at each sample, and by any time at the edges: the verdict is the truth.
 */
static void test_late_edges(void **state)
{
        static Simulation s;

        (void) state;
        for (unsigned seed = 0; seed < seeds_of(1500); seed++) {
                Judgement j;

                rng = seed;
                simulate(&s);
                const Lateness late = { .first_ms = once_in(3) ? 0 : any(once_in(2) ? 50 : BEFORE_MS),
                                        .last_ms = once_in(3) ? 0 : any(once_in(2) ? 50 : 30000),
                                        .tick_ms = any(s.interval_ms / 3) };
                (void) judge(&s, &late, &j);
                expect(seed, &s, &late, truth[s.kind], &j);
        }
}

/* Stopped for any time at any place as well: the truth, or no verdict and the reason why. */
static void test_stopped(void **state)
{
        static Simulation s;
        unsigned told = 0, seeds = seeds_of(6000);

        (void) state;
        for (unsigned seed = 0; seed < seeds; seed++) {
                Judgement j;

                rng = seed + 1000000;
                simulate(&s);
                uint64_t run_ms = s.end_ms - s.begin_ms;
                const Lateness late = { .first_ms = once_in(3) ? 0 : any(once_in(2) ? 50 : BEFORE_MS),
                                        .last_ms = once_in(3) ? 0 : any(once_in(2) ? 50 : 20000),
                                        .tick_ms = any(s.interval_ms / 3),
                                        .stop_at_ms = any(run_ms),
                                        .stop_ms = any(once_in(2) ? run_ms / 5 : 30000) };
                if (judge(&s, &late, &j) == VERDICT_INCONCLUSIVE) {
                        assert_true(reasons_have(&j.reasons, REASON_TOO_FEW_SAMPLES));
                        continue;
                }
                told++;
                expect(seed, &s, &late, truth[s.kind], &j);
        }
        /* It is no escape. */
        print_message("# %u of %u were judged\n", told, seeds);
        assert_true(told > seeds / 2);
}

/* The late reading alone, as it was used before: the same run passes or fails by when it was read. */
static void test_a_late_reading_is_not_used(void **state)
{
        static Simulation s;
        Judgement j;

        (void) state;
        rng = 1;
        do
                simulate(&s);
        while (s.kind != GOOD);
        const Lateness late = { .last_ms = 50000 };
        assert_int_equal(judge(&s, &late, &j), VERDICT_PASS);
        assert_true(j.criteria[CRITERION_WRITE_THROUGHPUT].value > 2300);
        assert_true(j.criteria[CRITERION_WRITE_LATENCY].value < 6);
}

/* Who does not wait for a writer that hangs reads beside the samples' reader, which goes on for a moment. */
static void test_samples_after_the_last_reading(void **state)
{
        (void) state;
        for (unsigned seed = 0; seed < seeds_of(20000); seed++) {
                Reading readings[20] = { 0 };
                RunWindow window = { .readings = readings };

                rng = seed;
                size_t inside = any(10), after = any(8);
                for (size_t i = 0; i <= inside + after; i++)
                        readings[window.n_readings++].row.mono_ns = START_NS + i * NS_PER_S;
                uint64_t last_ns = START_NS + inside * NS_PER_S + any(NS_PER_S) + 1;
                readings[window.n_readings++].row.mono_ns = last_ns;
                window.begin_ns = any(2) * START_NS; /* they may not have said that they began */
                window_settle(&window);
                assert_int_equal(window.n_readings, inside + 2);
                for (size_t i = 0; i <= inside; i++)
                        assert_int_equal(readings[i].row.mono_ns, START_NS + i * NS_PER_S);
                assert_int_equal(readings[inside + 1].row.mono_ns, last_ns);
        }
}

/* Whatever the readings and the writers' clock: what is left lies among them, and is at least one. */
static void test_any_readings(void **state)
{
        (void) state;
        for (unsigned seed = 0; seed < seeds_of(200000); seed++) {
                Reading readings[10] = { 0 };
                RunWindow window = { .readings = readings };

                rng = seed;
                window.n_readings = 1 + any(9);
                for (size_t i = 0; i < window.n_readings; i++) {
                        bool back = i == 0 || once_in(8);

                        readings[i].row.mono_ns = (back ? 0 : readings[i - 1].row.mono_ns) + any(50);
                        readings[i].row.counters.w_sectors =
                                (back ? 0 : readings[i - 1].row.counters.w_sectors) + any(50);
                        readings[i].row.counters.w_ios = any(50);
                        readings[i].written_bytes = any(20000);
                        readings[i].row.gap = once_in(9) ? GAP_RESET : GAP_NONE;
                }
                window.begin_ns = any(200);
                window.end_ns = any(300);
                window.interval_ns = any(30);
                size_t before = window.n_readings;
                window_settle(&window);
                assert_ptr_equal(window.readings, readings);
                assert_true(window.n_readings >= 1 && window.n_readings <= before);
                assert_true(window.unseen_ns <= 300);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_late_reading_is_not_used),
                cmocka_unit_test(test_late_edges),
                cmocka_unit_test(test_stopped),
                cmocka_unit_test(test_samples_after_the_last_reading),
                cmocka_unit_test(test_any_readings),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
