/* SPDX-License-Identifier: Apache-2.0 */
/* What production shows between tests: figures of a device's writes over the last hour and the last day.
 * Knows base. Pure: fed with samples in their order, asked at any time; each takes a constant time, and
 * memory does not grow. */
#pragma once

#include <stdint.h>

typedef struct Observed Observed;

/* One interval between two samples that belongs to no test. */
typedef struct ObservedSample {
        int64_t real_ns;      /* REALTIME at its end */
        uint64_t interval_ns; /* above 0 */
        uint64_t writes, write_ms, sectors;
} ObservedSample;

typedef enum ObservedSpan { OBSERVED_HOUR, OBSERVED_DAY, _OBSERVED_SPAN_MAX } ObservedSpan;

/* "hour", "day": the names are API. */
const char *observed_span_to_string(ObservedSpan span);

/* Figures that are not known, as nothing was written, are NAN, and their times 0. */
typedef struct ObservedFigures {
        uint64_t samples;             /* intervals seen */
        uint64_t samples_with_writes; /* those in which writes were completed */
        uint64_t samples_over_limit;  /* of these, the ones whose w_await is at or above the limit */

        /* w_await in ms, each sample weighted by its writes; quantiles with an error of at most 5 %. */
        double p50_ms, p95_ms, p99_ms, max_ms;

        /* The greatest mean throughput of any ten seconds on end, in kB/s of 1024 bytes, with their w_await.
         * A time longer by at most an interval where no samples end exactly ten seconds apart. */
        double held_wkb_s, held_w_await_ms;
        int64_t held_begin_real_ns;

        /* The longest time on end in which each sample had writes and a w_await at or above the limit. */
        double longest_over_s;
        int64_t longest_begin_real_ns;
} ObservedFigures;

#define OBSERVED_HELD_NS (10 * INT64_C(1000000000))

/* LIMIT_MS: of w_await, above 0. 0 or -ENOMEM. */
int observed_new(Observed **ret, double limit_ms);
Observed *observed_free(Observed *observed);
void observed_freep(Observed **observed);

/* Takes the next sample. Time that goes back by more than a minute means that the clock was set: all that was
 * seen before is forgotten, since nobody knows any more when it was. */
void observed_add(Observed *observed, const ObservedSample *sample);

/* The next sample does not follow on the last one: something was not seen, or was a test. */
void observed_break(Observed *observed);

/* The figures of SPAN as of NOW_REAL_NS. A span begins with a whole part of its own, a minute of the hour,
 * half an hour of the day: at NOW less 60 of the one or 48 of the other, rounded up. */
void observed_figures(const Observed *observed, ObservedSpan span, int64_t now_real_ns, ObservedFigures *ret);

/* Where the span begins at that time. */
int64_t observed_begin_real_ns(ObservedSpan span, int64_t now_real_ns);
