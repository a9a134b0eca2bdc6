/* SPDX-License-Identifier: Apache-2.0 */
/* Requests for a run, from HTTP or the schedule: decides whether it may start, and starts it. */
#pragma once

#include "parts.h"

#include "tierprobe/views.h"

/* Asks for a run of the target named TARGET; PROFILE NULL is its official one, WHO is for the journal. 0 with
 * an answer, or -ENOMEM. */
int start_run(const Parts *parts, const char *target, const char *profile, RunTrigger trigger,
              const char *who, StartAnswer *ret);
