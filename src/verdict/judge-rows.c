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
        else {
                bool missed = find_misses(limits, facts->device_name, facts->rounding, &j, &reasons);
                bool known = true;

                for (CriterionName name = 0; name < N_CRITERIA; name++)
                        known &= !isnan(criterion_value(name, &facts->means));
                if (untimed)
                        reasons_add(&reasons, REASON_COUNTERS_UNTIMED,
                                    "%s shows a w_await of 0.00 ms at %.0f writes a second: it does not time "
                                    "them, so w_await cannot be judged. Judge the disks below it.",
                                    facts->device_name, facts->means.w_s);
                if (!untimed && !missed && (!known || facts->samples_total == 0))
                        reasons_add(&reasons, REASON_TOO_FEW_SAMPLES,
                                    "No row of %s holds all figures. Capture again during the test.",
                                    facts->device_name);
                j.verdict = missed ? VERDICT_FAIL : reasons.n > 0 ? VERDICT_INCONCLUSIVE : VERDICT_PASS;
        }
        j.reasons = reasons;
        *ret = j;
}
