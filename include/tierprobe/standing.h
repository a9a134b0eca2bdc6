/* SPDX-License-Identifier: Apache-2.0 */
/* Which run's verdict stands for a target, and what is to be said beside it: that it is stale, that the
 * device has become worse. Pure: what is known of runs and of now goes in, an answer comes out.
 *
 * A target has an official profile. Its verdict is that of the last run of this profile that ended by itself;
 * runs that were aborted or cut, and runs of other profiles, never replace it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tierprobe/device.h"
#include "tierprobe/profile.h"
#include "tierprobe/record.h"
#include "tierprobe/verdict.h"

/* What a run was made on. Empty text and 0: not known. */
typedef struct StandingPlace {
        char device[DEVICE_NAME_SIZE];
        uint64_t disks;           /* a hash of the names that its disks keep over reboots: device_disks() */
        char disk[DISK_KEY_SIZE]; /* one of them, for sentences */
        char firmware[256];       /* of all disks that tell theirs */
        char filesystem[32], fs_uuid[64];
} StandingPlace;

void standing_place_of(const Device *device, StandingPlace *ret);

/* What counts of an ended run. */
typedef struct StandingRun {
        char id[RUN_ID_SIZE];
        RunState state;
        Verdict verdict;
        bool official; /* its profile was the target's official one when it ran */
        bool certifying;
        int64_t finished_real_ns;
        int64_t confirm_at_real_ns, counts_from_real_ns; /* it is to be confirmed; 0: it counts as it is */
        Profile profile; /* name empty: not known; block_size 0: its parameters are not known */
        Limits limits;   /* NAN: not known */
        StandingPlace place;
        double value[N_CRITERIA]; /* measured, in each criterion's unit; NAN: not known */
} StandingRun;

typedef enum StandingClaim {
        STANDING_NONE,
        STANDING_FORMER, /* it was made under the profile that was official then: it stands, and is stale, as
                          * long as there is none of the one that is official now */
        STANDING_FULL,
} StandingClaim;

/* What the run's claim is. The newest one with the highest claim stands. */
StandingClaim standing_claim(const StandingRun *run, const char *official_profile);

/* Whether RUN, which is newer, takes the place of the run that stands (NULL: none). */
bool standing_replaces(const StandingRun *run, const StandingRun *standing, const char *official_profile);

/* What is so now. */
typedef struct StandingNow {
        int64_t real_ns;
        uint64_t stale_after_ns; /* schedule_stale_after_ns() */
        const Limits *limits;
        const Profile *official;    /* NULL: not known */
        const StandingPlace *place; /* NULL: not known yet, or does not answer */
        const char *gone; /* why there is no device under the path now, as a sentence; NULL: there is one, or
                           * it is not known */
} StandingNow;

/* Whether the run that stands is stale: too old, or what it was made on or judged by has changed since. Adds
 * a reason to RET for each. What is not known of either side has not changed. */
bool standing_is_stale(const StandingRun *run, const StandingNow *now, Reasons *ret);

/* What is kept of a certifying run to compare later ones with. */
typedef struct StandingFigures {
        char id[RUN_ID_SIZE];
        uint64_t disks; /* as in StandingPlace */
        double value[N_CRITERIA];
} StandingFigures;

/* Whether there is anything to compare with in RUN: then RET is filled in. */
bool standing_figures_of(const StandingRun *run, StandingFigures *ret);

/* How many runs are looked back at: a month of daily ones. */
#define STANDING_MAX_FIGURES 30

/* Whether RUN, a certifying pass, is clearly worse than the N runs PAST (newest first, itself may be among
 * them): than the median of those before it on the same disks, of which there must be at least five. Clearly
 * is all three:
 *
 *   - by more than 20 %: SNIA's Solid State Storage Performance Test Specification calls a device steady
 *     while five rounds in a row stay within 20 % of their mean;
 *   - its modified z-score, 0.6745 |x - median| / MAD, is above 3.5 (Iglewicz and Hoaglin, 1993; NIST
 *     e-Handbook of Statistical Methods, 1.3.5.17): a device whose figures always vary must vary more;
 *   - by more than a twentieth of the limit: below that no one it serves can tell.
 *
 * Adds a reason for each figure to RET. */
bool standing_is_degraded(const StandingRun *run, const StandingFigures *past, size_t n, Reasons *ret);
