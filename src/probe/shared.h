/* SPDX-License-Identifier: Apache-2.0 */
/* What the writers and their parent share: an anonymous mapping, written by one side each, read by the other
 * with relaxed atomics. Knows iostat and the probe's header. */
#pragma once

#include "tierprobe/iostat.h"
#include "tierprobe/probe.h"
#include "tierprobe/series.h"

/* Two cache lines: the prefetcher of x86 fetches them in pairs. */
#define SHARED_ALIGNMENT 128

/* A stream has none of the outcomes yet. */
#define OUTCOME_OPEN _PROBE_OUTCOME_MAX

#define shared_load(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define shared_store(p, value) __atomic_store_n((p), (value), __ATOMIC_RELAXED)

/* One slot more than there are slowest writes: the new one is put together in the spare, then LIVE is
 * changed in one store. Whenever the writer is killed, LIVE names whole records. */
#define SLOWEST_SLOTS (PROBE_N_SLOWEST + 1)

typedef struct SlowestSlot {
        uint64_t latency_ns, offset_bytes, start_ns;
} SlowestSlot;

typedef struct Slowest {
        uint64_t live; /* a bit a slot */
        SlowestSlot slots[SLOWEST_SLOTS];
} Slowest;

typedef struct StreamShared {
        _Alignas(SHARED_ALIGNMENT) uint64_t bytes;
        uint64_t blocks;
        uint64_t call_start_ns; /* MONOTONIC: since when the present call lasts; 0 when not writing */
        uint64_t begin_ns;      /* MONOTONIC: when the first write began; 0 while none has */
        uint64_t end_ns;        /* MONOTONIC: when the last one had ended; 0 while there may be more */

        /* Written before the outcome is; the outcome is stored with release. */
        uint64_t failed_offset_bytes;
        int error;
        bool writing_failed;
        ProbeOutcome outcome;

        /* Written before the stream says that it is ready, or has failed to be. */
        uint64_t free_bytes, needed_bytes;
        uint64_t dev;
        PathDenial denial; /* when preparing met EACCES or EPERM */

        Slowest slowest;
        Histogram latency;
} StreamShared;

/* Regular samples of an hour at one a second, of a day at one in 20 s; more are thinned. Fine ones: 32 to 64
 * of them cover the time until regular ones serve. */
#define WATCH_TICKS 4096
#define WATCH_FINE 64

/* Written by the watcher alone. A reader that sees SEQUENCE odd, or changed, has to read again. */
typedef struct WatchShared {
        uint32_t sequence;
        Series ticks, fine; /* number 0 of each is the reading at the moment the writers were started */
        Reading tick_items[WATCH_TICKS], fine_items[WATCH_FINE];
} WatchShared;

typedef struct ProbeShared {
        _Alignas(SHARED_ALIGNMENT) uint64_t go_ns; /* MONOTONIC, when probe_go() was called */
        uint32_t stop;                             /* no further write is to be begun */
        uint32_t first_failed; /* 1 + the first stream whose outcome is neither OK nor STOPPED */
        uint32_t swept;        /* files of killed tests that were removed */
        uint32_t running;      /* streams that have not ended */
        uint32_t last_known;   /* the last of them has read the row into LAST; stored with release */
        Reading last;
        WatchShared watch;
        StreamShared streams[];
} ProbeShared;

/* What is said over the socket; the facts are in shared memory. */
enum {
        MESSAGE_READY = 'r',   /* child: may write */
        MESSAGE_DONE = 'd',    /* child: writes no more, outcome set */
        MESSAGE_GO = 'g',      /* parent: write, unless stop is set */
        MESSAGE_RELEASE = 'x', /* parent: close the file and end */
};

/* Keeps a write if it is among the slowest. One writer. */
void slowest_add(Slowest *slowest, uint64_t latency_ns, uint64_t offset_bytes, uint64_t start_ns);

/* Copies the records in no order; returns how many. */
size_t slowest_read(const Slowest *slowest, SlowestSlot ret[PROBE_N_SLOWEST]);

/* Sets a stream's outcome, once; says to all to stop when it is a failure. */
void shared_set_outcome(ProbeShared *shared, unsigned stream, ProbeOutcome outcome, int error);

/* What all STREAMS have written so far. */
uint64_t shared_written_bytes(const ProbeShared *shared, unsigned streams);

void watch_init(WatchShared *watch);

/* The watcher changes its series between these two. */
void watch_begin_change(WatchShared *watch);
void watch_end_change(WatchShared *watch);

/* Copies SERIES, one of WATCH's two. 0 with RET, which is series_done()'s to free; -EAGAIN when no whole one
 * is to be had (the watcher was killed while it wrote), -ENOMEM. */
int watch_copy(const WatchShared *watch, const Series *series, Series *ret);
