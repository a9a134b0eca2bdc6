/* SPDX-License-Identifier: Apache-2.0 */
/* What runs and what waits: at most one run a target, and runs of targets that meet on a disk take turns.
 * What becomes of them goes up by callbacks. Knows run, and what a target stands on. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <systemd/sd-event.h>

#include "target.h"

#include "tierprobe/run.h"

typedef struct Runs Runs;

/* In place of a run's id, in samples taken while another program tests the disk: `tierprobe run`. */
#define RUN_OF_OTHERS "other"

typedef struct RunsEvents {
        void *userdata;
        void (*changed)(void *userdata); /* something a reader would see */
        void (*started)(Target *target, const RunRecord *record, void *userdata); /* writers are at work */

        /* The verdict stands. TARGET NULL: it has left the configuration. */
        void (*ended)(Target *target, RunRecord *record, void *userdata);

        /* The kernel has let go of the last writer of a run that had ended before. */
        void (*gone)(Target *target, void *userdata);
} RunsEvents;

/* Since the start of the daemon. */
typedef struct RunTally {
        uint64_t ended[_VERDICT_MAX];
        uint64_t written_bytes;
        LatencyCounts latency;
} RunTally;

/* ROOTS are borrowed. */
int runs_new(Runs **ret, sd_event *event, const DeviceRoots *roots, const RunsEvents *events);

/* Ends what is under way without a word. */
Runs *runs_free(Runs *runs);
void runs_freep(Runs **runs);

/* What run is to be made. Everything is copied. */
typedef struct RunsOrder {
        const Profile *profile;
        const Limits *limits;
        const GuardRules *guard;
        uint64_t interval_ns; /* between the samples that judge it */
        RunTrigger trigger;
        const char *confirms; /* the failed run after which this one decides; NULL: none */
        bool together; /* it begins at the same moment as all that are queued so and share no disk with it;
                        * none of them is waited for longer than a minute */
} RunsOrder;

/* Queues a run of TARGET, which must have none. It waits for runs_set_ready(). Owned by RUNS. 0 or -ENOMEM.
 */
int runs_queue(Runs *runs, Target *target, const RunsOrder *order, const RunRecord **ret);

/* TARGET was looked at for its run, which may begin when its turn comes. */
void runs_set_ready(Runs *runs, const Target *target);

/* Begins what may begin. */
void runs_dispatch(Runs *runs);

/* Ends the target's queued run as one that could not start. */
void runs_refuse(Runs *runs, const Target *target, ReasonCode reason, const char *detail);

/* Aborts the run of this id; false when there is none. DETAIL says who or what. */
bool runs_abort(Runs *runs, const char *id, const char *detail);

/* Aborts all, and begins none any more. */
void runs_stop(Runs *runs, const char *detail);
bool runs_are_stopping(const Runs *runs);

/* Ends what TARGET has under way as aborted, at once, and forgets it: it leaves the configuration. */
void runs_drop(Runs *runs, const Target *target);

/* The run that TARGET has queued or running; NULL: none. */
const RunRecord *runs_of(const Runs *runs, const Target *target);

/* The run that writes to TARGET's disks now, its own or another target's; NULL: none. */
const RunRecord *runs_at_work(const Runs *runs, const Target *target);

/* Whether another program of this kind tests TARGET's disks now; to be asked while no own run does. */
bool runs_others_at_work(const Runs *runs, const Target *target);

/* The INDEX-th newest of all that are queued or running; NULL past the end. */
const RunRecord *runs_at(const Runs *runs, size_t index);
size_t runs_count(const Runs *runs);

/* The same by id. */
const RunRecord *runs_find(const Runs *runs, const char *id);

/* Whether TARGET's run waits for runs_set_ready(). */
bool runs_wait_for_look(const Runs *runs, const Target *target);

/* How long ago, at most, the files of a run were given up; 0 while the kernel still holds a writer of one
 * that has ended, UINT64_MAX when there was none. */
uint64_t runs_quiet_ns(const Runs *runs);

RunTally runs_tally(const Runs *runs, const Target *target);
