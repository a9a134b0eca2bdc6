/* SPDX-License-Identifier: Apache-2.0 */
/* Past runs: which are kept, and which one decides for each target. Knows history and json, and nothing of
 * the rest of the daemon: what it meets while reading goes up by PastEvents.
 *
 * A document that cannot be used is one of three things: damaged (no JSON, or another run's) and set aside;
 * of another release, and then kept and served as it is; or not readable now (EIO), and then left alone and
 * tried again. In memory are the ids of all runs, and of each target its last run and the one that stands;
 * and what waits for the disk: a child writes it, so that nothing here waits for one that hangs or is full.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "followed.h"

#include "tierprobe/history.h"
#include "tierprobe/past-run.h"
#include "tierprobe/record.h"

typedef struct Past Past;

typedef struct PastEvents {
        void *userdata;
        /* A run that the last daemon left open was closed as aborted. May come from any function that reads
         * past runs. */
        void (*interrupted)(const PastRun *run, void *userdata);
} PastEvents;

/* Opens what is kept below STATE_FD (borrowed). 0 or negative errno. */
int past_new(Past **ret, int state_fd, const HistoryRules *rules, const PastEvents *events);

/* Waits a moment for what is to be written, and says what is lost. */
Past *past_free(Past *past);
void past_freep(Past **past);

/* Finds the last run of each of N targets, in place of those followed before, and keeps to RULES from now on.
 */
void past_follow(Past *past, const PastSubject *subjects, size_t n, const HistoryRules *rules);

/* The newest run of a target that is followed; NULL: it never ran. Borrowed until the next past_follow() or
 * past_add(). */
const PastRun *past_last_run(const Past *past, const char *target);

/* What stands for a target that is followed; NULL for any other. Borrowed likewise. */
const PastStanding *past_standing(const Past *past, const char *target);

/* Lets runs stand that were to be confirmed, and were not in time. Whether there was one. */
bool past_settle(Past *past);

/* The mount point that the target was last seen on in a run; NULL: in none. Borrowed likewise. */
const char *past_mount_point(const Past *past, const char *target);

/* The newest ended run that is older than BEFORE (NULL: of all), by id, so that a reader can go on while the
 * list changes; NULL when there is none. Borrowed until the list changes. */
const char *past_older(const Past *past, const char *before);
bool past_has(const Past *past, const char *id);

/* Reads an ended run: its fields, and its whole document with the evidence; each may be NULL, and is owned by
 * the caller. 0; -ENOENT; -EBADMSG: it was damaged, and is set aside now; -ENOMEM, or another errno: it
 * cannot be read now. */
int past_read(Past *past, const char *id, PastRun **ret, char **ret_text, size_t *ret_size);

/* Puts a run under way into the store, so that it is known of if the daemon dies in the middle of it. */
void past_keep(Past *past, const RunRecord *record);

/* Keeps an ended run with its evidence. What cannot be written now is held in memory, up to a bound, and
 * tried again. */
void past_add(Past *past, const RunRecord *record);

/* Does a slice of what waits: documents that could not be written, runs that are no longer to be kept. To be
 * called now and then. */
void past_work(Past *past);

/* Waits at most so long for what is to be written. Returns how many changes are not on the disk then. */
size_t past_finish(Past *past, int wait_ms);

/* How many documents are set aside. */
size_t past_set_aside(const Past *past);
