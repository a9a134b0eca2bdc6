/* SPDX-License-Identifier: Apache-2.0 */
/* Past runs: what is kept, and which of them speaks for each target. Knows history and json, and nothing of
 * the rest of the daemon: what it meets while reading goes up by PastEvents. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tierprobe/history.h"
#include "tierprobe/record.h"

typedef struct Past Past;

/* A target whose last run is wanted: a run's verdict is one on the path that it was made on. Borrowed. */
typedef struct PastSubject {
        const char *target, *path;
} PastSubject;

typedef struct PastEvents {
        void *userdata;
        /* A run that the last daemon left open was closed as aborted. May come from any function that reads
         * past runs. */
        void (*interrupted)(const RunRecord *record, void *userdata);
} PastEvents;

/* Opens what is kept below STATE_FD (borrowed). 0 or negative errno. */
int past_new(Past **ret, int state_fd, const PastEvents *events);
Past *past_free(Past *past);
void past_freep(Past **past);

/* Finds the last run of each of N targets, in place of those followed before. */
void past_follow(Past *past, const PastSubject *subjects, size_t n);

/* The newest run of a target that is followed, without evidence; NULL: it never ran. Borrowed until the next
 * past_follow() or past_add(). */
const RunRecord *past_last_run(const Past *past, const char *target);

/* The mount point that the target was last seen on in a run; NULL: in none. Borrowed likewise. */
const char *past_mount_point(const Past *past, const char *target);

/* The INDEX-th newest, read from the store when it must be; NULL past the end. Borrowed likewise. */
const RunRecord *past_record(Past *past, size_t index);

/* Whether a run of this id is among those kept. */
bool past_has(const Past *past, const char *id);

/* The same by id; NULL when there is none that can be read. */
const RunRecord *past_find(Past *past, const char *id);

/* Bytes written to the target by runs asked for since then. */
uint64_t past_written_since(Past *past, const char *target, int64_t since_real_ns);

/* Puts a run under way into the store, so that it is known of if the daemon dies in the middle of it. */
void past_keep(Past *past, const RunRecord *record);

/* Takes an ended run over as the newest one, and keeps it with its evidence. */
void past_add(Past *past, RunRecord *record);

/* The documents. Borrowed. */
const RunStore *past_store(const Past *past);
