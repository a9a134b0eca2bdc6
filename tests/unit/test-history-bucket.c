/* SPDX-License-Identifier: Apache-2.0 */
/* Buckets of samples: random ones, against a plain sum. */

#include "tierprobe/history.h"

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

#define MAX_SAMPLES 40

static Delta random_delta(void)
{
        Delta delta = { .interval_ns = 1 + (uint64_t) random() % 4000000000U,
                        .has_discards = random() % 4,
                        .has_flushes = random() % 4 };

        if (random() % 3)
                delta.w_ios = (uint64_t) random() % 5000;
        if (random() % 3)
                delta.r_ios = (uint64_t) random() % 5000;
        delta.w_sectors = delta.w_ios * ((uint64_t) random() % 2048);
        delta.w_ms = delta.w_ios * ((uint64_t) random() % 50);
        delta.r_ms = delta.r_ios * ((uint64_t) random() % 50);
        delta.io_ms = (uint64_t) random() % (delta.interval_ns / 1000000 + 1);
        delta.queue_ms = delta.io_ms * ((uint64_t) random() % 9);
        return delta;
}

static bool near(double a, double b)
{
        return (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b));
}

static void test_random(void **state)
{
        (void) state;
        srandom(20261201);
        for (unsigned seed = 0; seed < seeds_of(5000); seed++) {
                size_t n = 1 + (size_t) random() % MAX_SAMPLES, n_runs = 0;
                double length_s = 0, wkb = 0, writes = 0, write_ms = 0, least = NAN, most = NAN;
                Bucket bucket;
                Metrics mean;

                bucket_begin(&bucket, 60);
                for (size_t i = 0; i < n; i++) {
                        Delta delta = random_delta();
                        RingRecord record = { .seq = i + 1 };
                        Metrics metrics;

                        if (random() % 4 == 0) {
                                n_runs = i / 4 + 1;
                                (void) snprintf(record.run_id, sizeof record.run_id, "run-%zu", i / 4);
                        }
                        bucket_add(&bucket, &record, &delta);
                        metrics_from_delta(&delta, &metrics);
                        length_s += (double) delta.interval_ns / 1e9;
                        wkb += (double) delta.w_sectors / 2;
                        writes += (double) delta.w_ios;
                        write_ms += (double) delta.w_ms;
                        if (!isnan(metrics.w_await)) {
                                least = isnan(least) ? metrics.w_await : fmin(least, metrics.w_await);
                                most = isnan(most) ? metrics.w_await : fmax(most, metrics.w_await);
                        }
                }
                metrics_from_delta(&bucket.sum, &mean);
                assert_int_equal(bucket.count, n);
                assert_true(near(mean.wkb_s, wkb / length_s));
                assert_true(near(mean.w_s, writes / length_s));
                assert_true(near(mean.w_await, writes > 0 ? write_ms / writes : NAN));
                assert_true(near(bucket.min.w_await, least) && near(bucket.max.w_await, most));
                assert_true(bucket.n_runs <= BUCKET_RUNS && bucket.n_runs <= n_runs);
                for (size_t i = 0; i < bucket.n_runs; i++)
                        for (size_t j = 0; j < i; j++)
                                assert_string_not_equal(bucket.runs[i], bucket.runs[j]);
                for (size_t i = 0; i < N_METRIC_COLUMNS; i++) {
                        double min = metric_value(&bucket.min, &metric_columns[i]);
                        double max = metric_value(&bucket.max, &metric_columns[i]);
                        double middle = metric_value(&mean, &metric_columns[i]);

                        if (!isnan(min) && !isnan(middle))
                                assert_true(min <= middle * (1 + 1e-9) && middle <= max * (1 + 1e-9));
                }
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_random) };

        return cmocka_run_group_tests_name("history-bucket", tests, NULL, NULL);
}
