/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of what is kept. */

#include "tierprobe/history.h"

#include "tierprobe/cleanup.h"

#include <stddef.h>

#define RULE(member) offsetof(HistoryRules, member)

static const Parameter history_parameters[] = {
        { "keep_runs", &parameter_count, RULE(keep_runs), .min = 1, .max = 100000,
          .right = "a number of runs from 1 to 100000, such as 1000" },
        { "keep_for", &parameter_duration, RULE(keep_for_ns), .min = NS_PER_DAY, .max = 3650 * NS_PER_DAY,
          .right = "a duration from 1d to 3650d, such as 400d" },
};

const Parameter *history_parameter(size_t index)
{
        return index < ELEMENTSOF(history_parameters) ? &history_parameters[index] : NULL;
}
