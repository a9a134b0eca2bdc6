/* SPDX-License-Identifier: Apache-2.0 */
/* From what past run a target's next one is planned. Touches the timetable alone. */

#include "plan.h"

#include "tierprobe/clock.h"

#include <string.h>

#define AFTER_ABORT_NS (3600 * NS_PER_S)

/* An official run that was aborted is made up for, but whoever aborted it is left in peace for a while. */
static int64_t not_before_real_ns(const Parts *parts, const Target *target)
{
        const PastRun *last = past_last_run(parts->past, target->config->name);
        uint64_t interval_ns = parts->config->schedule.interval_ns;

        if (!last || last->state != RUN_ABORTED || strcmp(last->profile, target->config->profile) != 0)
                return 0;
        return last->finished_real_ns +
               (int64_t) (interval_ns < AFTER_ABORT_NS ? interval_ns : AFTER_ABORT_NS);
}

void plan_run(const Parts *parts, Target *target)
{
        const PastStanding *standing = past_standing(parts->past, target->config->name);
        int64_t since_ns = samples_since_real_ns(&target->samples);
        /* A new target is tested one interval after it came: nobody expects ten gigabytes of writes from an
         * installation. Not one after this start, or a daemon restarted every day would never test. */
        int64_t known_since_ns =
                since_ns && since_ns < parts->started_real_ns ? since_ns : parts->started_real_ns;

        timetable_plan(parts->timetable, target, target->config->name,
                       standing && standing->run ? past_run_begin_real_ns(standing->run) : known_since_ns,
                       not_before_real_ns(parts, target),
                       standing && standing->unconfirmed ? standing->unconfirmed_facts.confirm_at_real_ns
                                                         : 0);
}
