/* SPDX-License-Identifier: Apache-2.0 */
/* What production shows: random days, compared with a plain count over all samples of the span. */

#include "tierprobe/observed.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "seeds.h"

#define S INT64_C(1000000000)
#define LIMIT_MS 20.0
#define MAX_SAMPLES 4000
#define SEEDS 3000

typedef struct Entry {
        ObservedSample sample;
        bool broken; /* something that was not seen lies before it */
} Entry;

static uint64_t seed_state;

static uint64_t random_u64(void)
{
        seed_state ^= seed_state << 13;
        seed_state ^= seed_state >> 7;
        seed_state ^= seed_state << 17;
        return seed_state;
}

static uint64_t below(uint64_t n)
{
        return random_u64() % n;
}

static double await_of(const ObservedSample *sample)
{
        return (double) sample->write_ms / (double) sample->writes;
}

static bool is_over(const ObservedSample *sample)
{
        return sample->writes > 0 && await_of(sample) >= LIMIT_MS;
}

/* ---- the plain count ---- */

typedef struct Weighted {
        double ms;
        uint64_t weight;
} Weighted;

static int compare(const void *a, const void *b)
{
        double x = ((const Weighted *) a)->ms, y = ((const Weighted *) b)->ms;

        return x < y ? -1 : x > y;
}

static double plain_quantile(const Weighted *sorted, size_t n, uint64_t total, double fraction)
{
        double seen = 0;

        for (size_t i = 0; i < n; i++) {
                seen += (double) sorted[i].weight;
                if (seen >= fraction * (double) total)
                        return sorted[i].ms;
        }
        return NAN;
}

static void plain_held(const Entry *entries, size_t i, ObservedFigures *ret)
{
        uint64_t writes = 0, write_ms = 0, sectors = 0;
        int64_t length_ns = 0;

        for (size_t j = i + 1; j-- > 0;) {
                const ObservedSample *sample = &entries[j].sample;

                length_ns += (int64_t) sample->interval_ns;
                writes += sample->writes;
                write_ms += sample->write_ms;
                sectors += sample->sectors;
                if (length_ns >= OBSERVED_HELD_NS || entries[j].broken)
                        break;
        }
        double wkb_s = (double) sectors / 2 / ((double) length_ns / 1e9);
        if (length_ns < OBSERVED_HELD_NS || writes == 0 || ret->held_wkb_s >= wkb_s)
                return;
        ret->held_wkb_s = wkb_s;
        ret->held_w_await_ms = (double) write_ms / (double) writes;
        ret->held_begin_real_ns = entries[i].sample.real_ns - length_ns;
}

static void plain(const Entry *entries, size_t n, int64_t begin_ns, ObservedFigures *ret)
{
        static Weighted weighted[MAX_SAMPLES];
        uint64_t total = 0;
        int64_t streak_ns = 0, streak_begin_ns = 0;

        *ret = (ObservedFigures){ .held_wkb_s = NAN, .held_w_await_ms = NAN, .max_ms = NAN };
        for (size_t i = 0; i < n; i++) {
                const ObservedSample *sample = &entries[i].sample;

                if (sample->real_ns < begin_ns)
                        continue;
                ret->samples++;
                plain_held(entries, i, ret);
                if (!is_over(sample) || entries[i].broken)
                        streak_ns = 0;
                if (is_over(sample)) {
                        if (streak_ns == 0)
                                streak_begin_ns = sample->real_ns - (int64_t) sample->interval_ns;
                        streak_ns += (int64_t) sample->interval_ns;
                        if ((double) streak_ns / 1e9 > ret->longest_over_s) {
                                ret->longest_over_s = (double) streak_ns / 1e9;
                                ret->longest_begin_real_ns = streak_begin_ns;
                        }
                }
                if (sample->writes == 0)
                        continue;
                weighted[ret->samples_with_writes++] = (Weighted){ await_of(sample), sample->writes };
                ret->samples_over_limit += is_over(sample);
                total += sample->writes;
                ret->max_ms = fmax(ret->samples_with_writes == 1 ? 0 : ret->max_ms, await_of(sample));
        }
        size_t n_weighted = ret->samples_with_writes;
        qsort(weighted, n_weighted, sizeof *weighted, compare);
        ret->p50_ms = plain_quantile(weighted, n_weighted, total, 0.50);
        ret->p95_ms = plain_quantile(weighted, n_weighted, total, 0.95);
        ret->p99_ms = plain_quantile(weighted, n_weighted, total, 0.99);
}

static bool same(double a, double b, double error)
{
        return (isnan(a) && isnan(b)) || fabs(a - b) <= error * fmax(fabs(a), fabs(b));
}

static void check(uint64_t seed, const char *span, const ObservedFigures *got, const ObservedFigures *right)
{
        bool ok = got->samples == right->samples && got->samples_with_writes == right->samples_with_writes &&
                  got->samples_over_limit == right->samples_over_limit &&
                  same(got->p50_ms, right->p50_ms, 0.05) && same(got->p95_ms, right->p95_ms, 0.05) &&
                  same(got->p99_ms, right->p99_ms, 0.05) && same(got->max_ms, right->max_ms, 0) &&
                  same(got->held_wkb_s, right->held_wkb_s, 1e-12) &&
                  same(got->held_w_await_ms, right->held_w_await_ms, 1e-12) &&
                  got->held_begin_real_ns == right->held_begin_real_ns &&
                  same(got->longest_over_s, right->longest_over_s, 1e-12) &&
                  got->longest_begin_real_ns == right->longest_begin_real_ns;

        if (!ok)
                fail_msg("seed %llu, %s: samples %llu %llu, over %llu %llu, p50 %g %g, p99 %g %g, max %g %g, "
                         "held %g %g, "
                         "longest %.9g %.9g at %lld %lld",
                         (unsigned long long) seed, span, (unsigned long long) got->samples,
                         (unsigned long long) right->samples, (unsigned long long) got->samples_over_limit,
                         (unsigned long long) right->samples_over_limit, got->p50_ms, right->p50_ms,
                         got->p99_ms, right->p99_ms, got->max_ms, right->max_ms, got->held_wkb_s,
                         right->held_wkb_s, got->longest_over_s, right->longest_over_s,
                         (long long) got->longest_begin_real_ns, (long long) right->longest_begin_real_ns);
}

/* ---- random days ---- */

static ObservedSample random_sample(int64_t begin_ns, int64_t nominal_ns, unsigned mood)
{
        static const uint64_t most_ms[] = { 3, 15, 40, 4000 };
        ObservedSample sample = { .interval_ns = (uint64_t) nominal_ns + below((uint64_t) nominal_ns / 4) };

        sample.real_ns = begin_ns + (int64_t) sample.interval_ns;
        if (mood == 0 && below(3) > 0)
                return sample;
        sample.writes = 1 + below(1000);
        sample.write_ms = below(sample.writes * most_ms[mood % 4] + 1);
        if (mood % 4 == 3)
                sample.write_ms = sample.writes * (20 + below(300));
        sample.sectors = sample.writes * (1 + below(2048));
        return sample;
}

static void test_random_days(void **state)
{
        static Entry entries[MAX_SAMPLES];

        (void) state;
        for (uint64_t seed = 1; seed <= seeds_of(SEEDS); seed++) {
                Observed *observed = NULL;
                size_t n = 0;
                int64_t nominal_ns = (int64_t[]){ S / 10, S, 5 * S, 15 * S, 60 * S }[seed % 5];

                seed_state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
                int64_t now_ns = (int64_t) (1700000000 + below(100000000)) * S + (int64_t) below(S);
                size_t wanted = below(400) + (seed % 50 == 0 ? MAX_SAMPLES - 400 : 0);
                unsigned mood = (unsigned) below(4);
                bool broken = true;

                assert_int_equal(observed_new(&observed, LIMIT_MS), 0);
                while (n < wanted) {
                        if (below(30) == 0)
                                mood = (unsigned) below(4);
                        if (below(40) == 0) { /* a test, a gap, a restart */
                                observed_break(observed);
                                now_ns += (int64_t) below((uint64_t) (below(8) == 0 ? 7200 * S : 90 * S));
                                broken = true;
                        }
                        ObservedSample sample = random_sample(now_ns, nominal_ns, mood);
                        observed_add(observed, &sample);
                        entries[n++] = (Entry){ sample, broken };
                        now_ns = sample.real_ns;
                        broken = false;
                        if (below(100) != 0 && n < wanted)
                                continue;
                        for (ObservedSpan span = 0; span < _OBSERVED_SPAN_MAX; span++) {
                                int64_t at_ns = now_ns + (int64_t) below(n == wanted ? 4000 * S : S);
                                ObservedFigures got, right;

                                observed_figures(observed, span, at_ns, &got);
                                plain(entries, n, observed_begin_real_ns(span, at_ns), &right);
                                check(seed, observed_span_to_string(span), &got, &right);
                        }
                }
                observed_free(observed);
        }
}

/* ---- clocks ---- */

static void test_clock_set(void **state)
{
        Observed *observed = NULL;
        ObservedFigures figures;
        ObservedSample sample = {
                .real_ns = 1700000000 * S, .interval_ns = S, .writes = 10, .write_ms = 10, .sectors = 8
        };

        (void) state;
        assert_int_equal(observed_new(&observed, LIMIT_MS), 0);
        observed_add(observed, &sample);
        sample.real_ns -= 10 * S; /* as an NTP daemon may step */
        observed_add(observed, &sample);
        observed_figures(observed, OBSERVED_HOUR, sample.real_ns + 10 * S, &figures);
        assert_int_equal(figures.samples, 2);
        sample.real_ns -= 86400 * S;
        observed_add(observed, &sample);
        observed_figures(observed, OBSERVED_DAY, sample.real_ns, &figures);
        assert_int_equal(figures.samples, 1); /* not those of the day that has not been yet */
        sample.real_ns += 30 * 86400 * S;
        observed_add(observed, &sample);
        observed_figures(observed, OBSERVED_DAY, sample.real_ns, &figures);
        assert_int_equal(figures.samples, 1);
        observed_figures(observed, OBSERVED_DAY, 0, &figures);
        assert_int_equal(figures.samples, 0);
        assert_true(isnan(figures.max_ms) && isnan(figures.held_wkb_s));
        observed_free(observed);
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_random_days),
                                            cmocka_unit_test(test_clock_set) };

        return cmocka_run_group_tests_name("history-observed", tests, NULL, NULL);
}
