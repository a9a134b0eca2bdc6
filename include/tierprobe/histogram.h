/* SPDX-License-Identifier: Apache-2.0 */
/* Latencies with at most 1 % error in fixed memory. Knows libc.
 *
 * Log-linear buckets, as HdrHistogram has: 128 to each power of two, so a bucket is at most 1/128 of its
 * values wide. It can live in shared memory: one writer, any number of readers, no locks. */
#pragma once

#include <stdint.h>

#define HISTOGRAM_SUB_BITS 7
#define HISTOGRAM_POWERS \
        33 /* 2^40 ns: 18 minutes; longer ones are counted in the last bucket, max stays exact */
#define HISTOGRAM_BUCKETS ((HISTOGRAM_POWERS + 1) << HISTOGRAM_SUB_BITS)

typedef struct Histogram {
        uint64_t count;
        uint64_t sum_ns;
        uint64_t max_ns, min_ns; /* exact; 0 when empty */
        uint64_t buckets[HISTOGRAM_BUCKETS];
} Histogram;

void histogram_add(Histogram *histogram, uint64_t value_ns);
void histogram_merge(Histogram *into, const Histogram *from);

/* How many of the values are at most VALUE_NS, by the upper bounds of their buckets. */
uint64_t histogram_count_up_to(const Histogram *histogram, uint64_t value_ns);

/* The smallest bucket's upper bound below which FRACTION (0..1) of the values lie, never above max_ns;
 * 0 when empty. */
uint64_t histogram_quantile_ns(const Histogram *histogram, double fraction);
double histogram_mean_ns(const Histogram *histogram); /* NAN when empty */
