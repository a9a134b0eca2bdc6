/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger of the daemon and its file: what tests have written to each disk, whoever asked for them.
 *
 * A child writes and syncs the file, so that a state disk that hangs holds nothing up: at most one at a time,
 * and while it is at work the next version waits. Knows history and json. */
#pragma once

#include <stdint.h>

#include <systemd/sd-event.h>

#include "tierprobe/device.h"
#include "tierprobe/ledger.h"

typedef struct LedgerFile LedgerFile;

/* What happened when the file was looked for. */
typedef enum LedgerState {
        LEDGER_READ,
        LEDGER_MISSING,    /* there was none */
        LEDGER_DAMAGED,    /* it is set aside */
        LEDGER_UNREADABLE, /* now; what is written down meanwhile is added to it when it can be read */
} LedgerState;

/* Reads "ledger.json" below STATE_FD (borrowed). Runs in it were cut by the end of an earlier daemon and
 * count as written whole. 0 or negative errno. */
int ledger_file_new(LedgerFile **ret, sd_event *event, int state_fd);

/* Writes what has not been written yet. */
LedgerFile *ledger_file_free(LedgerFile *file);
void ledger_file_freep(LedgerFile **file);

LedgerState ledger_file_state(const LedgerFile *file);

/* For a new ledger: a run of an earlier time that another record tells of. */
void ledger_file_add(LedgerFile *file, const DiskKey *disks, size_t n_disks, uint64_t bytes, bool rests,
                     int64_t end_real_ns);

/* A run of at most so many bytes on DEVICE (NULL: not known yet) was asked for; it begins on that; so many it
 * has written up to now; it has ended. RESTS: the cooldown begins with it. */
void ledger_file_reserve(LedgerFile *file, const char *run_id, const Device *device, uint64_t bytes);
void ledger_file_set_device(LedgerFile *file, const char *run_id, const Device *device);
void ledger_file_count(LedgerFile *file, const char *run_id, uint64_t written_bytes);
void ledger_file_settle(LedgerFile *file, const char *run_id, uint64_t written_bytes, bool rests);

/* What the guards ask of DEVICE (NULL: nothing is known). */
typedef struct LedgerFacts {
        uint64_t last_day_bytes;  /* written to its disk in the last day, or reserved */
        uint64_t lifetime_bytes;  /* of its first disk */
        int64_t last_end_real_ns; /* of the last run that wrote to it; 0: none did */
        int64_t room_real_ns; /* when ROOM_BYTES more would be within LIMIT_BYTES; INT64_MAX: not by waiting
                               */
} LedgerFacts;

LedgerFacts ledger_file_facts(LedgerFile *file, const Device *device, uint64_t room_bytes,
                              uint64_t limit_bytes);

/* Tries again what did not go through. To be called now and then. */
void ledger_file_work(LedgerFile *file);
