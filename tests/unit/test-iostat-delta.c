/* SPDX-License-Identifier: Apache-2.0 */
/* Deltas against truths that the test keeps in 64 bit, and every kind of gap. */

#include "tierprobe/clock.h"

#include "iostat-testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { R_MS = 3, W_MS = 7, IN_FLIGHT = 8, IO_MS = 9, QUEUE_MS = 10, D_MS = 14, F_MS = 16 };

static bool is_ms(size_t field)
{
        return field == R_MS || field == W_MS || field == IO_MS || field == QUEUE_MS || field == D_MS ||
               field == F_MS;
}

static Snapshot snapshot_of(const uint64_t truth[17], size_t n, uint64_t at_ns)
{
        char text[512];
        Snapshot s = { .mono_ns = at_ns, .boot_ns = at_ns + 5 * NS_PER_S, .major = 8, .diskseq = 3 };

        size_t size = print_fields(text, sizeof text, truth, n);
        assert_int_equal(counters_parse(text, size, &s.counters), 0);
        return s;
}

static void delta_fields(const Delta *d, uint64_t fields[17])
{
        uint64_t all[17] = { d->r_ios,    d->r_merges,  d->r_sectors, d->r_ms,
                             d->w_ios,    d->w_merges,  d->w_sectors, d->w_ms,
                             0,           d->io_ms,     d->queue_ms,  d->d_ios,
                             d->d_merges, d->d_sectors, d->d_ms,      d->f_ios,
                             d->f_ms };
        memcpy(fields, all, sizeof all);
}

/* The completions that a millisecond field is made of. */
static unsigned __int128 completions_of(size_t field, const uint64_t grown[17])
{
        switch (field) {
        case R_MS:
                return grown[0];
        case W_MS:
                return grown[4];
        case D_MS:
                return grown[11];
        case F_MS:
                return grown[15];
        default:
                return (unsigned __int128) grown[0] + grown[4] + grown[11] + grown[15];
        }
}

/* Devices that live through thousands of intervals, most with milliseconds about to wrap: whatever the
 * printed counters did, the delta is what really happened. */
static void test_truth(void **state)
{
        uint64_t seed = 1, rng = seed;
        unsigned wraps = 0, intervals = 0;

        (void) state;
        for (int device = 0; device < 400; device++) {
                static const size_t widths[] = { 11, 12, 15, 16, 17 };
                size_t n = widths[random_below(&rng, 5)];
                uint64_t truth[17], at_ns = NS_PER_S + random_below(&rng, NS_PER_S);

                for (size_t f = 0; f < 17; f++)
                        truth[f] = random_u64(&rng) >> (2 + random_below(&rng, 60));
                for (size_t f = 0; f < 17; f++)
                        if (is_ms(f) && random_below(&rng, 4))
                                truth[f] = UINT32_MAX - random_below(&rng, 100000);
                truth[IN_FLIGHT] = random_below(&rng, 64);
                Snapshot previous = snapshot_of(truth, n, at_ns);

                for (int i = 0; i < 40; i++) {
                        uint64_t grown[17] = { 0 }, got[17];
                        uint64_t interval_ns = 1 + random_below(&rng, 3 * NS_PER_S);
                        uint64_t interval_ms = interval_ns / NS_PER_MS;

                        for (size_t f = 0; f < 17; f++)
                                if (!is_ms(f) && f != IN_FLIGHT && random_below(&rng, 4))
                                        grown[f] = random_u64(&rng) >> (40 + random_below(&rng, 24));
                        if (n < 15)
                                grown[11] = grown[12] = grown[13] = 0;
                        if (n < 17)
                                grown[15] = 0;
                        /* Up to the whole interval for each request, less than 2^32 in all. */
                        for (size_t f = 0; f < 17; f++)
                                if (is_ms(f)) {
                                        uint64_t most = (uint64_t) completions_of(f, grown) * interval_ms;
                                        grown[f] = most ? random_below(&rng, most) % UINT32_MAX : 0;
                                }
                        for (size_t f = 0; f < 17; f++) {
                                if (is_ms(f) && (uint32_t) (truth[f] + grown[f]) < (uint32_t) truth[f] &&
                                    f < n)
                                        wraps++;
                                truth[f] += grown[f];
                        }
                        truth[IN_FLIGHT] = random_below(&rng, 64);
                        at_ns += interval_ns;
                        Snapshot current = snapshot_of(truth, n, at_ns);
                        Delta d = { 0 };

                        /* A wrap of a field that had not come half way is one only for this test. */
                        bool believable = true;
                        for (size_t f = 0; f < 17; f++)
                                if (is_ms(f) && (uint32_t) truth[f] < (uint32_t) (truth[f] - grown[f]) &&
                                    (uint32_t) (truth[f] - grown[f]) < UINT32_C(1) << 31)
                                        believable = false;
                        Gap gap = delta_compute(&previous, &current, &d);
                        if (gap != (believable ? GAP_NONE : GAP_RESET))
                                fail_msg("seed %" PRIu64 " device %d interval %d: %s", seed, device, i,
                                         gap_to_string(gap));
                        previous = current;
                        if (gap != GAP_NONE)
                                continue;
                        intervals++;
                        assert_true(d.interval_ns == interval_ns);
                        assert_int_equal(d.in_flight, truth[IN_FLIGHT]);
                        assert_int_equal(d.has_discards, n >= 15);
                        assert_int_equal(d.has_flushes, n >= 17);
                        delta_fields(&d, got);
                        grown[IN_FLIGHT] = 0;
                        for (size_t f = 0; f < 17; f++)
                                if (got[f] != grown[f])
                                        fail_msg("seed %" PRIu64 " device %d interval %d field %zu: %" PRIu64
                                                 " for %" PRIu64,
                                                 seed, device, i, f, got[f], grown[f]);
                }
        }
        print_message("# %u intervals, %u wraps\n", intervals, wraps);
        assert_true(wraps > 500 && intervals > 10000);
}

/* One field of an otherwise growing row steps back. Only a millisecond field may, and only as the rule says;
 * the rule is worked out here in 128 bit. */
static void test_step_back(void **state)
{
        uint64_t seed = 2, rng = seed;
        unsigned dropped = 0, wrapped = 0;

        (void) state;
        for (int i = 0; i < 50000; i++) {
                uint64_t before[17], after[17], grown[17];
                size_t n = random_below(&rng, 2) ? 17 : random_below(&rng, 2) ? 15 : 11;
                size_t field = random_below(&rng, n);
                uint64_t interval_ns = 1 + random_below(&rng, 10 * NS_PER_S);

                if (field == IN_FLIGHT)
                        continue;
                for (size_t f = 0; f < 17; f++) {
                        before[f] = 1 + random_below(&rng, UINT32_MAX - 100000);
                        grown[f] = f < n ? random_u64(&rng) >> (44 + random_below(&rng, 20)) : 0;
                        if (is_ms(f))
                                grown[f] %= 1000;
                }
                for (size_t f = 0; f < 17; f++)
                        after[f] = before[f] + grown[f];
                before[IN_FLIGHT] = random_below(&rng, 4);
                after[IN_FLIGHT] = random_below(&rng, 4);
                if (is_ms(field) && random_below(&rng, 2)) {
                        before[field] = UINT32_MAX - random_below(&rng, 1000);
                        after[field] =
                                random_below(&rng, 1 + (random_u64(&rng) >> (32 + random_below(&rng, 30))));
                } else if (random_below(&rng, 2)) {
                        after[field] = before[field] - 1;
                } else {
                        after[field] = random_below(&rng, before[field]);
                }
                if (!is_ms(field))
                        grown[field] = 0;

                Snapshot a = snapshot_of(before, n, NS_PER_S),
                         b = snapshot_of(after, n, NS_PER_S + interval_ns);
                Delta untouched, d;
                memset(&untouched, 0x5a, sizeof untouched);
                d = untouched;

                uint64_t in_flight =
                        before[IN_FLIGHT] > after[IN_FLIGHT] ? before[IN_FLIGHT] : after[IN_FLIGHT];
                unsigned __int128 most =
                        (completions_of(field, grown) + in_flight) * (interval_ns / NS_PER_MS + 1) + 1000;
                bool wrap = is_ms(field) && before[field] >= UINT32_C(1) << 31 &&
                            (uint32_t) (after[field] - before[field]) <= most;
                Gap gap = delta_compute(&a, &b, &d);
                if (gap != (wrap ? GAP_NONE : GAP_RESET))
                        fail_msg("seed %" PRIu64 " case %d field %zu: %" PRIu64 " to %" PRIu64 " gives %s",
                                 seed, i, field, before[field], after[field], gap_to_string(gap));
                if (!wrap)
                        assert_memory_equal(&d, &untouched, sizeof d);
                *(wrap ? &wrapped : &dropped) += 1;
        }
        print_message("# %u dropped, %u taken for wraps\n", dropped, wrapped);
        assert_true(dropped > 10000 && wrapped > 1000);
}

static void test_gaps(void **state)
{
        uint64_t truth[17] = { 10, 0, 80, 5, 100, 0, 1000, 50, 0, 40, 55 };
        Delta d;

        (void) state;
        Snapshot a = snapshot_of(truth, 17, NS_PER_S), b = snapshot_of(truth, 17, 2 * NS_PER_S), c = b;
        assert_int_equal(delta_compute(NULL, &b, &d), GAP_FIRST);
        assert_int_equal(delta_compute(&a, &b, &d), GAP_NONE);

        c.gap = GAP_ABSENT;
        assert_int_equal(delta_compute(NULL, &c, &d), GAP_ABSENT);
        assert_int_equal(delta_compute(&a, &c, &d), GAP_ABSENT);
        Snapshot later = snapshot_of(truth, 17, 3 * NS_PER_S);
        assert_int_equal(delta_compute(&c, &later, &d), GAP_RETURNED);
        c.gap = GAP_UNREADABLE;
        assert_int_equal(delta_compute(&a, &c, &d), GAP_UNREADABLE);
        assert_int_equal(delta_compute(&c, &later, &d), GAP_UNREADABLE);
        /* What happened to one row of several before a read does not spoil the interval after it. */
        for (Gap gap = GAP_RETURNED; gap <= GAP_RESET; gap++) {
                c.gap = gap;
                assert_int_equal(delta_compute(&a, &c, &d), gap);
                assert_int_equal(delta_compute(&c, &later, &d), GAP_NONE);
        }

        c = b, c.major = 9;
        assert_int_equal(delta_compute(&a, &c, &d), GAP_REPLACED);
        c = b, c.minor = 16;
        assert_int_equal(delta_compute(&a, &c, &d), GAP_REPLACED);
        c = b, c.diskseq = 4;
        assert_int_equal(delta_compute(&a, &c, &d), GAP_REPLACED);

        c = b, c.boot_ns += NS_PER_MS + 1;
        assert_int_equal(delta_compute(&a, &c, &d), GAP_SUSPENDED);
        c = b, c.boot_ns += NS_PER_MS;
        assert_int_equal(delta_compute(&a, &c, &d), GAP_NONE);
        c = b, c.boot_ns -= NS_PER_MS + 1;
        assert_int_equal(delta_compute(&a, &c, &d), GAP_CLOCK);
        c = b, c.mono_ns = a.mono_ns, c.boot_ns = a.boot_ns;
        assert_int_equal(delta_compute(&a, &c, &d), GAP_CLOCK);
        assert_int_equal(delta_compute(&b, &a, &d), GAP_CLOCK);

        Snapshot narrow = snapshot_of(truth, 15, 2 * NS_PER_S);
        assert_int_equal(delta_compute(&a, &narrow, &d), GAP_RESET);

        c = b, c.counters.in_flight = -1;
        assert_int_equal(delta_compute(&a, &c, &d), GAP_NONE);
        assert_true(d.in_flight_suspect);
        assert_int_equal(delta_compute(&c, &later, &d), GAP_NONE);
        assert_true(d.in_flight_suspect);
        assert_int_equal(delta_compute(&a, &b, &d), GAP_NONE);
        assert_false(d.in_flight_suspect);

        for (Gap gap = GAP_NONE; gap < _GAP_MAX; gap++)
                for (Gap other = GAP_NONE; other < gap; other++)
                        assert_string_not_equal(gap_to_string(gap), gap_to_string(other));
}

/* Numbers as no kernel has them: an answer without overflow (the sanitizers watch). */
static void test_extremes(void **state)
{
        uint64_t seed = 3, rng = seed;
        static const uint64_t values[] = {
                0, 1, UINT32_MAX, UINT32_C(1) << 31, UINT64_MAX, UINT64_MAX - 1, UINT64_C(1) << 63
        };

        (void) state;
        for (int i = 0; i < 50000; i++) {
                Snapshot s[2] = { { 0 }, { 0 } };
                Delta d;

                for (int k = 0; k < 2; k++) {
                        uint64_t truth[17];
                        for (size_t f = 0; f < 17; f++)
                                truth[f] = values[random_below(&rng, 7)];
                        s[k] = snapshot_of(truth, 17, 0);
                        s[k].mono_ns = values[random_below(&rng, 7)];
                        s[k].boot_ns = random_below(&rng, 2) ? s[k].mono_ns : values[random_below(&rng, 7)];
                }
                Gap gap = delta_compute(&s[0], &s[1], &d);
                assert_non_null(gap_to_string(gap));
                if (gap == GAP_NONE) {
                        Metrics m;
                        metrics_from_delta(&d, &m);
                }
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_truth),
                cmocka_unit_test(test_step_back),
                cmocka_unit_test(test_gaps),
                cmocka_unit_test(test_extremes),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
