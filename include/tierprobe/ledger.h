/* SPDX-License-Identifier: Apache-2.0 */
/* What tests have written to each physical disk: for the daily budget, the rest after a run, and the
 * lifetime. Pure: times come in as arguments, the file is the caller's. Knows base and what a disk is called.
 *
 * A run is entered before it begins with all that it may write, counted while it writes, and settled when it
 * has ended. So its bytes count whoever asked for it, whichever target it was made for and whatever becomes
 * of the process. A disk is charged with all bytes of a run on a stack that it is a part of.
 *
 * Times are CLOCK_REALTIME in nanoseconds. One that lies in the future (the clock was set back) is taken for
 * now, so that it passes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tierprobe/device.h"
#include "tierprobe/record.h"

#define LEDGER_MAX_DISKS 1024
#define LEDGER_MAX_RUNS 256

/* What is written within so long of the first of it is one entry and counts until a day after the last of it:
 * the sum over a day is never too small, and too large by no more than what these minutes hold. */
#define LEDGER_ENTRY_NS (600 * NS_PER_S)
#define LEDGER_MAX_ENTRIES 150 /* more than a day has */

typedef struct LedgerEntry {
        int64_t first_real_ns, last_real_ns;
        uint64_t bytes;
} LedgerEntry;

typedef struct LedgerDisk {
        DiskKey key;
        uint64_t lifetime_bytes;
        int64_t last_end_real_ns; /* of a run that wrote something and gave a verdict, or was lost; 0: none */
        LedgerEntry entries[LEDGER_MAX_ENTRIES]; /* of the last day, oldest first */
        size_t n_entries;
} LedgerDisk;

/* A run that has been asked for and has not ended. */
typedef struct LedgerRun {
        char id[RUN_ID_SIZE];
        int64_t asked_real_ns;
        uint64_t reserved_bytes, counted_bytes; /* counted ones are in the disks' entries already */
        DiskKey *disks;
        size_t n_disks;
} LedgerRun;

typedef struct Ledger {
        LedgerDisk *disks;
        size_t n_disks;
        LedgerRun runs[LEDGER_MAX_RUNS];
        size_t n_runs;
} Ledger;

int ledger_new(Ledger **ret);
Ledger *ledger_free(Ledger *ledger);
void ledger_freep(Ledger **ledger);

/* Enters a run of at most BYTES. No disks: not known yet. 0, -EEXIST, -ENOSPC (too many disks or runs),
 * -ENOMEM. */
int ledger_reserve(Ledger *ledger, const char *run_id, const DiskKey *disks, size_t n_disks, uint64_t bytes,
                   int64_t now_real_ns);

/* The run is made on these disks: to be said before it writes. 0, -ENOENT (no such run), -ENOSPC, -ENOMEM. */
int ledger_set_disks(Ledger *ledger, const char *run_id, const DiskKey *disks, size_t n_disks);

/* The run has written so many bytes up to now. Nothing when it is not known. */
void ledger_count(Ledger *ledger, const char *run_id, uint64_t written_bytes, int64_t now_real_ns);

/* The run has ended. RESTS: if it has written anything, the cooldown begins. */
void ledger_settle(Ledger *ledger, const char *run_id, uint64_t written_bytes, bool rests,
                   int64_t now_real_ns);

/* Settles all runs as if they had written what they might: how far they came is not known. */
void ledger_settle_lost(Ledger *ledger, int64_t now_real_ns);

/* A run that ended at some time, from another record of it. 0, -ENOSPC or -ENOMEM. */
int ledger_add(Ledger *ledger, const DiskKey *disks, size_t n_disks, uint64_t bytes, bool rests,
               int64_t end_real_ns, int64_t now_real_ns);

/* Adds all that FROM has: the ledger of an earlier time that could not be read until now. 0, -ENOSPC or
 * -ENOMEM. */
int ledger_merge(Ledger *ledger, const Ledger *from, int64_t now_real_ns);

/* Of the disks given the greatest sum: what was written in the last day, and what runs that have not ended
 * may still write. */
uint64_t ledger_last_day(const Ledger *ledger, const DiskKey *disks, size_t n_disks, int64_t now_real_ns);

/* When that will be LIMIT or less, if nothing more is written; now, when it is. INT64_MAX: not by waiting,
 * since runs that have not ended may write more. */
int64_t ledger_room_at(const Ledger *ledger, const DiskKey *disks, size_t n_disks, uint64_t limit,
                       int64_t now_real_ns);

/* When the last run that wrote to one of the disks ended, at most now; 0: none did. */
int64_t ledger_last_end(const Ledger *ledger, const DiskKey *disks, size_t n_disks, int64_t now_real_ns);

/* All that was ever written to the disk by tests. */
uint64_t ledger_lifetime(const Ledger *ledger, const char *disk);

/* Lets go of what is older than a day, and takes times from the future for now. */
void ledger_tidy(Ledger *ledger, int64_t now_real_ns);

/* For readers of a file: a disk, made when it is not there; when there are too many, in place of the one that
 * was idle for the longest time. NULL: no room or memory. */
LedgerDisk *ledger_disk(Ledger *ledger, const char *key);
