/* SPDX-License-Identifier: Apache-2.0 */
/* The journal: where log lines go, and the daemon's events with their fields. Takes plain values and keeps no
 * state of its own: like the log, anyone in the daemon may use it. */
#pragma once

#include <stddef.h>

#include "tierprobe/past-run.h"
#include "tierprobe/record.h"

/* Sends the log to the journal when stderr is connected to it, else leaves it on stderr. */
void journal_init(void);

void journal_run_started(const RunRecord *record);
void journal_run_stalled(const RunRecord *record);
void journal_run_ended(const RunRecord *record);
void journal_run_interrupted(const PastRun *run); /* by the end of an earlier daemon */

/* A run that a guard kept from starting; WHO asked for it. */
void journal_run_refused(const char *target, const char *who, const char *detail);

/* The verdict that stands for a target, in words ("pass, stale"), and the reasons of what stands beside it.
 */
void journal_verdict_changed(const char *target, const char *before, const char *now,
                             const Reasons *warnings);

/* DEVICE is empty when there is none. */
void journal_target_changed(const char *target, const char *path, const char *device, const char *text);

/* ERROR has one line for each fault. */
void journal_config_invalid(const char *error);
void journal_started(size_t n_targets, const char *addresses);
void journal_reloaded(size_t n_targets);
