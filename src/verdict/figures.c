/* SPDX-License-Identifier: Apache-2.0 */
/* Figures against limits, and the sentences about them. Pure. */

#include "figures.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A last third slower than this part of the first is called what it is: a cliff. */
#define CLIFF_RATIO 0.75

void judgement_forget(Judgement *ret)
{
        *ret = (Judgement){
                .verdict = VERDICT_NEVER_RUN,
                .elapsed_s = NAN,
                .app_write_mb_per_s = NAN,
                .foreign_write_ratio = NAN,
                .first_third_mb_per_s = NAN,
                .last_third_mb_per_s = NAN,
                .worst_sample_mb_per_s = NAN,
        };
        for (CriterionName name = 0; name < N_CRITERIA; name++)
                ret->criteria[name].value = NAN;
        metrics_forget(&ret->measured);
}

void judgement_init(const Limits *limits, Judgement *ret)
{
        judgement_forget(ret);
        for (CriterionName name = 0; name < N_CRITERIA; name++)
                ret->criteria[name].limit = limits->value[name];
}

void judgement_set_figures(const Limits *limits, const Metrics *figures, Judgement *j)
{
        for (CriterionName name = 0; name < N_CRITERIA; name++) {
                Criterion *criterion = &j->criteria[name];

                criterion->value = criterion_value(name, figures);
                criterion->pass = criterion_met(limits, name, criterion->value);
                j->criteria_known |= !isnan(criterion->value);
        }
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
        char course[160] = "", each[160] = "";
        size_t at = 0;

        for (CriterionName name = 0; name < N_CRITERIA && at < sizeof each; name++)
                at += (size_t) snprintf(each + at, sizeof each - at, "%s%u miss the %s", name > 0 ? ", " : "",
                                        j->samples_missing[name], criterion_rules[name].title);
        if (!isnan(first) && !isnan(last))
                (void) snprintf(course, sizeof course,
                                " First third %.1f MB/s, last third %.1f MB/s, worst %.1f MB/s%s.", first,
                                last, j->worst_sample_mb_per_s,
                                last < CLIFF_RATIO * first ? ": a cliff, as when a cache is full" : "");
        reasons_add(
                misses, REASON_UNSTEADY,
                "The mean of %s passes, but only %u of %u samples (%.1f %%, limit %.4g %%) meet the limits: "
                "%s.%s Look for throttling or other load.",
                device, j->samples_passing, j->samples_total, 100.0 * j->samples_passing / j->samples_total,
                100 * limits->pass_ratio, each, course);
}

void advice_init(Advice *ret)
{
        for (CriterionName name = 0; name < N_CRITERIA; name++)
                (void) snprintf(ret->text[name], ADVICE_SIZE, "Use a faster device.");
}

static const char *about_rounding(double distance, double rounding)
{
        return rounding > 0 && distance <= rounding
                       ? " That is within the rounding of the printed figure: read it with more "
                         "decimals, or test again."
                       : "";
}

bool figures_find_misses(const Limits *limits, const char *device, const double *rounding, const Judgement *j,
                         const Advice *advice, Reasons *misses)
{
        bool all_met = true;
        char value[NUMBER_SIZE];

        for (CriterionName name = 0; name < N_CRITERIA; name++) {
                const CriterionRule *rule = &criterion_rules[name];
                const Criterion *criterion = &j->criteria[name];
                double distance = fabs(criterion->limit - criterion->value) * rule->per_unit;

                all_met &= criterion->pass;
                if (!isnan(criterion->value) && !criterion->pass)
                        rule->say_missed(
                                &(Miss){ .device = device,
                                         .value = tell_apart(value, criterion->value, criterion->limit),
                                         .column = criterion->value * rule->per_unit,
                                         .limit = criterion->limit,
                                         .advice = advice->text[name],
                                         .remark = about_rounding(distance, rounding ? rounding[name] : 0) },
                                misses);
        }
        if (all_met && j->samples_total > 0 && !ratio_met(limits, j->samples_passing, j->samples_total))
                add_unsteady(limits, device, j, misses);
        return misses->n > 0;
}
