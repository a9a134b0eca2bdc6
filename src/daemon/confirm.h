/* SPDX-License-Identifier: Apache-2.0 */
/* A fail that follows a pass is tested once more before it counts, where [target] confirm says so. */
#pragma once

#include "parts.h"

/* To be called with a run of TARGET that has ended, before it is kept: RECORD says from now on that it is to
 * be confirmed, if it is. Not when the standing verdict is no pass, when there is such a run already, or when
 * the day's write budget has no room for another one by then. */
void confirm_mark(const Parts *parts, const Target *target, RunRecord *record);

/* The failed run that a run of TARGET with PROFILE confirms or not; NULL: none. Borrowed. */
const char *confirm_subject(const Parts *parts, const Target *target, const Profile *profile);
