/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon as its readers see it: fills in the views of tierprobe/views.h. Changes nothing. */
#pragma once

#include "parts.h"

#include "tierprobe/views.h"

void readers_view_target(const Parts *parts, const Target *target, TargetView *ret);

/* All but the times of the start and the pid, which are the process's. */
void readers_view_service(const Parts *parts, ServiceView *ret);
