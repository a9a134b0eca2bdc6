/* SPDX-License-Identifier: Apache-2.0 */
/* From what past run a target's next one is planned. */
#pragma once

#include "parts.h"

/* Plans the next run of TARGET by the run that stands: one of another profile, or that was cut, is not what
 * the schedule is for. */
void plan_run(const Parts *parts, Target *target);
