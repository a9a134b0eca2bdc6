/* SPDX-License-Identifier: Apache-2.0 */
/* Figures against limits, and the sentences about them. Pure. */

#include "figures.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A last third slower than this part of the first is called what it is: a cliff. */
#define CLIFF_RATIO 0.75

void judgement_init(const Limits *limits, Judgement *ret)
{
        Judgement j = {
                .verdict = VERDICT_NEVER_RUN,
                .criteria = { [CRITERION_WRITE_THROUGHPUT] = { NAN, limits->write_mb_per_s, false },
                              [CRITERION_WRITE_LATENCY] = { NAN, limits->w_await_ms, false } },
                .elapsed_s = NAN,
                .app_write_mb_per_s = NAN,
                .foreign_write_ratio = NAN,
                .first_third_mb_per_s = NAN,
                .last_third_mb_per_s = NAN,
                .worst_sample_mb_per_s = NAN,
        };

        for (size_t i = 0; i < sizeof j.measured / sizeof(double); i++)
                ((double *) (void *) &j.measured)[i] = NAN;
        *ret = j;
}

void judgement_set_figures(const Limits *limits, double wkb_s, double w_await, Judgement *j)
{
        j->criteria[CRITERION_WRITE_THROUGHPUT].value = wkb_s / 1000;
        j->criteria[CRITERION_WRITE_THROUGHPUT].pass = throughput_met(limits, wkb_s);
        j->criteria[CRITERION_WRITE_LATENCY].value = w_await;
        j->criteria[CRITERION_WRITE_LATENCY].pass = latency_met(limits, w_await);
        j->criteria_known = !isnan(wkb_s) || !isnan(w_await);
}

#define NUMBER_SIZE 40

/* VALUE with as few decimals, but at least two, as tell it from LIMIT: "599.9998" is not shown as 600.00. */
static const char *tell_apart(char buf[NUMBER_SIZE], double value, double limit)
{
        char other[NUMBER_SIZE];

        for (int decimals = 2; decimals <= 9; decimals++) {
                (void) snprintf(buf, NUMBER_SIZE, "%.*f", decimals, value);
                (void) snprintf(other, sizeof other, "%.*f", decimals, limit);
                if (strcmp(buf, other) != 0)
                        return buf;
        }
        (void) snprintf(buf, NUMBER_SIZE, "%.2f", value);
        return buf;
}

static void add_unsteady(const Limits *limits, const char *device, const Judgement *j, Reasons *misses)
{
        double first = j->first_third_mb_per_s, last = j->last_third_mb_per_s;
        char course[160] = "";

        if (!isnan(first) && !isnan(last))
                (void) snprintf(course, sizeof course,
                                " First third %.1f MB/s, last third %.1f MB/s, worst %.1f MB/s%s.", first,
                                last, j->worst_sample_mb_per_s,
                                last < CLIFF_RATIO * first ? ": a cliff, as when a cache is full" : "");
        reasons_add(misses, REASON_UNSTEADY,
                    "The mean of %s passes, but only %u of %u samples (%.1f %%, limit %.4g %%) meet both "
                    "limits: %u miss the throughput, %u the latency.%s Look for throttling or other load.",
                    device, j->samples_passing, j->samples_total,
                    100.0 * j->samples_passing / j->samples_total, 100 * limits->pass_ratio, j->samples_low,
                    j->samples_slow, course);
}

static const char *about_rounding(double distance, double rounding)
{
        return rounding > 0 && distance <= rounding
                       ? " That is within the rounding of the printed figure: read it with more "
                         "decimals, or test again."
                       : "";
}

bool find_misses(const Limits *limits, const char *device, Rounding rounding, const Judgement *j,
                 Reasons *misses)
{
        const Criterion *throughput = &j->criteria[CRITERION_WRITE_THROUGHPUT];
        const Criterion *latency = &j->criteria[CRITERION_WRITE_LATENCY];
        char value[NUMBER_SIZE];

        if (!isnan(throughput->value) && !throughput->pass)
                reasons_add(misses, REASON_WRITE_THROUGHPUT_LOW,
                            "%s wrote %s MB/s (wkB/s %.2f), at least %.6g MB/s are required. Use a faster "
                            "device, or see whether more streams or less load help.%s",
                            device, tell_apart(value, throughput->value, throughput->limit),
                            throughput->value * 1000, throughput->limit,
                            about_rounding((throughput->limit - throughput->value) * 1000, rounding.wkb_s));
        if (!isnan(latency->value) && !latency->pass)
                reasons_add(misses, REASON_WRITE_LATENCY_HIGH,
                            "A write to %s took %s ms on average (w_await), less than %.6g ms is required. "
                            "Use a faster device, or fewer writers at once.%s",
                            device, tell_apart(value, latency->value, latency->limit), latency->limit,
                            about_rounding(latency->value - latency->limit, rounding.w_await));
        if (misses->n == 0 && throughput->pass && latency->pass && j->samples_total > 0 &&
            !ratio_met(limits, j->samples_passing, j->samples_total))
                add_unsteady(limits, device, j, misses);
        return misses->n > 0;
}
