/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics against a slow model of iostat's formulas, and the known rows of steps back and wraps. */

#include "tierprobe/clock.h"

#include "iostat-testing.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* One column by its JSON key, from before and after, as the documentation of iostat describes it: nothing of
 * the code under test is used. NAN where the column has no value. */
static long double model(const char *key, const uint64_t b[17], const uint64_t a[17], size_t n,
                         long double seconds)
{
        enum { IOS, MERGES, SECTORS, MS };
        static const char groups[] = "rwdf";
        static const size_t at[4][4] = {
                { 0, 1, 2, 3 }, { 4, 5, 6, 7 }, { 11, 12, 13, 14 }, { 15, 0, 0, 16 }
        };
        const char *group = strchr(groups, key[0]);

        if (strcmp(key, "util") == 0)
                return (long double) (a[9] - b[9]) / (seconds * 1000) * 100;
        if (strcmp(key, "aqu-sz") == 0)
                return (long double) (a[10] - b[10]) / (seconds * 1000);
        assert_non_null(group);
        size_t g = (size_t) (group - groups);
        if ((g == 2 && n < 15) || (g == 3 && n < 17))
                return NAN;
        long double ios = a[at[g][IOS]] - b[at[g][IOS]];
        long double merges = a[at[g][MERGES]] - b[at[g][MERGES]];
        long double sectors = a[at[g][SECTORS]] - b[at[g][SECTORS]];
        long double ms = a[at[g][MS]] - b[at[g][MS]];

        if (strcmp(key + 1, "/s") == 0)
                return ios / seconds;
        if (strcmp(key + 1, "kB/s") == 0)
                return sectors * 512 / 1024 / seconds;
        if (strcmp(key + 1, "rqm/s") == 0)
                return merges / seconds;
        if (strcmp(key + 1, "rqm") == 0)
                return merges + ios > 0 ? 100 * merges / (merges + ios) : NAN;
        if (strcmp(key + 1, "_await") == 0)
                return ios > 0 ? ms / ios : NAN;
        if (strcmp(key + 1, "areq-sz") == 0)
                return ios > 0 ? sectors * 512 / 1024 / ios : NAN;
        fail_msg("no such column: %s", key);
        return NAN;
}

static Snapshot snapshot_of(const uint64_t truth[17], size_t n, uint64_t at_ns)
{
        char text[512];
        Snapshot s = { .mono_ns = at_ns, .boot_ns = at_ns };

        size_t size = print_fields(text, sizeof text, truth, n);
        assert_int_equal(counters_parse(text, size, &s.counters), 0);
        return s;
}

static void test_model(void **state)
{
        uint64_t seed = 20261201, rng = seed;

        (void) state;
        for (int i = 0; i < 20000; i++) {
                uint64_t before[17], after[17];
                size_t n = random_below(&rng, 2) ? 17 : random_below(&rng, 2) ? 15 : 11;
                uint64_t interval_ns = random_below(&rng, 2) ? (1 + random_below(&rng, 1000)) * 10 * NS_PER_MS
                                                             : 1 + random_below(&rng, 20 * NS_PER_S);

                for (size_t f = 0; f < 17; f++) {
                        before[f] = random_u64(&rng) >> (33 + random_below(&rng, 30));
                        after[f] = before[f] + (random_below(&rng, 3)
                                                        ? random_u64(&rng) >> (40 + random_below(&rng, 24))
                                                        : 0);
                }
                Snapshot a = snapshot_of(before, n, NS_PER_S),
                         b = snapshot_of(after, n, NS_PER_S + interval_ns);
                Delta d;
                Metrics m;
                assert_int_equal(delta_compute(&a, &b, &d), GAP_NONE);
                metrics_from_delta(&d, &m);
                for (size_t c = 0; c < N_METRIC_COLUMNS; c++) {
                        const char *key = metric_columns[c].key;
                        double got = metric_value(&m, &metric_columns[c]);
                        long double wanted = model(key, before, after, n, interval_ns / 1e9L);
                        bool same = isnan(wanted) ? isnan(got)
                                                  : fabsl(got - wanted) <= 1e-12L * (1 + fabsl(wanted));
                        if (!same)
                                fail_msg("seed %" PRIu64 " case %d %s: %.17g for %.17Lg", seed, i, key, got,
                                         wanted);
                }
        }
}

static void test_columns(void **state)
{
        static const char order[] =
                "r/s w/s d/s f/s rkB/s wkB/s dkB/s rrqm/s wrqm/s drqm/s rrqm wrqm drqm r_await "
                "w_await d_await f_await rareq-sz wareq-sz dareq-sz aqu-sz util ";
        char keys[sizeof order] = "";
        size_t used = 0;

        (void) state;
        for (size_t c = 0; c < N_METRIC_COLUMNS; c++) {
                used += (size_t) snprintf(keys + used, sizeof keys - used, "%s ", metric_columns[c].key);
                assert_true(used < sizeof keys);
                assert_int_equal(metric_columns[c].offset, c * sizeof(double));
                const char *header = metric_columns[c].header;
                assert_string_equal(header + (header[0] == '%'), metric_columns[c].key);
        }
        assert_string_equal(keys, order);
        for (size_t place = 0; place < N_METRIC_COLUMNS; place++) {
                assert_non_null(metric_column_in_text(place));
                assert_in_range(metric_column_in_text(place)->width, 6, 9);
        }
        assert_null(metric_column_in_text(N_METRIC_COLUMNS));
}

typedef struct Case {
        const char *name, *before, *after;
        uint64_t before_cs, after_cs;
        Gap gap;
        const char *row; /* the columns that the case is about */
} Case;

#define NORMAL_BEFORE "10 0 80 5 100 0 1000 50 0 40 55 0 0 0 0 0 0"
#define NORMAL_AFTER "10 0 80 5 1300 0 1201000 12050 0 1040 12055 0 0 0 0 0 0"

static const Case cases[] = {
        { "normal", NORMAL_BEFORE, NORMAL_AFTER, 10000, 10100, GAP_NONE,
          "w/s 1200.00 wkB/s 600000.00 w_await 10.00 wareq-sz 500.00 aqu-sz 12.00 util 100.00 " },
        { "milliseconds wrap", "10 0 80 5 100 0 1000 4294967000 0 4294967200 4294967100 0 0 0 0 0 0",
          "10 0 80 5 1300 0 1201000 11704 0 704 11804 0 0 0 0 0 0", 10000, 10100, GAP_NONE,
          "w/s 1200.00 wkB/s 600000.00 w_await 10.00 wareq-sz 500.00 aqu-sz 12.00 util 80.00 " },
        { "write ms back by 1", "10 0 80 5 100 0 1000 50 0 40 55 0 0 0 0 0 0",
          "10 0 80 5 110 0 1080 49 0 40 54 0 0 0 0 0 0", 10000, 10100, GAP_RESET, NULL },
        { "reset", NORMAL_AFTER, NORMAL_BEFORE, 10000, 10100, GAP_RESET, NULL },
        { "mixed", "10 0 80 5 1300 0 1201000 12050 0 1040 12055 0 0 0 0 0 0",
          "9000 0 72000 500 100 0 1000 50 0 40 55 0 0 0 0 0 0", 10000, 10100, GAP_RESET, NULL },
        { "in flight without sign", "10 0 80 5 100 0 1000 50 4294967295 40 55",
          "10 0 80 5 1300 0 1201000 12050 -3 1040 12055", 10000, 10100, GAP_NONE,
          "w/s 1200.00 wkB/s 600000.00 w_await 10.00 wareq-sz 500.00 aqu-sz 12.00 util 100.00 " },
        { "time back", NORMAL_BEFORE, NORMAL_AFTER, 20000, 10100, GAP_CLOCK, NULL },
        { "time equal", NORMAL_BEFORE, NORMAL_AFTER, 10000, 10000, GAP_CLOCK, NULL },
        { "hung", "10 0 80 5 100 0 1000 50 3 40 55 0 0 0 0 0 0",
          "10 0 80 5 100 0 1000 50 3 1040 3055 0 0 0 0 0 0", 10000, 10100, GAP_NONE,
          "w/s 0.00 wkB/s 0.00 w_await nan wareq-sz nan aqu-sz 3.00 util 100.00 " },
};

static void test_cases(void **state)
{
        (void) state;
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                const Case *c = &cases[i];
                Snapshot a = { .mono_ns = c->before_cs * 10 * NS_PER_MS,
                               .boot_ns = c->before_cs * 10 * NS_PER_MS };
                Snapshot b = { .mono_ns = c->after_cs * 10 * NS_PER_MS,
                               .boot_ns = c->after_cs * 10 * NS_PER_MS };
                Delta d = { 0 };
                Metrics m;
                char row[256] = "";
                size_t used = 0;

                assert_int_equal(counters_parse(c->before, strlen(c->before), &a.counters), 0);
                assert_int_equal(counters_parse(c->after, strlen(c->after), &b.counters), 0);
                Gap gap = delta_compute(&a, &b, &d);
                if (gap != c->gap)
                        fail_msg("%s: %s", c->name, gap_to_string(gap));
                if (gap != GAP_NONE)
                        continue;
                metrics_from_delta(&d, &m);
                for (size_t k = 0; k < N_METRIC_COLUMNS; k++) {
                        const char *key = metric_columns[k].key;
                        if (strstr("w/s wkB/s w_await wareq-sz aqu-sz util", key) && strcmp(key, "r/s") != 0)
                                used += (size_t) snprintf(row + used, sizeof row - used, "%s %.2f ", key,
                                                          metric_value(&m, &metric_columns[k]));
                }
                if (strcmp(row, c->row) != 0)
                        fail_msg("%s: %s", c->name, row);
                assert_int_equal(d.in_flight_suspect, strcmp(c->name, "in flight without sign") == 0);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_model),
                cmocka_unit_test(test_columns),
                cmocka_unit_test(test_cases),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
