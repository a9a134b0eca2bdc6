/* SPDX-License-Identifier: Apache-2.0 */
/* A run from the inside, private to this room: run.c moves it, ending.c says how it ended. */
#pragma once

#include "tierprobe/run.h"
#include "tierprobe/series.h"

/* A write that takes a hundred times the latency limit's default hangs for every practical purpose. */
#define STALL_LIMIT_NS (2 * NS_PER_S)

typedef struct Watchful Watchful;

struct Run {
        sd_event *event;
        RunEvents events;
        RunRecord *record;
        Profile profile;
        GuardRules guard;
        char *procfs, *sysfs;

        DiskLock *lock; /* NULL: none */
        Probe *probe;
        Watchful *watchful; /* what goes on around the test; NULL: nothing is known */
        Sampler *sampler;
        sd_event_source *probe_source, *watch_timer, *deadline_timer, *grace_timer;

        uint64_t interval_ns;
        Reading first, last;
        bool window_open, window_closed;
        uint64_t longest_stall_ns;

        /* A ramp: the step at hand, what the steps before it took, and what is kept of the best one. */
        unsigned streams;
        uint64_t bytes_before, elapsed_before_ns;
        RunRecord *best;
        uint64_t worst_stall_ns; /* of all steps */
        bool judged;

        TestEnd end;
        bool end_known;
        ReasonCode start_reason;
        char detail[400]; /* of the end: why it could not start, or who aborted */
        ProbeProgress progress;
        bool aborting; /* the time of grace runs: another abort does not begin it anew */
        bool ended, gone;
};

/* Notes how the test ended; the first to know it counts. */
void run_set_end(Run *run, TestEnd end);

/* How long the writers may write from now on; UINT64_MAX: no limit. What the time's end means. */
uint64_t run_time_ns(const Run *run);
TestEnd run_end_by_time(const Run *run);

/* It could not start: REASON, and a sentence. */
void run_set_not_started(Run *run, ReasonCode reason, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

/* What the writers say of their end, in the judge's terms. */
void run_set_end_from_outcome(Run *run);

/* Puts the samples, latencies and the verdict into the record. */
void run_judge(Run *run);

/* ---- ramp.c ---- */

/* The first step's streams, and how many blocks each of them writes. */
unsigned ramp_first_streams(const Profile *profile);
uint64_t ramp_count(const Profile *profile, unsigned streams);

/* A step has ended well: judges it, keeps it if it is the best so far. Whether another one follows; then
 * run->streams is set for it. */
bool ramp_take_step(Run *run);

/* No more steps: the best one becomes the run's result, unless the step at hand ended the run by an error or
 * an abort; then that is the result. */
void ramp_end(Run *run);

/* The same when a step's files are not freed in time, so that no other can follow. */
void ramp_end_early(Run *run);

/* What the record's state is after such an end. */
RunState run_state_after(TestEnd end);

/* ---- surroundings.c ---- */

/* Begins to look at what goes on around the test, notes it as it is when the writers are let go and when they
 * have ended; the record then has it. Nothing here fails: what is not known is not known. */
void surroundings_begin(Run *run);

/* Whether the kernel has killed in the own control group for want of memory since then; RET, of SIZE bytes,
 * is then how that is known. */
bool surroundings_killed_for_memory(const Run *run, char *ret, size_t size);
void surroundings_go(Run *run);
void surroundings_end(Run *run);
Watchful *surroundings_free(Watchful *watchful);

/* The judge's words for it, valid as long as TEXTS is. */
typedef struct SurroundingsTexts {
        char limit[384], state[320], heat[160];
} SurroundingsTexts;

void surroundings_describe(const Run *run, const Judgement *figures, SurroundingsTexts *texts,
                           Surroundings *ret);
