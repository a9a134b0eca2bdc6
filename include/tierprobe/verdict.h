/* SPDX-License-Identifier: Apache-2.0 */
/* The judge: limits, samples and facts of a test to a verdict with reasons.
 *
 * Pure: no clock, no file, no JSON, no allocation. Knows iostat's types. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tierprobe/iostat.h"
#include "tierprobe/parameter.h"

typedef enum Verdict {
        VERDICT_NEVER_RUN,
        VERDICT_PASS,
        VERDICT_FAIL,
        VERDICT_INCONCLUSIVE,
        _VERDICT_MAX,
} Verdict;

const char *verdict_to_string(Verdict verdict); /* "never_run", "pass", "fail", "inconclusive" */
int verdict_from_string(const char *text, Verdict *ret);

/* The worse of two, in the order fail, inconclusive, never_run, pass. */
Verdict verdict_worst(Verdict a, Verdict b);

/* The exit status of the monitoring-plugin convention: 0 pass, 1 pass with a warning (WARNED: stale or
 * degraded), 2 fail, 3 anything else. */
unsigned verdict_severity(Verdict verdict, bool warned);

typedef enum ReasonCode {
        REASON_WRITE_THROUGHPUT_LOW,
        REASON_WRITE_LATENCY_HIGH,
        REASON_UNSTEADY,
        REASON_NO_WRITE_COMPLETED,
        REASON_COUNTERS_UNTIMED,
        REASON_COUNTERS_DISABLED,
        REASON_COUNTERS_RESET,
        REASON_SUSPENDED,
        REASON_BYTES_MISMATCH,
        REASON_FOREIGN_IO,
        REASON_DIRECT_IO_UNSUPPORTED,
        REASON_NO_BLOCK_DEVICE,
        REASON_PATH_MISSING,
        REASON_NOT_MOUNTED,
        REASON_WRONG_DEVICE,
        REASON_NO_SPACE,
        REASON_WRITE_ERROR,
        REASON_THROTTLED,      /* an own limit held it back: cgroup, quota, file size, I/O class */
        REASON_NOT_PERMITTED,  /* the user that tests it may not go there, or not write */
        REASON_CACHE_IN_FRONT, /* a remark: the row shows a cache */
        REASON_DOUBLE_WRITES,  /* a remark: the row shows the journal as well */
        REASON_STALLED,
        REASON_ABORTED,
        REASON_TRUNCATED,
        REASON_TOO_FEW_SAMPLES,
        REASON_COLUMN_MISSING,
        REASON_HEADER_MISSING,
        REASON_NO_ROWS,
        REASON_UNREADABLE_ROWS,
        REASON_NOT_A_CAPTURE,
        REASON_IDLE,

        /* Of a verdict that stands, never of a run: it is stale, or the device has become worse. */
        REASON_TOO_OLD,
        REASON_DEVICE_CHANGED,
        REASON_FIRMWARE_CHANGED,
        REASON_FILESYSTEM_CHANGED,
        REASON_LIMITS_CHANGED,
        REASON_PROFILE_CHANGED,
        REASON_DEGRADED,
        REASON_UNCONFIRMED, /* also of a run: it failed, and is made once more before that counts */
        _REASON_MAX,
} ReasonCode;

const char *reason_to_string(ReasonCode code); /* "write_throughput_low", ... */
int reason_from_string(const char *text, ReasonCode *ret);

typedef struct Reason {
        ReasonCode code;
        char detail[400]; /* one sentence: the number that decided it, and what to do next */
} Reason;

#define MAX_REASONS 12

typedef struct Reasons {
        Reason items[MAX_REASONS];
        size_t n;
} Reasons;

/* Appends a reason; a code that is there already is left as it is, and what does not fit is dropped. */
void reasons_add(Reasons *reasons, ReasonCode code, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
bool reasons_have(const Reasons *reasons, ReasonCode code);

/* ---- the requirements ---- */

typedef enum CriterionName { CRITERION_WRITE_THROUGHPUT, CRITERION_WRITE_LATENCY, N_CRITERIA } CriterionName;

typedef struct Limits {
        double value[N_CRITERIA]; /* by CriterionName, in its unit */
        double pass_ratio; /* 0..1: the part of the sample intervals that must meet all; passes when >= */
} Limits;

/* What a sentence about a missed limit needs. */
typedef struct Miss {
        const char *device;
        const char *value; /* in the criterion's unit, with decimals enough to tell it from the limit */
        double column;     /* as the column has it */
        double limit;
        const char *advice; /* a sentence */
        const char *remark; /* to put at the end; empty, or a sentence after a blank */
} Miss;

/* All there is to know of a requirement: one row of criteria.c. */
typedef struct CriterionRule {
        const char *name;   /* "write_throughput" */
        const char *title;  /* for people: "write throughput" */
        const char *unit;   /* "MB/s" */
        const char *column; /* iostat's that it is read from: "wkB/s" */
        size_t metric;      /* of the column in Metrics */
        double per_unit;    /* of the column in one unit: 1000 kB/s in an MB/s */
        bool at_least;      /* passes when >= the limit, else when < */
        double standard;    /* the limit of the documented procedure */
        Parameter limit;    /* in Limits: its key, bounds and words */
        ReasonCode reason;
        void (*say_missed)(const Miss *miss, Reasons *reasons); /* adds the reason */
        const char *samples_key;                                /* JSON: how many samples miss it: "low" */
        const char *field;                                      /* of the journal, for the column's value */
} CriterionRule;

extern const CriterionRule criterion_rules[N_CRITERIA]; /* by CriterionName */

/* The documented procedure's. */
Limits limits_default(void);

bool limits_are_documented(const Limits *limits); /* exactly those */

/* The parameters of Limits by index, NULL past the end. */
const Parameter *limits_parameter(size_t index);

typedef struct Criterion {
        double value; /* NAN: could not be measured */
        double limit;
        bool pass; /* meaningless while value is NAN */
} Criterion;

/* A criterion's value in its unit: the column's, divided. */
double criterion_value(CriterionName name, const Metrics *metrics);

/* Whether VALUE, in the criterion's unit, meets its limit; one that is not known (NAN: no write completed)
 * does not. */
bool criterion_met(const Limits *limits, CriterionName name, double value);

/* "at least", "under". */
const char *criterion_relation(CriterionName name);

/* Whether PASSING of TOTAL samples are enough; false when TOTAL is 0. */
bool ratio_met(const Limits *limits, unsigned passing, unsigned total);

/* ---- a run ---- */

typedef enum TestEnd {
        TEST_COMPLETE,
        TEST_TIME_LIMIT,  /* judged on what was measured */
        TEST_ABORTED,     /* by the operator, or with the daemon */
        TEST_NOT_STARTED, /* why is in start_reason and start_detail */
        TEST_NO_SPACE,    /* ENOSPC or EDQUOT while writing */
        TEST_WRITE_ERROR, /* a write failed: write_errno */
        _TEST_END_MAX,
} TestEnd;

/* One look at a run: the device's counters, and what the writers had done by then. */
typedef struct Reading {
        Snapshot row;
        uint64_t written_bytes;
} Reading;

/* The readings of a run, and the writers' own clock beside them. */
typedef struct RunWindow {
        /* One before the writers began, the samples in the order of time, one after the writers had ended or
         * when they were no longer waited for. */
        Reading *readings;
        size_t n_readings;
        uint64_t begin_ns,
                end_ns;           /* MONOTONIC: their first write began, their last had ended; 0: not known */
        uint64_t interval_ns;     /* nominal, between samples */
        uint64_t in_flight_bytes; /* at most, of the writers: a device may have written them before they know
                                   */
        double own_bytes_ratio; /* what a file system writes of its own for each byte of the writers: 0.04 */

        /* Set by window_settle(). */
        bool first_is_tick, last_is_tick; /* for RunFacts */
        uint64_t unseen_ns; /* of the writers' time, before the first and after the last reading */
} RunWindow;

/* Makes the readings those of the writers' time: whoever reads the counters may be late, and then they hold
 * what others wrote before and after, and a length of time in which nothing can have been written.
 *
 * A reading at most a two hundredth of the writers' time (2 ms in short ones) from its edge, and no more than
 * an interval, is taken for one at the edge. So is one farther off when the device wrote no more between it
 * and the sample inside than the writers did: then nobody else did, and nothing is in it that is not theirs.
 * Any other is dropped: the window then begins or ends with that sample, and what lies beyond is unseen.
 * Samples out of the window are dropped, and those read after the last reading. Without the writers' clock
 * nothing else is changed. The interval after
 * the first and the one before the last reading are full when they begin and end with a sample (the first
 * also when it begins at the edge, since the samples' grid begins there, too). */
void window_settle(RunWindow *window);

/* Whether the interval of LENGTH_NS that ends with reading END of N_READINGS counts as a sample: it does
 * not straddle an edge of the window, and is not so long (half as long again as INTERVAL_NS, unless that is
 * 0) that it says nothing of how steady the device was meanwhile. */
bool window_has_sample(size_t n_readings, size_t end, bool first_is_tick, bool last_is_tick,
                       uint64_t interval_ns, uint64_t length_ns);

/* What went on around a test, in words and figures that a sentence can take. NULL and NAN: not known, or
 * nothing. */
typedef struct Surroundings {
        const char *limit; /* an own limit that the test ran into: "io.max in FILE is 8:0 wbps=104857600" */
        bool limit_in_latency;     /* it shows in the device's latency as well */
        const char *state;         /* what the kernel says of the device, without a full stop */
        const char *heat;          /* that a drive got hotter than its limit, ditto */
        double processor, waiting; /* part of a writer's time on a processor, and ready to run without one */
        double steal;              /* part of all processor time that went to other guests */
        double call_ms;            /* mean of a write call */
} Surroundings;

/* Everything the judge may know of a run. Unknown numbers are 0 or NAN. */
typedef struct RunFacts {
        TestEnd end;
        ReasonCode start_reason; /* TEST_NOT_STARTED only */
        const char *start_detail;
        int write_errno;             /* TEST_WRITE_ERROR */
        uint64_t write_offset_bytes; /* where it failed */
        const char *abort_detail;    /* who or what aborted; NULL */
        const char *device_name;     /* for sentences; NULL when there is none */
        uint64_t time_limit_ns;      /* that was set; 0: none */

        /* The window: the first reading at its exact start, the last at its exact end, between them the
         * ticks. Interval i is [i, i+1]. The first and the last straddle an edge of the window and do not
         * count as samples, unless a tick fell exactly on that edge. */
        const Reading *readings;
        size_t n_readings;
        bool first_is_tick,
                last_is_tick; /* a tick fell exactly on the window's edge: that interval is full */

        uint64_t writers_ns;  /* from their first write to the end of the last; 0: as in the readings */
        uint64_t unseen_ns;   /* of it, as window_settle() says */
        uint64_t interval_ns; /* nominal, between samples; 0: not known */

        uint64_t bytes_total, bytes_written; /* by the writers */
        uint64_t block_size;
        uint64_t metadata_bytes_per_block; /* the file system's own for each synced write: not foreign */
        unsigned streams;
        bool iostats_disabled; /* queue/iostats = 0 on a judged row */
        bool cache_in_front;   /* a loop device without direct I/O: its row measures the page cache */
        bool journals_data; /* the file system writes each byte twice, to its journal first: neither foreign
                             * nor more than what the procedure would read on the row */
        const Surroundings *surroundings; /* NULL: nothing known */
        bool compresses;  /* the file system may store fewer bytes than were written (btrfs) */
        bool rows_summed; /* the row is the sum of several devices, which may hold copies or parity of
                           * the same bytes: what exceeds the writers' bytes is neither theirs to claim
                           * as throughput nor foreign */
        double background_write_mb_per_s; /* device writes just before the run; NAN unknown */
        uint64_t longest_stall_ns;        /* longest time a write was outstanding */
        uint64_t stall_limit_ns;          /* beyond which it counts as stalled; 0: do not judge */
} RunFacts;

typedef struct Judgement {
        Verdict verdict;
        Reasons reasons;
        Criterion criteria[N_CRITERIA];
        bool criteria_known;        /* the window gave figures */
        Metrics measured;           /* over the whole window; NAN where unknown */
        double elapsed_s;           /* of the window; NAN unknown */
        double app_write_mb_per_s;  /* bytes_written / elapsed, in 10^6 bytes/s; NAN unknown */
        double foreign_write_ratio; /* part of the device's written bytes that were not ours, 0..1; NAN
                                       unknown */
        unsigned samples_total, samples_passing;
        unsigned samples_missing[N_CRITERIA]; /* of them, those that miss each limit */
        unsigned samples_dropped;             /* intervals without a value (resets, suspends, ...) */
        double first_third_mb_per_s, last_third_mb_per_s,
                worst_sample_mb_per_s; /* wkB/s / 1000; NAN unknown */
} Judgement;

/* Makes everything in RET unknown: VERDICT_NEVER_RUN, no reasons, figures NAN, limits 0. */
void judgement_forget(Judgement *ret);

/* With fewer full intervals than this no run passes: "steady" is said of a first, a middle and a last third,
 * and a cliff after the first second shows in no less. (Below ten, a ratio of 0.90 means all of them.) */
#define MIN_SAMPLES_TO_PASS 3

/* Judges a run:
 *
 *   fail          a write failed; or a requirement is missed over the whole window, or by too many of at
 *                 least MIN_SAMPLES_TO_PASS samples
 *   inconclusive  it did not start, was aborted, ran out of space; or the figures cannot be trusted or do not
 *                 suffice; or it failed while others were writing
 *   pass          both requirements are met over the window and by enough of at least MIN_SAMPLES_TO_PASS
 *                 samples
 *
 * RET is filled completely, and with every figure that is known whatever the verdict. Reasons come with the
 * deciding one first; on a pass there may be `truncated` and `stalled`. */
void judge_run(const Limits *limits, const RunFacts *facts, Judgement *ret);

/* ---- a capture ---- */

/* What the rows of one device in a capture of iostat say of its window (which rows those are: capture.h). */
typedef struct RowFacts {
        const char *device_name;
        bool unread[N_CRITERIA];     /* its column is in no row: the figure is NAN; at most one */
        unsigned rows;               /* in the window */
        Metrics means;               /* over it, w_await weighted by w/s; NAN unknown */
        double rounding[N_CRITERIA]; /* half the last printed digit of its column */
        double first_third_wkb_s, last_third_wkb_s, worst_wkb_s; /* NAN unknown */
        unsigned samples_total, samples_passing, samples_missing[N_CRITERIA];
        unsigned samples_dropped; /* rows that could not be read */
} RowFacts;

/* Judges the rows of a device by the same rule as a run, but for the number of samples: a single row, as the
 * published examples are, will do. RET's reasons may hold some already (column_missing, ...): they stay, and
 * make the verdict inconclusive. */
void judge_rows(const Limits *limits, const RowFacts *facts, Judgement *ret);
