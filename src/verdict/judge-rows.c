/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict of a device's rows in a capture. Pure. */

#include "tierprobe/verdict.h"

#include "figures.h"

#include <math.h>
#include <string.h>

/* A printed 0.00 means less than half a hundredth of a millisecond. No disk takes 64 KiB in 10 us, 6.5 GB/s
 * for each single write, and none ends any write within 5 us: the row is not timed (bio based md and dm, old
 * nvme multipath heads). Few writes are left alone: a mean over them proves nothing. */
#define UNTIMED_WRITES_PER_S 100
#define UNTIMED_KB_PER_MS (64 / 0.010)
#define UNTIMED_WRITES_PER_S_ANY_SIZE 1000
#define UNTIMED_MS_ANY_SIZE 0.005

static bool is_untimed(const RowFacts *facts)
{
        const Metrics *means = &facts->means;

        if (!(means->w_await <= 0) || !(means->w_s >= UNTIMED_WRITES_PER_S))
                return false;
        double at_most_ms = facts->rounding[CRITERION_WRITE_LATENCY];
        double kb_per_write = means->wkb_s / means->w_s;
        return kb_per_write >= UNTIMED_KB_PER_MS * at_most_ms ||
               (means->w_s >= UNTIMED_WRITES_PER_S_ANY_SIZE && at_most_ms <= UNTIMED_MS_ANY_SIZE);
}

/* A direct,dsync writer of large blocks has a write under way most of the time. Less than this part of it:
 * what was measured is not what the device can do. */
#define TESTING_MIN 0.1
/* And with less than this, which any device reaches, there was hardly a writer at all. */
#define IDLE_MB_PER_S 10
#define IDLE_TESTING_MIN 0.2

static void find_no_test(const Limits *limits, const RowFacts *facts, Reasons *reasons)
{
        const Metrics *means = &facts->means;
        double busy = means->w_s * means->w_await / 1000;
        double mb_per_s = criterion_value(CRITERION_WRITE_THROUGHPUT, means);
        bool idle = mb_per_s < IDLE_MB_PER_S && busy < IDLE_TESTING_MIN;

        if (isnan(mb_per_s) || criterion_met(limits, CRITERION_WRITE_THROUGHPUT, mb_per_s) ||
            !(idle || busy < TESTING_MIN))
                return;
        reasons_add(
                reasons, REASON_WRITE_THROUGHPUT_LOW,
                "%s wrote %.3g MB/s (wkB/s %.2f), at least %.6g MB/s are required. %.2f writes a second kept "
                "it busy for %.2g %% of the time: %s.",
                facts->device_name, mb_per_s, means->wkb_s, limits->value[CRITERION_WRITE_THROUGHPUT],
                means->w_s, 100 * busy,
                idle ? "nobody was testing. Capture while the test writes"
                     : "it waited for the writers. Look for what slows them, a limit or the processor");
}

/* Adds the figures that no row has, and returns whether all are there. */
static bool find_unread(const RowFacts *facts, Reasons *reasons)
{
        bool all = true;

        for (CriterionName name = 0; name < N_CRITERIA; name++) {
                const CriterionRule *rule = &criterion_rules[name];

                all &= !isnan(criterion_value(name, &facts->means));
                if (facts->unread[name])
                        reasons_add(
                                reasons, REASON_COLUMN_MISSING,
                                "The %s of %s could not be read: its rows lack %s%s. Capture with: iostat "
                                "-xyz 1.",
                                rule->title, facts->device_name, rule->column,
                                name == CRITERION_WRITE_LATENCY
                                        ? ", which sysstat before 9.1.2 does not print"
                                        : "");
        }
        return all;
}

/* A fail needs one requirement missed, a pass needs all measured. */
static Verdict judge_figures(const Limits *limits, const RowFacts *facts, bool untimed, Judgement *j,
                             Reasons *reasons)
{
        if (!untimed)
                find_no_test(limits, facts, reasons); /* a better sentence than that of a miss */
        Advice advice;

        advice_init(&advice);
        bool missed = figures_find_misses(limits, facts->device_name, facts->rounding, j, &advice, reasons);
        if (untimed)
                reasons_add(
                        reasons, REASON_COUNTERS_UNTIMED,
                        "%s shows a w_await of 0.00 ms at %.0f writes a second: it does not time them, so "
                        "w_await cannot be judged. Judge the disks below it.",
                        facts->device_name, facts->means.w_s);
        bool all = find_unread(facts, reasons);
        if (reasons->n == 0 && (!all || facts->samples_total == 0))
                reasons_add(reasons, REASON_TOO_FEW_SAMPLES,
                            "No row of %s holds all figures. Capture again during the test.",
                            facts->device_name);
        return missed ? VERDICT_FAIL : reasons->n > 0 ? VERDICT_INCONCLUSIVE : VERDICT_PASS;
}

void judge_rows(const Limits *limits, const RowFacts *facts, Judgement *ret)
{
        Reasons reasons = ret->reasons;
        bool untimed = is_untimed(facts);
        Judgement j;

        judgement_init(limits, &j);
        j.measured = facts->means;
        if (untimed)
                j.measured.w_await = NAN;
        j.first_third_mb_per_s = facts->first_third_wkb_s / 1000;
        j.last_third_mb_per_s = facts->last_third_wkb_s / 1000;
        j.worst_sample_mb_per_s = facts->worst_wkb_s / 1000;
        j.samples_total = facts->samples_total;
        j.samples_passing = facts->samples_passing;
        memcpy(j.samples_missing, facts->samples_missing, sizeof j.samples_missing);
        j.samples_dropped = facts->samples_dropped;
        judgement_set_figures(limits, &j.measured, &j);

        if (reasons.n > 0)
                j.verdict = VERDICT_INCONCLUSIVE;
        else
                j.verdict = judge_figures(limits, facts, untimed, &j, &reasons);
        j.reasons = reasons;
        *ret = j;
}
