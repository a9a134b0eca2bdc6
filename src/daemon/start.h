/* SPDX-License-Identifier: Apache-2.0 */
/* Requests for a run, from HTTP or the schedule: decides whether it may start, and starts it. */
#pragma once

#include "parts.h"

#include "tierprobe/views.h"

/* Asks for a run. 0 with an answer, or -ENOMEM. */
int start_run(const Parts *parts, const StartOrder *order, StartAnswer *ret);

/* A look at TARGET is over: its run may begin, or is refused since there is too little space. Free space is
 * read when it decides: it is never refused for what was seen a while ago, or while a file system may still
 * be giving back what an earlier run has freed. */
void start_take_look(const Parts *parts, Target *target);

/* Sends looks for whoever waits for space. To be called now and then. */
void start_look_for_space(const Parts *parts, Target *target);
