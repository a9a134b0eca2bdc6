/* SPDX-License-Identifier: Apache-2.0 */
/* The requirements: what is measured, its limit, and the sentence about a miss. A further one is a row here,
 * its name in CriterionName and its reason. Pure. */

#include "tierprobe/verdict.h"

#include <math.h>
#include <string.h>

static void say_throughput_low(const Miss *miss, Reasons *reasons)
{
        reasons_add(reasons, REASON_WRITE_THROUGHPUT_LOW,
                    "%s wrote %s MB/s (wkB/s %.2f), at least %.6g MB/s are required. %s%s", miss->device,
                    miss->value, miss->column, miss->limit, miss->advice, miss->remark);
}

static void say_latency_high(const Miss *miss, Reasons *reasons)
{
        reasons_add(reasons, REASON_WRITE_LATENCY_HIGH,
                    "A write to %s took %s ms on average (w_await), less than %.6g ms is required. %s%s",
                    miss->device, miss->value, miss->limit, miss->advice, miss->remark);
}

const CriterionRule criterion_rules[N_CRITERIA] = {
        [CRITERION_WRITE_THROUGHPUT] = {
                .name = "write_throughput",
                .title = "write throughput",
                .unit = "MB/s",
                .column = "wkB/s",
                .metric = offsetof(Metrics, wkb_s),
                .per_unit = 1000, /* as the published procedure reads it: 803520 is "803 MB/s" */
                .at_least = true,
                .standard = 600,
                .limit = { "write_mb_per_s", &parameter_number,
                           offsetof(Limits, value[CRITERION_WRITE_THROUGHPUT]), .low = 0.001, .high = 1e6,
                           .right = "a number of MB/s from 0.001 to 1000000, such as 600",
                           .help = "throughput needed: wkB/s / 1000" },
                .reason = REASON_WRITE_THROUGHPUT_LOW,
                .say_missed = say_throughput_low,
                .samples_key = "low",
                .field = "TIERPROBE_WKB_PER_S",
        },
        [CRITERION_WRITE_LATENCY] = {
                .name = "write_latency",
                .title = "write latency",
                .unit = "ms",
                .column = "w_await",
                .metric = offsetof(Metrics, w_await),
                .per_unit = 1,
                .at_least = false,
                .standard = 20,
                .limit = { "w_await_ms", &parameter_number,
                           offsetof(Limits, value[CRITERION_WRITE_LATENCY]), .low = 0.001, .high = 1e6,
                           .right = "a number of milliseconds from 0.001 to 1000000, such as 20",
                           .help = "latency needed: w_await below it" },
                .reason = REASON_WRITE_LATENCY_HIGH,
                .say_missed = say_latency_high,
                .samples_key = "slow",
                .field = "TIERPROBE_W_AWAIT_MS",
        },
};

static const Parameter pass_ratio = { "pass_ratio",
                                      &parameter_number,
                                      offsetof(Limits, pass_ratio),
                                      .low = 0,
                                      .high = 1,
                                      .right = "a number from 0 to 1, such as 0.90",
                                      .help = "part of the samples that must meet both" };

const Parameter *limits_parameter(size_t index)
{
        return index < N_CRITERIA ? &criterion_rules[index].limit : index == N_CRITERIA ? &pass_ratio : NULL;
}

Limits limits_default(void)
{
        Limits limits = { .pass_ratio = 0.90 };

        for (CriterionName name = 0; name < N_CRITERIA; name++)
                limits.value[name] = criterion_rules[name].standard;
        return limits;
}

bool limits_are_documented(const Limits *limits)
{
        const Limits documented = limits_default();
        bool same = !isless(limits->pass_ratio, documented.pass_ratio) &&
                    !isgreater(limits->pass_ratio, documented.pass_ratio);

        for (CriterionName name = 0; name < N_CRITERIA; name++)
                same = same && !isless(limits->value[name], documented.value[name]) &&
                       !isgreater(limits->value[name], documented.value[name]);
        return same;
}

/* Compared in the unit of the limit: a value that is the limit as a decimal number is then the very same
 * double, 70 kB/s / 1000 == 0.07, where 0.07 * 1000 is a little more than 70. */
double criterion_value(CriterionName name, const Metrics *metrics)
{
        const CriterionRule *rule = &criterion_rules[name];

        return *(const double *) (const void *) ((const char *) metrics + rule->metric) / rule->per_unit;
}

bool criterion_met(const Limits *limits, CriterionName name, double value)
{
        if (!isfinite(value))
                return false;
        return criterion_rules[name].at_least ? value >= limits->value[name] : value < limits->value[name];
}

const char *criterion_relation(CriterionName name)
{
        return criterion_rules[name].at_least ? "at least" : "under";
}
