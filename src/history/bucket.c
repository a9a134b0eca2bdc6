/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of a long time, summed up by stretches of it. Knows iostat. */

#include "tierprobe/history.h"

#include <math.h>
#include <string.h>

void bucket_begin(Bucket *bucket, int64_t begin_real_ns)
{
        *bucket = (Bucket){ .begin_real_ns = begin_real_ns };
        metrics_forget(&bucket->min);
        metrics_forget(&bucket->max);
}

static void add_run(Bucket *bucket, const char *id)
{
        if (!*id || bucket->n_runs == BUCKET_RUNS)
                return;
        for (size_t i = 0; i < bucket->n_runs; i++)
                if (strcmp(bucket->runs[i], id) == 0)
                        return;
        memcpy(bucket->runs[bucket->n_runs++], id, sizeof bucket->runs[0]);
}

void bucket_add(Bucket *bucket, const RingRecord *record, const Delta *delta)
{
        double *min = (double *) &bucket->min, *max = (double *) &bucket->max; /* nothing but doubles */
        Metrics metrics;

        metrics_from_delta(delta, &metrics);
        const double *value = (const double *) &metrics;
        for (size_t i = 0; i < N_METRIC_COLUMNS; i++) {
                /* As fmin() and fmax() do it, without a call: a NAN gives way to the other one. */
                if (value[i] < min[i] || isnan(min[i]))
                        min[i] = value[i];
                if (value[i] > max[i] || isnan(max[i]))
                        max[i] = value[i];
        }
        delta_add(&bucket->sum, delta);
        bucket->count++;
        add_run(bucket, record->run_id);
}
