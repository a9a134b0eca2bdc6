/* SPDX-License-Identifier: Apache-2.0 */
/* What past runs say of one target. Knows json's past runs; touches no file. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "tierprobe/past-run.h"
#include "tierprobe/standing.h"

/* A target whose runs are wanted: a run's verdict is one on the path that it was made on. Borrowed. */
typedef struct PastSubject {
        const char *target, *path, *profile; /* its official one */
} PastSubject;

/* The run whose verdict stands for a target, and what there is to compare it with. */
typedef struct PastStanding {
        PastRun *run; /* NULL: none; the rest is then empty */
        StandingRun facts;
        PastRun *unconfirmed; /* a newer one that failed, and stands only when the next one does not pass or
                               * unconfirmed_facts.counts_from_real_ns has come; NULL: none */
        StandingRun unconfirmed_facts;
        StandingFigures figures[STANDING_MAX_FIGURES]; /* of the last certifying runs, newest first */
        size_t n_figures;
} PastStanding;

typedef struct Followed {
        char *target, *path, *profile;
        PastRun *last; /* NULL: never ran */
        PastStanding standing;
        char *mount_point; /* in the newest run that knows its own; NULL: none does */
} Followed;

/* Nothing is known of SUBJECT yet. 0, or -ENOMEM. */
int followed_init(Followed *ret, const PastSubject *subject);
void followed_forget(Followed *followed);

/* Takes from RUN what is still wanted of it, if it is one of the target's; runs come newest first. */
void followed_take_older(Followed *followed, PastRun *run, int64_t now_real_ns);

/* RUN, if it is one of the target's, is its last one, and may be the one that stands from now on. */
void followed_take_newer(Followed *followed, PastRun *run, int64_t now_real_ns);

/* Whether a run that was to be confirmed counts now as nothing has confirmed it in time. */
bool followed_settle(Followed *followed, int64_t now_real_ns);

/* All is known but perhaps what to compare with; that is known. */
bool followed_is_complete(const Followed *followed);
bool followed_has_all_figures(const Followed *followed);

/* Whether the text can be of a run that is still looked for by one of the N: names of targets stand in it as
 * they are. That saves taking every document apart for a target that never ran. */
bool followed_may_want(const Followed *wanted, size_t n, const char *text, size_t size);
