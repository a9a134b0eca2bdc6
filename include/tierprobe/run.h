/* SPDX-License-Identifier: Apache-2.0 */
/* One run of the write test, from queued to its verdict: the place where device, sampler, probe and judge
 * meet.
 *
 * Lives on an sd-event loop and never blocks it. Used by the daemon and by `tierprobe run` alike. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <systemd/sd-event.h>

#include "tierprobe/device.h"
#include "tierprobe/profile.h"
#include "tierprobe/record.h"
#include "tierprobe/schedule.h"

typedef struct Run Run;

typedef struct RunRequest {
        const char *target; /* its name */
        const char *path;
        const Profile *profile;
        const Limits *limits;
        const GuardRules *guard;
        RunTrigger trigger;
        uint64_t interval_ns; /* between the samples that are judged; 10 ms or more */
        const char *confirms; /* the failed run that it is to confirm; NULL: none */
        bool official;        /* the profile is the target's official one */
        const char *procfs, *sysfs;
} RunRequest;

typedef struct RunEvents {
        void *userdata;
        void (*changed)(Run *run, void *userdata); /* something a reader would see; at most a few a second */
        void (*ended)(Run *run, void *userdata);   /* the verdict stands; the disk may still be busy */
        void (*gone)(Run *run,
                     void *userdata); /* nothing of it is left on the disk: run_free() it now or later */
} RunEvents;

/* Whether a run of PROFILE judged by LIMITS certifies, if it is complete: it is the documented procedure,
 * whatever the profile's name, judged by the documented limits. */
bool run_is_certifying(const Profile *profile, const Limits *limits);

/* Makes a queued run with a fresh id. Everything is copied. 0 or -ENOMEM. */
int run_new(Run **ret, sd_event *event, const RunRequest *request, const RunEvents *events);

/* Ends it hard (no verdict, no events) when it still runs. */
Run *run_free(Run *run);
void run_freep(Run **run);

/* Begins: PLACE is where the path leads when it is a symbolic link (copied; NULL: it is none), DEVICE is what
 * the path stands on (copied; NULL: nothing found), LOCK that of its disks (the run's from now on, until it
 * is freed; NULL: there is none), and BACKGROUND the device's writes just before in wkB/s / 1000 (NAN: not
 * known). From here on the events come, `ended` and `gone` exactly once each, possibly before
 * this returns. */
void run_start(Run *run, const char *place, const Device *device, DiskLock *lock,
               double background_write_mb_per_s);

/* Has the record of a queued run tell with whom it begins: with those of the N in ALL that are not itself. */
void run_set_companions(Run *run, const RunCompanion *all, size_t n);

/* Ends a queued or running run as one that could not start: REASON with DETAIL, inconclusive. */
void run_refuse(Run *run, ReasonCode reason, const char *detail);

/* Ends it as aborted; DETAIL says who or what ("by DELETE from 127.0.0.1"). The `ended` event follows at once
 * for a queued run, else as soon as the writers are gone or, when the kernel holds them, after a few seconds.
 */
void run_abort(Run *run, const char *detail);

/* Ends it as aborted here and now, whatever the writers do: they are asked to stop and killed later, and
 * `gone` follows `ended` when the kernel lets go of them. For owners that cannot wait. */
void run_cut(Run *run, const char *detail);

/* The record as of now. Borrowed, valid until the run is freed or the record is taken; NULL after that. */
const RunRecord *run_record(Run *run);

/* Hands the record of an ended run over; NULL before its end and the second time. */
RunRecord *run_take_record(Run *run);

bool run_is_gone(const Run *run);
