/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept: the ring of samples of each target, and past runs. Knows base and iostat's types.
 *
 * Both live in the state directory and are written by children, so that a disk that hangs holds nobody up. A
 * kill -9 at any moment loses what they have not written yet: in the ordinary case the sample being taken, on
 * a disk that does not keep up the last ones, whose numbers are then given out again. What is damaged is set
 * aside under a name of its own (set_aside_at()), and the caller is told. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tierprobe/clock.h"
#include "tierprobe/iostat.h"
#include "tierprobe/parameter.h"
#include "tierprobe/record.h"

/* ---- ring of samples ---- */

#define RING_CAPACITY_MIN 2
#define RING_CAPACITY_MAX 10000000

typedef struct Ring Ring;

typedef struct RingRecord {
        uint64_t seq; /* from 1, never reused while the file lives */
        Snapshot snapshot;
        char device[32]; /* Device.name, cut */
        char run_id[24]; /* the run that wrote to the disk when the sample was taken; empty: none */
} RingRecord;

/* The file, for whoever wants to read it. Numbers are in the byte order of the machine; a checksum is FNV-1a
 * of 64 bits.
 *
 *   byte 0      header: "TPRING1\n"; u32 0x01020304 as the writer has it (another order is another
 * machine's); u32 bytes of a record R (64 to 4096, a multiple of 8); u64 capacity C in records; u64 number of
 * the first record that was ever in this file; u64 checksum of the 32 bytes before byte 512    two
 * checkpoints in sectors of their own, written in turn: u64 number of the record that comes next; byte 1024
 * u64 checksum of the 8 bytes before. The newer whole one holds; records may follow it. byte 1536   fields:
 * "FIELDS1\n"; u32 number N; u32 bytes of an entry E (at least 24); u64 checksum of N, E and the entries;
 * then N entries: 20 bytes name; u16 offset in the record; u8 size; u8 type: "u" unsigned, "i" signed whole
 * number of 1, 2, 4 or 8 bytes, "t" text, all padded with NUL. A file without it is of release 1: records as
 * in struct DiskRecord of ring-internal.h. byte 4096   C records. The record of number n lies in slot (n - 1)
 * modulo C; numbers begin at 1 and are never used again. Each begins with u64 checksum of its other R - 8
 * bytes, and u64 its number: one that is not both is damaged, or of another time round.
 *
 * The fields have the names of Snapshot's and Counters' members (iostat.h), "device" and "run_id". A reader
 * takes those that it knows by name and type, wherever they lie; what is not there is not known, and what it
 * does not know is not its own. A release that changes what a record holds changes this table, and not the
 * file's magic. */

/* Opens or makes the ring file NAME below DIR_FD for CAPACITY records (2..10,000,000). A file of another
 * capacity, or of another release with other fields, is read and written as it is, until ring_work() has
 * rewritten it. RET_DAMAGED (may be NULL) says whether one was set aside. A lock that a process has, and
 * its children do not inherit, makes sure of one writer: -EBUSY when another process has the ring open.
 * Within one process a ring must be freed before it is opened again.
 *
 * Records are fixed-size with a checksum each, read and written with pread/pwrite: no mapping, so a full or
 * broken disk is an error code and not a signal, and resident memory stays small. Opening reads less than
 * 1 MiB. Returns 0 or negative errno. */
int ring_open(Ring **ret, int dir_fd, const char *name, uint64_t capacity, bool *ret_damaged);

/* Rewrites a slice of the file, if it is of another form or capacity, keeping its newest records; the old
 * file stays until the new one is complete and on the disk. To be called now and then; takes a few
 * milliseconds at most. True while there is more to do; what fails, for want of space for example, is left as
 * it was. */
bool ring_work(Ring *ring);

Ring *ring_free(Ring *ring);
void ring_freep(Ring **ring);

/* From now on what is appended waits in memory, where it is read back from, and is written by a child: the
 * caller never waits for the disk. 0 or -ENOMEM. */
int ring_write_behind(Ring *ring);

/* Has a child write what waits: every few seconds, what fails again a while later; at most 2 MB wait. To be
 * called after each append. 0, the errno of the last child, or -EINPROGRESS: one has been at work for long.
 */
int ring_save(Ring *ring);

/* Waits at most so long for all to be written. Returns how many pieces are not, which the ring's end loses.
 */
size_t ring_finish(Ring *ring, int wait_ms);

/* Appends; RECORD->seq is set. A failed write (disk full) returns its errno and uses up the number: the hole
 * reads as -ENODATA. */
int ring_append(Ring *ring, RingRecord *record);

uint64_t ring_capacity(const Ring *ring);
uint64_t ring_first_seq(const Ring *ring); /* oldest kept; equals ring_next_seq() when empty */
uint64_t ring_next_seq(const Ring *ring);

/* Reads one record. 0, -ENOENT (not kept, or not yet), -ENODATA (damaged or never written). */
int ring_read(const Ring *ring, uint64_t seq, RingRecord *ret);

/* Reads the record and its predecessor and computes the interval. *RET_GAP is GAP_NONE when RET_DELTA holds
 * one; GAP_FIRST as well after a hole, GAP_REPLACED as well when the device's name changed. Returns as
 * ring_read() for the record itself. */
int ring_read_delta(const Ring *ring, uint64_t seq, RingRecord *ret, Delta *ret_delta, Gap *ret_gap);

/* For whoever goes through many, who needs them read and checked several at a time. Begins as { 0 }. */
#define RING_READ_AHEAD 32

typedef struct RingReader {
        RingRecord record; /* the last one; seq 0: there is none */
        uint64_t first;    /* the number of ahead[0] */
        size_t n;
        RingRecord ahead[RING_READ_AHEAD]; /* as they were when they were read; seq 0: damaged */
} RingReader;

/* The same as ring_read_delta() for READER->record, quickest when SEQ is one more than in the last call. */
int ring_read_next(const Ring *ring, RingReader *reader, uint64_t seq, Delta *ret_delta, Gap *ret_gap);

/* The first record that is not older than REAL_NS, among those kept; ring_next_seq() when all are. Records
 * that cannot be read count as older; where the clock was set back it is one of the places that could be
 * meant. */
uint64_t ring_find_time(const Ring *ring, int64_t real_ns);

/* ---- buckets: samples summed up by time ---- */

#define BUCKET_RUNS 8

/* The intervals that end in one stretch of time. */
typedef struct Bucket {
        int64_t begin_real_ns;
        uint64_t count;
        Delta sum;
        Metrics min, max;           /* of each figure, NAN where none of them had it */
        char runs[BUCKET_RUNS][24]; /* ids of the first runs in it */
        size_t n_runs;
} Bucket;

void bucket_begin(Bucket *bucket, int64_t begin_real_ns);

/* Adds the interval that ends with RECORD. */
void bucket_add(Bucket *bucket, const RingRecord *record, const Delta *delta);

/* ---- past runs ---- */

/* Which runs are kept: at most so many, and none that is so much older than the newest. */
typedef struct HistoryRules {
        uint64_t keep_runs;
        uint64_t keep_for_ns;
} HistoryRules;

#define HISTORY_RULES_DEFAULT ((HistoryRules){ .keep_runs = 1000, .keep_for_ns = 400 * NS_PER_DAY })

/* The INDEX-th parameter of HistoryRules; NULL past the end. */
const Parameter *history_parameter(size_t index);

typedef struct RunStore RunStore;

#define RUN_STORE_MAX_BYTES (UINT64_C(16) << 20)

/* Opens the folder NAME below DIR_FD (made with mode 0750) that holds one file ID.json a run; see
 * run_id_is_valid(). What is in the files is the caller's. Files of other names are left alone. 0, -ENOTDIR
 * (something else is there), or another negative errno. */
int run_store_open(RunStore **ret, int dir_fd, const char *name);
RunStore *run_store_free(RunStore *store);
void run_store_freep(RunStore **store);

/* Keeps a copy of TEXT under ID, in place of what was there. It is in the list and read
 * back from now on, and is written by run_store_work(). 0, -EINVAL for an id that cannot be one, -EFBIG
 * beyond RUN_STORE_MAX_BYTES, -ENOBUFS when as much waits for the disk as may, or another errno. */
int run_store_put(RunStore *store, const char *id, const char *text, size_t size);

/* Has a child make the changes that wait, in order, each atomic and brought to the disk; what fails waits,
 * and is tried again when RETRY_NS have gone by. Never waits for the disk. To be called now and then: 0, or
 * the errno of the last try. */
int run_store_work(RunStore *store, uint64_t retry_ns);

/* Waits at most so long for them. Returns how many are still to be made, which the store's end loses. */
size_t run_store_finish(RunStore *store, int wait_ms);

/* How many changes wait, and for how long the child has been at work (0: none is). */
size_t run_store_waiting(const RunStore *store);
uint64_t run_store_busy_ns(const RunStore *store);

/* Reads it back, NUL-terminated. 0, -ENOENT, -EINVAL for an id that cannot be one, -EFBIG, or another errno.
 * Owned by the caller. */
int run_store_get(const RunStore *store, const char *id, char **ret_text, size_t *ret_size);

/* Takes a document out of the list: out of the way at once under a name of its own, see set_aside_at(); or
 * for good, by run_store_work(). Indexes above its own move down by one. 0, -ENOENT, -EINVAL, -ENOBUFS (it
 * stays), or the errno of the file system: then it is out of the list all the same, and met again at the next
 * start. */
int run_store_set_aside(RunStore *store, const char *id);
int run_store_remove(RunStore *store, const char *id);

/* How many documents are set aside. */
size_t run_store_set_aside_count(const RunStore *store);

/* The ids kept, newest (greatest) first; NULL past the end. */
size_t run_store_count(const RunStore *store);
const char *run_store_id(const RunStore *store, size_t index);

/* The newest id that is older than ID (NULL: of all), so that a reader can go on while the list changes; NULL
 * when there is none. Borrowed until the list changes. */
const char *run_store_older(const RunStore *store, const char *id);

bool run_store_has(const RunStore *store, const char *id);
