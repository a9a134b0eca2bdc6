/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of one run, from queued to kept: the RUN of the API as a plain struct.
 *
 * Knows device, iostat, probe and verdict types. Filled by run, printed by json and cli, kept by history. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tierprobe/condition.h"
#include "tierprobe/device.h"
#include "tierprobe/iostat.h"
#include "tierprobe/probe.h"
#include "tierprobe/profile.h"
#include "tierprobe/verdict.h"

#define RUN_ID_SIZE 24 /* "20261130T131405-1ecc0a7": sorts by time */

/* Whether TEXT can be a run's id: 1 to RUN_ID_SIZE - 1 of [0-9A-Za-z-], so that it is safe as a file's name
 * and in a URL. */
bool run_id_is_valid(const char *text);

/* An id for a run that is asked for at REAL_NS (from 1970 on): its time to the second, and a number of seven
 * hexadecimal digits that is made of the millisecond and a random part. Those that one process makes in one
 * second rise. */
void run_id_make(char id[RUN_ID_SIZE], int64_t real_ns);

/* The time in an id of the form that run_id_make() gives. 0 or -EINVAL. */
int run_id_time(const char *id, int64_t *ret_real_ns);

typedef enum RunTrigger {
        TRIGGER_MANUAL,
        TRIGGER_SCHEDULE,
        TRIGGER_START, /* a scheduled run that was missed while the daemon was down, soon after its start */
        _TRIGGER_MAX
} RunTrigger;

typedef enum RunState {
        RUN_QUEUED,
        RUN_RUNNING,
        RUN_FINISHED, /* judged, whatever the verdict */
        RUN_ABORTED,
        RUN_FAILED, /* could not start, or not be carried through */
        _RUN_STATE_MAX,
} RunState;

const char *run_trigger_to_string(RunTrigger trigger);
int run_trigger_from_string(const char *text, RunTrigger *ret);
const char *run_state_to_string(RunState state);
int run_state_from_string(const char *text, RunState *ret);

static inline bool run_state_ended(RunState state)
{
        return state == RUN_FINISHED || state == RUN_ABORTED || state == RUN_FAILED;
}

/* Milliseconds; NAN when no write completed. */
typedef struct LatencySummary {
        double mean, p50, p90, p99, p99_9, max;
} LatencySummary;

/* Write calls by their latency, in few buckets: what can be added up over runs. */
#define N_LATENCY_BOUNDS 15
extern const uint64_t latency_bounds_ns[N_LATENCY_BOUNDS];

typedef struct LatencyCounts {
        uint64_t up_to[N_LATENCY_BOUNDS]; /* cumulative */
        uint64_t count, sum_ns;
} LatencyCounts;

/* Adds what HISTOGRAM, or another one, has. */
void latency_counts_add_histogram(LatencyCounts *counts, const Histogram *histogram);
void latency_counts_add(LatencyCounts *counts, const LatencyCounts *other);

/* One step of a ramp: what the device did with so many streams at once. */
typedef struct RampStep {
        unsigned streams;
        bool meets_latency; /* w_await below the limit */
        Metrics measured;
        double app_write_mb_per_s;
        LatencySummary latency;
} RampStep;

#define RAMP_MAX_STEPS 8 /* 1, 2, 4, ... 128 = PROBE_MAX_STREAMS */

void latency_summary_from_histogram(const Histogram *histogram, LatencySummary *ret);

/* What went on around the test. */
typedef struct Conditions {
        OwnLimits limits;   /* before it and after it */
        WaitCounters waits; /* while it lasted */
        States states;      /* after it, with what was before */
        Heat heat;
} Conditions;

/* A run that began at the same moment, on other disks. */
typedef struct RunCompanion {
        char target[NAME_SIZE];
        char run_id[RUN_ID_SIZE];
} RunCompanion;

typedef struct RunRecord {
        char id[RUN_ID_SIZE];
        char target[NAME_SIZE];
        char *path;
        char *place; /* where PATH led when the run began, as it is a symbolic link; NULL: it is none */
        Profile profile;
        bool certifying; /* run_is_certifying(), and, once it has ended, it was complete */
        bool official;   /* the profile is the one that decides its target's verdict */
        RunTrigger trigger;
        RunCompanion *companions; /* owned */
        size_t n_companions;
        char confirms[RUN_ID_SIZE];  /* the failed run after which this one decides; empty: none */
        int64_t confirm_at_real_ns,  /* it failed after a pass, and is to be made once more at this time; 0:
                                        not */
                counts_from_real_ns; /* when the fail counts in any case */
        RunState state;
        int64_t queued_real_ns, started_real_ns, finished_real_ns; /* 0: not yet */
        uint64_t elapsed_ns;

        uint64_t max_duration_ns; /* 0: no limit */
        unsigned swept; /* empty files that a killed test had left, and that were removed before this one */
        uint64_t bytes_total, bytes_written;

        Limits limits;
        Judgement judgement; /* verdict is VERDICT_NEVER_RUN until the run ends */
        LatencySummary latency;
        bool has_latency;
        LatencyCounts latency_counts; /* of a ramp: of all its steps */
        uint64_t stalled_ns; /* while running: how long the oldest write has been outstanding, if past the
                                limit */

        Device *device; /* NULL when none was found */

        RampStep steps[RAMP_MAX_STEPS];
        size_t n_steps;

        /* Evidence. */
        Reading *samples; /* the window's readings, see RunFacts */
        size_t n_samples;
        bool first_is_tick, last_is_tick;
        uint64_t interval_ns; /* nominal, between them */
        ProbeSlowWrite slowest[PROBE_N_SLOWEST];
        size_t n_slowest;
        Conditions *conditions;                       /* NULL: not known */
        double background_write_mb_per_s;             /* NAN unknown */
        char kernel[128], hostname[128], version[32]; /* of tierprobe */
} RunRecord;

int run_record_new(RunRecord **ret);
RunRecord *run_record_free(RunRecord *record);
void run_record_freep(RunRecord **record);

/* As if nothing had been measured yet: no samples, no latencies, every figure unknown. */
void run_record_forget_result(RunRecord *record);

/* The step of a ramp with the highest throughput that still meets the latency; NULL when none does. */
const RampStep *run_record_headroom(const RunRecord *record);
