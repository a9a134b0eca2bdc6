/* SPDX-License-Identifier: Apache-2.0 */
/* A past run: the document that some release wrote, and the few fields of it that this one needs.
 *
 * A document is kept and served as it was written. It may be of another release: members and values that are
 * not known here are no fault, and every field but the id may be missing. Part of the json room. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tierprobe/record.h"
#include "tierprobe/standing.h"

typedef struct PastRun {
        unsigned refs;
        char id[RUN_ID_SIZE];
        char target[NAME_SIZE], profile[NAME_SIZE]; /* empty: not known */
        char *path, *mount_point;                   /* NULL: not known */
        bool certifying;
        RunState state;  /* _RUN_STATE_MAX: none that is known here */
        Verdict verdict; /* VERDICT_NEVER_RUN until it ends; then VERDICT_INCONCLUSIVE for one that is not
                          * known here: it is no pass */
        int64_t queued_real_ns, started_real_ns, finished_real_ns; /* 0: not known */
        uint64_t bytes_written;

        char *text; /* the RUN as it was written: the document without "schema" and "evidence" */
        size_t size;
        json_t *run; /* the same as a tree; NULL where the library cannot hold it (numbers without bounds) */
} PastRun;

/* Reads the document of the run ID. 0; -EBADMSG with a sentence in ERROR of ERROR_SIZE bytes: it is damaged,
 * no JSON object with this id; -ENOMEM. */
int past_run_read(PastRun **ret, const char *text, size_t size, const char *id, char *error,
                  size_t error_size);

/* Another owner; each gives it back with past_run_free(). */
PastRun *past_run_ref(PastRun *run);
PastRun *past_run_free(PastRun *run);
void past_run_freep(PastRun **run);

/* The number MEMBER of its object GROUP ("measured"), or of the run itself where GROUP is NULL; NAN when
 * there is none. */
double past_run_number(const PastRun *run, const char *group, const char *member);

/* Whether the run has ended, as far as one can tell of a state that is not known here. */
bool past_run_ended(const PastRun *run);

/* When it began, or else was asked for; 0 unknown. */
int64_t past_run_begin_real_ns(const PastRun *run);

/* What of it counts for the target's verdict. */
void past_run_standing(const PastRun *run, StandingRun *ret);

/* The disks that it was made on, as device_disks() names them: fills KEYS, returns how many (at most MAX). */
size_t past_run_disks(const PastRun *run, DiskKey *keys, size_t max);

/* The document TEXT of a run that was under way when its daemon died, as that of a run aborted with DETAIL.
 * The rest of it stays as it is. 0, -EINVAL when the library cannot hold it, -ENOMEM. Owned by the caller. */
int past_run_close(const char *text, size_t size, const char *detail, char **ret_text, size_t *ret_size);
