/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's objects, private to this room: one Manager at the root, a Target for each cache path. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <systemd/sd-event.h>

#include "past.h"

#include "tierprobe/config.h"
#include "tierprobe/device.h"
#include "tierprobe/histogram.h"
#include "tierprobe/history.h"
#include "tierprobe/http.h"
#include "tierprobe/run.h"
#include "tierprobe/service.h"

typedef struct Manager Manager;

typedef struct Target {
        Manager *manager;
        const TargetConfig *config; /* in the manager's config */

        /* What a child last saw of the path, and the device that follows from it. */
        PathInspection *inspection;
        sd_event_source *inspection_source, *inspection_timer;
        bool inspect_failed; /* no child could be started; said once */
        bool inspect_again;  /* asked for while one is under way, which may have looked too early */
        PathFacts facts;
        bool facts_known;
        uint64_t inspected_ns; /* MONOTONIC */
        Device *device;        /* NULL: none found */
        char *home;            /* the mount point it was last seen on; NULL: never */

        /* Samples. */
        Sampler *sampler;
        Ring *ring;
        bool ring_failed; /* said once, until it works again */
        RingRecord sample;
        Delta sample_delta;
        Gap sample_gap;
        uint64_t gaps[_GAP_MAX];

        /* Runs. */
        Run *run;       /* queued or running */
        bool run_ready; /* the path was inspected for it */
        bool run_stall_said;
        int64_t next_run_real_ns;
        sd_event_source *schedule_timer;
        uint64_t runs_ended[_VERDICT_MAX];
        uint64_t test_written_bytes;
        Reasons device_reasons; /* why it could not be judged, as long as there was no run */
} Target;

/* A run that has ended, but the kernel still holds a writer of it: its disk is busy. */
typedef struct Lingering {
        Run *run;
        Device *device;
        Target *target; /* NULL: it has left the configuration */
} Lingering;

struct Manager {
        sd_event *event;
        ConfigOptions options;
        Config *config;
        DeviceRoots roots;
        int state_fd; /* the state directory, locked */
        Past *past;
        size_t n_rings_aside; /* damaged ones, set aside now or by an earlier start */

        Target *targets[CONFIG_MAX_TARGETS];
        size_t n_targets;
        Lingering lingering[CONFIG_MAX_TARGETS];
        size_t n_lingering;

        sd_event_source *tick_timer, *mounts_source;
        int mounts_fd;
        uint64_t next_tick_ns;
        uint64_t samples_missed;
        int64_t clock_offset_ns; /* REALTIME less BOOTTIME when the timetable was made */
        Histogram *lateness;

        HttpServer *http;
        Service service;
        int64_t started_real_ns;
        uint64_t started_ns;
        uint64_t generation;
        bool stopping;
};

/* ---- manager.c ---- */

/* Opens the state, finds the targets' devices and begins to sample. Logs what is wrong. */
int manager_new(Manager **ret, const ConfigOptions *options, Config *config, const DeviceRoots *roots,
                const char *state_dir);
Manager *manager_free(Manager *manager);
void manager_freep(Manager **manager);

/* Listens, says READY, runs until a signal ends it. 0 or negative errno. */
int manager_run(Manager *manager);

void manager_changed(Manager *manager); /* something a reader would see */

/* For reload.c: adds a target, whose path is not looked at yet; begins to sample at the configured interval.
 */
int manager_add_target(Manager *manager, const TargetConfig *config);
int manager_start_ticking(Manager *manager);

/* Finds the past runs of the targets that there are now. */
void manager_follow_past(Manager *manager);

/* ---- reload.c: the handler of SIGHUP ---- */

int manager_on_reload(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata);

/* ---- target.c: path, device, samples ---- */

int target_new(Manager *manager, const TargetConfig *config, Target **ret);
Target *target_free(Target *target);
void target_freep(Target **target);

/* Sends a child to look at the path; target_take_facts() of the result follows. While one is under way the
 * next follows it. */
void target_inspect(Target *target);

/* Where the target was in an earlier run. */
void target_set_home(Target *target, const char *mount_point);

/* Takes in what was seen: finds the device, follows a change of it. */
void target_take_facts(Target *target, const PathFacts *facts);

/* Opens the ring anew after its capacity has changed. */
void target_reopen_ring(Target *target);

/* Since when it has been sampled, as far as that is kept, or else since this start. */
int64_t target_known_since_real_ns(const Target *target);

/* Takes the sample that is due. */
void target_tick(Target *target);

/* ---- runs.c: what runs and what waits ---- */

int runs_start(Target *target, const char *profile, RunTrigger trigger, const char *who, StartAnswer *ret);
AbortResult runs_abort(Manager *manager, const char *id, const char *who);
void runs_abort_all(Manager *manager, const char *detail);
bool runs_active(const Manager *manager); /* a writer may still be at work */

/* Starts what waits and may start now. */
void runs_dispatch(Manager *manager);

/* Ends what the target has under way as aborted, at once: it leaves the configuration. */
void runs_drop_target(Target *target);

/* Frees what is under way and lingers, without a word: the daemon ends. */
void runs_free(Manager *manager);

/* ---- timetable.c: runs that start by themselves ---- */

void timetable_plan(Target *target);

/* Plans anew after the clock was set: timers are set for a span from then, as a clock step must not fire
 * them. */
void timetable_follow_clock(Manager *manager);

/* ---- trim.c ---- */

/* Gives back what only the start needed; costs a few page faults later. */
void memory_trim(void);

/* ---- service.c: the view for readers ---- */

void service_init(Manager *manager);
bool target_is_stale(const Target *target, int64_t now_real_ns);

/* ---- journal.c ---- */

/* Sends the log to the journal when stderr is connected to it, else leaves it on stderr. */
void journal_init(void);
void journal_run_started(const RunRecord *record, const char *who);
void journal_run_ended(const RunRecord *record);
void journal_run_interrupted(const PastRun *run); /* by the end of an earlier daemon */
void journal_run_stalled(const RunRecord *record);
void journal_target_changed(const Target *target, const char *text);
void journal_run_refused(const Target *target, const StartAnswer *answer);
void journal_config_invalid(const char *error);
void journal_started(const Manager *manager);
void journal_reloaded(const Manager *manager);
