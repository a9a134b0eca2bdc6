/* SPDX-License-Identifier: Apache-2.0 */
/* Log-linear latency histogram. Touches only the memory it is given, with relaxed atomics, since that may be
 * shared with a writer in another process. */

#include "tierprobe/histogram.h"

#include <math.h>

#define SUB_BUCKETS (1U << HISTOGRAM_SUB_BITS)
#define LAST_BUCKET (HISTOGRAM_BUCKETS - 1U)

static inline uint64_t load(const uint64_t *p)
{
        return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static inline void store(uint64_t *p, uint64_t value)
{
        __atomic_store_n(p, value, __ATOMIC_RELAXED);
}

/* Values below 128 have a bucket each; above, the seven bits below the leading one choose among 128. */
static unsigned bucket_of(uint64_t value)
{
        if (value < SUB_BUCKETS)
                return (unsigned) value;

        unsigned power = 63U - (unsigned) __builtin_clzll(value) - HISTOGRAM_SUB_BITS;
        if (power >= HISTOGRAM_POWERS)
                return LAST_BUCKET;
        return ((power + 1U) << HISTOGRAM_SUB_BITS) + (unsigned) ((value >> power) - SUB_BUCKETS);
}

static uint64_t bucket_upper(unsigned bucket)
{
        unsigned power = bucket >> HISTOGRAM_SUB_BITS;
        uint64_t sub = bucket & (SUB_BUCKETS - 1U);

        if (power == 0)
                return sub;
        return ((SUB_BUCKETS + sub + 1U) << (power - 1U)) - 1U;
}

void histogram_add(Histogram *histogram, uint64_t value_ns)
{
        uint64_t *bucket = &histogram->buckets[bucket_of(value_ns)];
        uint64_t count = load(&histogram->count);

        /* There is one writer: a load and a store do, without the locked instruction of an atomic add. */
        store(bucket, load(bucket) + 1);
        store(&histogram->sum_ns, load(&histogram->sum_ns) + value_ns);
        if (value_ns > load(&histogram->max_ns))
                store(&histogram->max_ns, value_ns);
        if (count == 0 || value_ns < load(&histogram->min_ns))
                store(&histogram->min_ns, value_ns);
        store(&histogram->count, count + 1);
}

void histogram_merge(Histogram *into, const Histogram *from)
{
        uint64_t added = 0;

        for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
                uint64_t n = load(&from->buckets[i]);
                if (n == 0)
                        continue;
                added += n;
                store(&into->buckets[i], load(&into->buckets[i]) + n);
        }
        if (added == 0)
                return;

        uint64_t min_ns = load(&from->min_ns), max_ns = load(&from->max_ns);
        if (load(&into->count) == 0 || min_ns < load(&into->min_ns))
                store(&into->min_ns, min_ns);
        if (max_ns > load(&into->max_ns))
                store(&into->max_ns, max_ns);
        store(&into->sum_ns, load(&into->sum_ns) + load(&from->sum_ns));
        /* Counted, not copied: FROM may be written to meanwhile, and the quantiles need what was taken. */
        store(&into->count, load(&into->count) + added);
}

uint64_t histogram_quantile_ns(const Histogram *histogram, double fraction)
{
        uint64_t count = load(&histogram->count), max_ns = load(&histogram->max_ns), seen = 0;

        if (count == 0)
                return 0;
        /* 0.07 x 100 is 7.000000000000001: what is a whole number but for rounding stays that number. */
        double wanted = fraction * (double) count;
        wanted = ceil(wanted - wanted * 1e-12);
        uint64_t rank = 1;
        if (wanted >= (double) count)
                rank = count;
        else if (wanted > 1)
                rank = (uint64_t) wanted;

        for (unsigned i = 0; i < LAST_BUCKET; i++) {
                seen += load(&histogram->buckets[i]);
                if (seen >= rank) {
                        uint64_t upper = bucket_upper(i);
                        return upper < max_ns ? upper : max_ns;
                }
        }
        return max_ns; /* the last bucket has no upper bound of its own */
}

uint64_t histogram_count_up_to(const Histogram *histogram, uint64_t value_ns)
{
        uint64_t n = 0;

        for (unsigned i = 0; i < LAST_BUCKET && bucket_upper(i) <= value_ns; i++)
                n += load(&histogram->buckets[i]);
        return n;
}

double histogram_mean_ns(const Histogram *histogram)
{
        uint64_t count = load(&histogram->count);

        return count == 0 ? NAN : (double) load(&histogram->sum_ns) / (double) count;
}
