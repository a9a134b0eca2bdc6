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
        REASON_STALLED,
        REASON_ABORTED,
        REASON_TRUNCATED,
        REASON_TOO_FEW_SAMPLES,
        REASON_COLUMN_MISSING,
        REASON_HEADER_MISSING,
        REASON_NO_ROWS,
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

typedef struct Limits {
        double write_mb_per_s; /* wkB/s / 1000, as the published procedure reads it; passes when >= */
        double w_await_ms;     /* passes when < */
        double pass_ratio; /* 0..1: the part of the sample intervals that must meet both; passes when >= */
} Limits;

/* Its parameters by index, NULL past the end. */
const Parameter *limits_parameter(size_t index);

#define LIMITS_DEFAULT ((Limits){ .write_mb_per_s = 600, .w_await_ms = 20, .pass_ratio = 0.90 })

typedef struct Criterion {
        double value; /* NAN: could not be measured */
        double limit;
        bool pass; /* meaningless while value is NAN */
} Criterion;

typedef enum CriterionName { CRITERION_WRITE_THROUGHPUT, CRITERION_WRITE_LATENCY, N_CRITERIA } CriterionName;

/* What the two requirements are called: {"write_throughput", "MB/s", "wkB/s"}, {"write_latency", "ms",
 * "w_await"}. */
typedef struct CriterionText {
        const char *name, *unit, *column;
} CriterionText;
extern const CriterionText criterion_texts[N_CRITERIA];

/* Whether one interval meets the limits; a figure that is not known (NAN: no write completed) meets none. */
bool throughput_met(const Limits *limits, double wkb_s);
bool latency_met(const Limits *limits, double w_await);
bool limits_met(const Limits *limits, double wkb_s, double w_await); /* both */

/* Whether PASSING of TOTAL samples are enough; of none they never are. */
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

        /* The window: the first snapshot at its exact start, the last at its exact end, between them the
         * ticks. Interval i is [i, i+1]. The first and the last straddle an edge of the window and do not
         * count as samples, unless a tick fell exactly on that edge. */
        const Snapshot *snapshots;
        size_t n_snapshots;
        bool first_is_tick,
                last_is_tick; /* a tick fell exactly on the window's edge: that interval is full */

        uint64_t bytes_total, bytes_written; /* by the writers */
        uint64_t block_size;
        uint64_t metadata_bytes_per_block; /* the file system's own for each synced write: not foreign */
        unsigned streams;
        bool iostats_disabled; /* queue/iostats = 0 on a judged row */
        bool cache_in_front;   /* a loop device without direct I/O: its row measures the page cache */
        bool compresses;       /* the file system may store fewer bytes than were written (btrfs) */
        bool rows_summed;      /* the row is the sum of several devices, which may hold copies or parity of
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
        unsigned samples_low, samples_slow; /* of them, below the throughput and above the latency */
        unsigned samples_dropped;           /* intervals without a value (resets, suspends, ...) */
        double first_third_mb_per_s, last_third_mb_per_s,
                worst_sample_mb_per_s; /* wkB/s / 1000; NAN unknown */
} Judgement;

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
        unsigned rows;                         /* in the window */
        double wkb_s, w_await, w_s;            /* means over it, w_await weighted by w/s; NAN unknown */
        double wkb_rounding, w_await_rounding; /* half the last printed digit, in kB/s and ms */
        double first_third_wkb_s, last_third_wkb_s, worst_wkb_s; /* NAN unknown */
        unsigned samples_total, samples_passing, samples_low, samples_slow;
        unsigned samples_dropped; /* rows that could not be read */
} RowFacts;

/* Judges the rows of a device by the same rule as a run, but for the number of samples: a single row, as the
 * published examples are, will do. RET's reasons may hold some already (column_missing, ...): they stay, and
 * make the verdict inconclusive. */
void judge_rows(const Limits *limits, const RowFacts *facts, Judgement *ret);
