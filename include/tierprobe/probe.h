/* SPDX-License-Identifier: Apache-2.0 */
/* The write test: plan, writers (child processes), progress and latency in shared memory.
 *
 * Knows base, iostat and the judge's least number of samples. Only the children ever touch the tested path: a
 * write that hangs in the kernel must not stop the parent. The parent learns everything from shared memory
 * and one file descriptor to poll. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tierprobe/histogram.h"
#include "tierprobe/iostat.h"
#include "tierprobe/path-error.h"
#include "tierprobe/series.h"

#define PROBE_MAX_STREAMS 128
#define PROBE_BLOCK_MIN 4096
#define PROBE_BLOCK_MAX (UINT64_C(64) << 20)
#define PROBE_N_SLOWEST 10
#define PROBE_FINE_NS UINT64_C(10000000) /* between fine samples; it doubles as the run goes on */

typedef enum ProbePattern {
        PATTERN_ZERO,   /* what dd if=/dev/zero writes */
        PATTERN_RANDOM, /* incompressible, no two blocks alike */
        _PATTERN_MAX,
} ProbePattern;

const char *probe_pattern_to_string(ProbePattern pattern); /* "zero", "random" */
int probe_pattern_from_string(const char *text, ProbePattern *ret);

typedef struct ProbePlan {
        const char *path;    /* an existing directory, absolute; its last part not a symbolic link */
        uint64_t block_size; /* bytes, PROBE_BLOCK_MIN..PROBE_BLOCK_MAX, a multiple of 4096 */
        uint64_t count;      /* blocks each stream writes, at least 1 */
        unsigned streams;    /* 1..PROBE_MAX_STREAMS, each a process with a file of its own */
        ProbePattern pattern;
        bool as_dd; /* with PATTERN_ZERO: each block is read from /dev/zero before it is written, as dd does;
                     * else the zeroes are prepared once, which takes no time between writes */
        uint64_t min_free_bytes; /* what must stay free beside the test's own bytes */
        double min_free_ratio;   /* the same as a part of the file system (0..1); the larger counts */
        uint64_t wrap_bytes;     /* 0: each file grows to block_size x count. Else a stream starts anew with a
                                  * fresh file before its file would pass this many bytes (tests by duration);
                                  * twice as much must be free, since giving up a file takes time */
        uint64_t limit_ns;       /* no write begins later than this after probe_go(); 0: no limit */

        /* The device's row, as for sampler_new(): read by a child of its own every interval_ns (10 ms or
         * more), and when the last stream has ended. No rows: not read. Borrowed for the call only. */
        const char *procfs, *sysfs;
        const char *const *rows;
        size_t n_rows;
        uint64_t interval_ns;
} ProbePlan;

typedef enum ProbeState {
        PROBE_PREPARING, /* children check the path and make their files */
        PROBE_READY,     /* all wait for probe_go(): read the counters, then call it */
        PROBE_WRITING,
        PROBE_DONE, /* no stream writes any more, files still open: read the counters, then probe_release().
                     * A failure while preparing, or probe_stop() before probe_go(), leads here as well */
        PROBE_CLOSING, /* files are being closed, which frees their space and may take seconds */
        PROBE_GONE,    /* every child is reaped: nothing is left on the device. Without DONE before it when
                        * all were killed */
} ProbeState;

/* How a stream, and so the probe, ended. The first in time that is not PROBE_OK among the streams counts,
 * except that a PROBE_STOPPED never hides another; it stops the other streams. What a stream has finished
 * stays so, even if its process is killed later. */
typedef enum ProbeOutcome {
        PROBE_OK,
        PROBE_STOPPED,        /* by probe_stop(), or as limit_ns were over */
        PROBE_KILLED,         /* by probe_kill(), or from outside */
        PROBE_PATH_MISSING,   /* no such directory, or not a directory; error says which */
        PROBE_SYMLINK,        /* the last part of the path is a symbolic link */
        PROBE_NOT_WRITABLE,   /* EACCES, EPERM, EROFS when the file was made */
        PROBE_DIRECT_REFUSED, /* O_DIRECT is not supported here */
        PROBE_NO_SPACE,       /* before the test (too little free) or during it (ENOSPC, EDQUOT, EFBIG) */
        PROBE_WRITE_ERROR,    /* a write failed, or (EIO and the like) the making of the file; error: errno */
        PROBE_INTERNAL,       /* no memory, a writer crashed: not the device's fault */
        _PROBE_OUTCOME_MAX,
} ProbeOutcome;

typedef struct ProbeSlowWrite {
        uint64_t latency_ns;
        uint64_t offset_bytes; /* in its stream's file */
        uint64_t start_ns;     /* after probe_go(), MONOTONIC */
        unsigned stream;
} ProbeSlowWrite;

typedef struct ProbeProgress {
        ProbeState state;
        ProbeOutcome outcome;
        int error;                    /* errno behind the outcome, 0 when there is none */
        unsigned failed_stream;       /* whose outcome it is */
        uint64_t failed_offset_bytes; /* where a write failed */
        bool writing_failed;          /* it failed after writing began (not while preparing) */
        uint64_t bytes_written;       /* by completed writes, all streams */
        uint64_t blocks_written;
        uint64_t oldest_write_ns; /* how long the oldest outstanding write call, or change to a fresh file,
                                   * has lasted; 0: none */
        uint64_t free_bytes;      /* of the file system while preparing; 0 when unknown */
        uint64_t needed_bytes;    /* what had to be free, reserve included; 0 when unknown */
        dev_t path_dev;           /* st_dev of the directory, 0 when unknown */
        PathDenial denial;        /* of PROBE_NOT_WRITABLE, or PROBE_PATH_MISSING for want of permission */
        unsigned swept;           /* empty files that a killed test had left, and that were removed */
        unsigned streams_writing, streams_done;
        uint64_t begin_ns; /* MONOTONIC, by the writers' own clock: when the first write began; 0: none has */
        uint64_t end_ns;   /* when the last one of all streams had ended; 0 while there may be more, and when
                            * a stream was killed */
} ProbeProgress;

typedef struct Probe Probe;

/* Forks the writers, which begin to prepare. Validates the plan: -EINVAL. Also -ENOMEM, -EAGAIN and others of
 * fork(); nothing runs then. The caller must not be multi-threaded. */
int probe_new(const ProbePlan *plan, Probe **ret);

/* Kills what still runs and forgets it: does not wait for a child that the kernel holds. Such a child is
 * reaped when the next one is made or forgotten, or by probe_reap_abandoned(). */
Probe *probe_free(Probe *probe);
void probe_freep(Probe **probe);

/* Reaps what can be reaped of the children that probe_free() and path_inspection_free() left behind; returns
 * how many the kernel still holds. Never blocks. */
size_t probe_reap_abandoned(void);

/* Readable whenever probe_process() has something to do: an epoll descriptor, owned by the probe. */
int probe_get_fd(const Probe *probe);

/* Takes in what the children said and reaps them; never blocks. Returns the state. */
ProbeState probe_process(Probe *probe);

/* State changes by the caller; each does nothing in a state it does not fit. */
void probe_go(Probe *probe);      /* READY -> WRITING */
void probe_stop(Probe *probe);    /* ends after the writes under way, or before any: -> DONE, PROBE_STOPPED */
void probe_release(Probe *probe); /* DONE -> CLOSING */
void probe_kill(Probe *probe);    /* SIGKILL to all; files vanish with them: CLOSING -> GONE once reaped */

/* From memory alone: never blocks, may be called as often as one likes. */
void probe_progress(const Probe *probe, ProbeProgress *ret);

/* The pids of the writers that have not ended, at most MAX; returns how many. */
size_t probe_writers(const Probe *probe, pid_t *ret, size_t max);

/* Merges every stream's histogram into RET (which is overwritten). */
void probe_latency(const Probe *probe, Histogram *ret);

/* The row as it was when the last stream ended, read by that stream. False when there is none: it has not, it
 * was killed, or the plan names no row. */
bool probe_last_reading(const Probe *probe, Reading *ret);

/* Copies the samples of the row since probe_go(), where number 0 was taken; the fine ones only until the
 * regular ones are as many as the judge needs. RET is series_done()'s to free. 0, -ENOMEM, -EAGAIN: there are
 * none, or the child that takes them was killed in the middle. */
int probe_samples(const Probe *probe, bool fine, Series *ret);

/* The slowest writes of all streams, slowest first; returns how many. */
size_t probe_slowest(const Probe *probe, ProbeSlowWrite ret[PROBE_N_SLOWEST]);

/* A folder of this name inside the tested directory that belongs to the user of the process is used in its
 * place: so a directory of another owner can be tested. `tierprobe target prepare` makes it. */
#define PROBE_WORK_DIR ".tierprobe"

/* ---- looking at a path without going there ---- */

typedef struct PathFacts {
        int error; /* 0, or the errno that stat of the directory gave (ENOENT, ENOTDIR, ELOOP: links lead in a
                    * circle, ETIMEDOUT: no answer in time) */
        bool is_link;        /* the last part of the path is a symbolic link, which was followed */
        char resolved[4096]; /* realpath() of the directory */
        dev_t dev;
        uint64_t free_bytes, total_bytes, fs_type; /* statvfs, f_type of statfs */
        int write_error;   /* 0, or why no file can be made in it (EACCES, EROFS, ...) */
        PathDenial denial; /* when one of the errors is EACCES or EPERM: who may not do what */
        bool read_only;
        unsigned swept; /* empty files that a killed test had left, and that were removed */
} PathFacts;

typedef struct PathInspection PathInspection;

/* Starts a child that looks at PATH, and with SWEEP removes the empty files of this user that a killed test
 * has left there. Poll path_inspection_get_fd() for reading, then collect. */
int path_inspection_new(const char *path, bool sweep, PathInspection **ret);
PathInspection *path_inspection_free(PathInspection *inspection); /* kills the child if it still runs */
void path_inspection_freep(PathInspection **inspection);
int path_inspection_get_fd(const PathInspection *inspection);

/* 0 with the facts, -EAGAIN when there are none yet, -EIO when the child died without an answer. */
int path_inspection_collect(PathInspection *inspection, PathFacts *ret);

/* All three in one, without a sweep, waiting at most TIMEOUT_NS: for programs that have nothing else to do.
 * When time runs out the result is 0 with ret->error = ETIMEDOUT. */
int path_inspect(const char *path, uint64_t timeout_ns, PathFacts *ret);
