/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict of a device's rows in a capture. Pure. */

#include "tierprobe/verdict.h"

#include "figures.h"

#include <math.h>

/* A printed 0.00 means less than half a hundredth of a millisecond. No disk takes 64 KiB in 10 us, 6.5 GB/s
 * for each single write, and none ends any write within 5 us: the row is not timed (bio based md and dm, old
 * nvme multipath heads). Few writes are left alone: a mean over them proves nothing. */
#define UNTIMED_WRITES_PER_S 100
#define UNTIMED_KB_PER_MS (64 / 0.010)
#define UNTIMED_WRITES_PER_S_ANY_SIZE 1000
#define UNTIMED_MS_ANY_SIZE 0.005

static bool is_untimed(const RowFacts *facts)
{
        if (!(facts->w_await <= 0) || !(facts->w_s >= UNTIMED_WRITES_PER_S))
                return false;
        double at_most_ms = facts->w_await_rounding;
        double kb_per_write = facts->wkb_s / facts->w_s;
        return kb_per_write >= UNTIMED_KB_PER_MS * at_most_ms ||
               (facts->w_s >= UNTIMED_WRITES_PER_S_ANY_SIZE && at_most_ms <= UNTIMED_MS_ANY_SIZE);
}

void judge_rows(const Limits *limits, const RowFacts *facts, Judgement *ret)
{
        Reasons reasons = ret->reasons;
        bool untimed = is_untimed(facts);
        Judgement j;

        judgement_init(limits, &j);
        j.measured.wkb_s = facts->wkb_s;
        j.measured.w_await = untimed ? NAN : facts->w_await;
        j.measured.w_s = facts->w_s;
        j.first_third_mb_per_s = facts->first_third_wkb_s / 1000;
        j.last_third_mb_per_s = facts->last_third_wkb_s / 1000;
        j.worst_sample_mb_per_s = facts->worst_wkb_s / 1000;
        j.samples_total = facts->samples_total;
        j.samples_passing = facts->samples_passing;
        j.samples_low = facts->samples_low;
        j.samples_slow = facts->samples_slow;
        j.samples_dropped = facts->samples_dropped;
        judgement_set_figures(limits, facts->wkb_s, j.measured.w_await, &j);

        if (reasons.n > 0)
                j.verdict = VERDICT_INCONCLUSIVE;
        else {
                Rounding rounding = { facts->wkb_rounding, facts->w_await_rounding };
                bool missed = find_misses(limits, facts->device_name, rounding, &j, &reasons);
                bool known = !isnan(facts->wkb_s) && !isnan(facts->w_await);

                if (untimed)
                        reasons_add(&reasons, REASON_COUNTERS_UNTIMED,
                                    "%s shows a w_await of 0.00 ms at %.0f writes a second: it does not time "
                                    "them, so w_await cannot be judged. Judge the disks below it.",
                                    facts->device_name, facts->w_s);
                if (!untimed && !missed && (!known || facts->samples_total == 0))
                        reasons_add(&reasons, REASON_TOO_FEW_SAMPLES,
                                    "No row of %s holds both figures. Capture again during the test.",
                                    facts->device_name);
                j.verdict = missed ? VERDICT_FAIL : reasons.n > 0 ? VERDICT_INCONCLUSIVE : VERDICT_PASS;
        }
        j.reasons = reasons;
        *ret = j;
}
