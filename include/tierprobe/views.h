/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon as its readers see it: plain views of the service and its targets, and the answers to what may
 * be asked of it. json prints them, the daemon fills them in; no behaviour here.
 *
 * Pointers are borrowed and valid until the event loop turns. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tierprobe/condition.h"
#include "tierprobe/config.h"
#include "tierprobe/device.h"
#include "tierprobe/history.h"
#include "tierprobe/observed.h"
#include "tierprobe/past-run.h"
#include "tierprobe/record.h"

typedef struct TargetView {
        const char *name, *path;
        RunState state;          /* RUN_QUEUED, RUN_RUNNING, or RUN_FINISHED for "idle" */
        bool looking;            /* nothing is known of the path yet: it is being looked at */
        const Reasons *problems; /* what keeps it from being tested now */
        Verdict verdict;         /* of standing_run, as are the age and the warnings */
        double age_s;            /* since it ended; NAN: there is none */
        bool stale, degraded;
        const Reasons *warnings;     /* why it is either */
        const PastRun *standing_run; /* whose verdict stands; NULL */
        int64_t next_run_real_ns;    /* SCHEDULE_NEVER: none */
        NextWhy next_run_why;
        const Device *device;         /* NULL: not found yet */
        const HeatWatch *heat;        /* NULL: its drives have no sensor */
        const char *profile;          /* the official one */
        const PastRun *last_run;      /* the newest of any profile; NULL */
        const RunRecord *current_run; /* NULL; running or queued */
        const Observed *observed;     /* what production shows; NULL: not known yet */
        const Ring *ring;             /* NULL when samples cannot be kept */
        const RingRecord *sample;     /* the last one; NULL: none since start */
        const Delta *sample_delta;    /* holds when sample_gap is GAP_NONE */
        Gap sample_gap;
        uint64_t gaps[_GAP_MAX]; /* intervals dropped since start, by reason */
        uint64_t samples_missed; /* ticks that came too late to be taken */
        uint64_t runs_ended[_VERDICT_MAX];
        uint64_t test_written_bytes;                                  /* by all runs since start */
        LatencyCounts write_latency;                                  /* of their write calls */
        uint64_t disk_written_day_bytes, disk_written_lifetime_bytes; /* to its disk, by whatever tests */
        uint64_t budget_left_bytes; /* of the day, on its disk; UINT64_MAX: there is no budget */
        uint64_t test_bytes;        /* what its next scheduled run may write */
        uint64_t free_bytes;        /* when last looked; 0 unknown */
} TargetView;

typedef struct ServiceView {
        int64_t started_real_ns;
        uint64_t uptime_ns;
        int pid;
        Verdict verdict; /* worst of the targets */
        bool running;    /* a run is under way or queued */
        bool ready;      /* every target's verdict is a fresh pass */
        const Config *config;
        uint64_t tick_lateness_p99_ns, tick_lateness_max_ns; /* of the sampler since start */
        int64_t certificate_expiry_real_ns;                  /* 0: no TLS */
        const char
                *config_error; /* why the last reload was refused, an older configuration is in force; NULL */
        size_t n_targets;
        size_t set_aside; /* damaged files of the state directory */
} ServiceView;

typedef enum StartResult {
        START_ACCEPTED,
        START_BUSY,        /* queued or running already: run_id is that run's */
        START_COOLDOWN,    /* retry_after_s says when */
        START_OVER_BUDGET, /* likewise */
        START_REFUSED,     /* a guard refuses: reason, detail */
        START_NO_TARGET,   /* none has this name */
        START_NO_PROFILE,  /* likewise */
} StartResult;

/* What is asked for. Texts are borrowed. */
typedef struct StartOrder {
        const char *target, *profile; /* names; profile NULL: the target's official one */
        RunTrigger trigger;
        const char *who; /* for the journal */
        bool together;   /* it begins at the same moment as other runs that are asked for so */
} StartOrder;

typedef struct StartAnswer {
        StartResult result;
        const char *target;
        char run_id[RUN_ID_SIZE]; /* ACCEPTED, BUSY */
        ReasonCode reason;        /* REFUSED */
        char detail[256];
        uint64_t retry_after_s;
} StartAnswer;

typedef enum AbortResult {
        ABORT_ACCEPTED, /* it is being aborted */
        ABORT_NO_RUN,   /* none has this id */
        ABORT_ENDED,    /* it has ended */
} AbortResult;
