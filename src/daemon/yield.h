/* SPDX-License-Identifier: Apache-2.0 */
/* A run that the schedule began ends when others need the device: the database goes first. Knows runs and
 * targets. */
#pragma once

#include "runs.h"
#include "target.h"

#include "tierprobe/schedule.h"

/* To be called after each sample of TARGET while its run RUN is at work. One that somebody asked for goes on;
 * so does one on a mirror, whose own writes are not told from others'. */
void yield_run(Runs *runs, Target *target, const RunRecord *run, const DeviceRoots *roots,
               const GuardRules *guard);
