/* SPDX-License-Identifier: Apache-2.0 */
/* A target: its path, the device that this stands on, and its samples. Looks at the path only through a
 * child. What was seen goes up by a callback. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "looks.h"
#include "samples.h"

#include "tierprobe/condition.h"
#include "tierprobe/config.h"
#include "tierprobe/device.h"
#include "tierprobe/guards.h"
#include "tierprobe/verdict.h"

typedef struct Target Target;

typedef struct TargetEvents {
        void *userdata;
        /* What a look has seen is taken in: see target_is_waiting() for whether another follows. */
        void (*inspected)(Target *target, void *userdata);
} TargetEvents;

/* To be read by anyone, changed by target.c alone. */
struct Target {
        const TargetConfig *config; /* in the configuration in force */
        const DeviceRoots *roots;   /* borrowed */
        TargetEvents events;
        Look *look;
        PathFacts facts;       /* what a look has last seen; error EAGAIN: none has yet */
        uint64_t inspected_ns; /* MONOTONIC */
        bool inspect_failed;   /* no child could be started; said once */
        char *goal;            /* where the path led when it was first seen; NULL: not seen yet */
        Device *device;        /* NULL: none found */
        char *home;            /* the mount point it was last seen on; NULL: never */
        Reasons problems;      /* what keeps it from being tested now */
        Samples samples;
        HeatWatch *heat;  /* NULL: its drives have no sensor */
        GiveWay give_way; /* of its run, if the schedule began it */
        int refusal; /* why a run was refused that was asked for last, as start.c counts; 0: it was not */
};

/* Makes one, whose path is not looked at yet. The ring lies below STATE_FD. 0 or -ENOMEM. */
int target_new(Target **ret, const TargetConfig *config, const DeviceRoots *roots, Looks *looks, int state_fd,
               uint64_t ring_capacity, const TargetEvents *events);
Target *target_free(Target *target);
void target_freep(Target **target);

/* Asks for a look at the path; `inspected` follows. 0, or negative errno when no child could be started. */
int target_inspect(Target *target);

/* The same when the last one was so long ago that free space and mounts may have changed. */
void target_inspect_if_old(Target *target);

/* Whether an answer is awaited. */
bool target_is_waiting(const Target *target);

/* Whether nothing is known of the path yet; whether it has not answered in time, and still has not. */
bool target_is_unseen(const Target *target);
bool target_hangs(const Target *target);

/* Where the target was in an earlier run. */
void target_set_home(Target *target, const char *mount_point);

/* Its device when there is a row to judge, else NULL. */
const Device *target_row(const Target *target);
