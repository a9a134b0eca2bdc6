/* SPDX-License-Identifier: Apache-2.0 */
/* Whose fault a miss is, and what mends it: the device's, the host's, or a limit's that was set. Inside the
 * verdict room. */
#pragma once

#include "figures.h"
#include "run-window.h"

/* One piece of advice for each requirement, that fits the figures. */
void blame_advise(const Limits *limits, const RunFacts *facts, const Judgement *j, Advice *ret);

/* Whether something above the device explains the MISSES; adds the reason that says what. */
bool blame_is_above(const Limits *limits, const RunFacts *facts, const Window *window, const Judgement *j,
                    const Reasons *misses, Reasons *reasons);

/* Adds to the sentence of a missed throughput, or of an unsteady run, where the time went, and what the
 * kernel says of the device. */
void blame_explain(const RunFacts *facts, const Judgement *j, Reasons *misses);
