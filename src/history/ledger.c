/* SPDX-License-Identifier: Apache-2.0 */
/* What tests have written to each disk. Pure. */

#include "tierprobe/ledger.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t sum_of(uint64_t a, uint64_t b)
{
        uint64_t sum = 0;

        return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static int64_t not_after(int64_t real_ns, int64_t now_real_ns)
{
        return real_ns < now_real_ns ? real_ns : now_real_ns;
}

/* ---- life ---- */

int ledger_new(Ledger **ret)
{
        Ledger *ledger = calloc(1, sizeof *ledger);

        if (!ledger)
                return -ENOMEM;
        *ret = ledger;
        return 0;
}

Ledger *ledger_free(Ledger *ledger)
{
        if (!ledger)
                return NULL;
        for (size_t i = 0; i < ledger->n_runs; i++)
                free(ledger->runs[i].disks);
        free(ledger->disks);
        free(ledger);
        return NULL;
}

void ledger_freep(Ledger **ledger)
{
        (void) ledger_free(*ledger);
}

/* ---- disks ---- */

static const LedgerDisk *find_disk(const Ledger *ledger, const char *key)
{
        for (size_t i = 0; i < ledger->n_disks; i++)
                if (strcmp(ledger->disks[i].key, key) == 0)
                        return &ledger->disks[i];
        return NULL;
}

static bool is_reserved(const Ledger *ledger, const char *key)
{
        for (size_t i = 0; i < ledger->n_runs; i++)
                for (size_t j = 0; j < ledger->runs[i].n_disks; j++)
                        if (strcmp(ledger->runs[i].disks[j], key) == 0)
                                return true;
        return false;
}

/* The disk that was not written to for the longest time, at least a day; NULL: all were. */
static LedgerDisk *find_idle(Ledger *ledger)
{
        LedgerDisk *idle = NULL;

        for (size_t i = 0; i < ledger->n_disks; i++) {
                LedgerDisk *disk = &ledger->disks[i];

                if (disk->n_entries == 0 && !is_reserved(ledger, disk->key) &&
                    (!idle || disk->last_end_real_ns < idle->last_end_real_ns))
                        idle = disk;
        }
        return idle;
}

static LedgerDisk *make_room(Ledger *ledger)
{
        if (ledger->n_disks == LEDGER_MAX_DISKS)
                return find_idle(ledger);
        LedgerDisk *grown = reallocarray(ledger->disks, ledger->n_disks + 1, sizeof *grown);
        if (!grown)
                return NULL;
        ledger->disks = grown;
        return &grown[ledger->n_disks++];
}

LedgerDisk *ledger_disk(Ledger *ledger, const char *key)
{
        const LedgerDisk *known = find_disk(ledger, key);

        if (known)
                return &ledger->disks[known - ledger->disks];
        if (strlen(key) >= DISK_KEY_SIZE)
                return NULL;
        LedgerDisk *disk = make_room(ledger);
        if (!disk)
                return NULL;
        *disk = (LedgerDisk){ 0 };
        memcpy(disk->key, key, strlen(key) + 1);
        return disk;
}

static int no_room(const Ledger *ledger)
{
        return ledger->n_disks == LEDGER_MAX_DISKS ? -ENOSPC : -ENOMEM;
}

/* Adds an entry at its place in time, or to the one that it belongs to. */
static void enter(LedgerDisk *disk, uint64_t bytes, int64_t at_real_ns)
{
        size_t i = disk->n_entries;

        disk->lifetime_bytes = sum_of(disk->lifetime_bytes, bytes);
        while (i > 0 && disk->entries[i - 1].first_real_ns > at_real_ns)
                i--;
        LedgerEntry *before = i > 0 ? &disk->entries[i - 1] : NULL;
        if (before && (at_real_ns - before->first_real_ns < (int64_t) LEDGER_ENTRY_NS ||
                       disk->n_entries == LEDGER_MAX_ENTRIES)) {
                before->bytes = sum_of(before->bytes, bytes);
                if (before->last_real_ns < at_real_ns)
                        before->last_real_ns = at_real_ns;
                return;
        }
        if (disk->n_entries == LEDGER_MAX_ENTRIES) { /* older than all: it counts as the oldest does */
                disk->entries[0].bytes = sum_of(disk->entries[0].bytes, bytes);
                return;
        }
        memmove(disk->entries + i + 1, disk->entries + i, (disk->n_entries - i) * sizeof *disk->entries);
        disk->entries[i] =
                (LedgerEntry){ .first_real_ns = at_real_ns, .last_real_ns = at_real_ns, .bytes = bytes };
        disk->n_entries++;
}

static void tidy_disk(LedgerDisk *disk, int64_t now_real_ns)
{
        size_t n = 0;

        disk->last_end_real_ns = not_after(disk->last_end_real_ns, now_real_ns);
        for (size_t i = 0; i < disk->n_entries; i++) {
                LedgerEntry entry = disk->entries[i];

                entry.first_real_ns = not_after(entry.first_real_ns, now_real_ns);
                entry.last_real_ns = not_after(entry.last_real_ns, now_real_ns);
                if (entry.last_real_ns > now_real_ns - (int64_t) NS_PER_DAY)
                        disk->entries[n++] = entry;
        }
        disk->n_entries = n;
}

void ledger_tidy(Ledger *ledger, int64_t now_real_ns)
{
        for (size_t i = 0; i < ledger->n_disks; i++)
                tidy_disk(&ledger->disks[i], now_real_ns);
        for (size_t i = 0; i < ledger->n_runs; i++)
                ledger->runs[i].asked_real_ns = not_after(ledger->runs[i].asked_real_ns, now_real_ns);
}

/* ---- runs ---- */

static LedgerRun *find_run(Ledger *ledger, const char *id)
{
        for (size_t i = 0; i < ledger->n_runs; i++)
                if (strcmp(ledger->runs[i].id, id) == 0)
                        return &ledger->runs[i];
        return NULL;
}

static void forget_run(Ledger *ledger, LedgerRun *run)
{
        free(run->disks);
        *run = ledger->runs[--ledger->n_runs];
}

int ledger_set_disks(Ledger *ledger, const char *run_id, const DiskKey *disks, size_t n_disks)
{
        LedgerRun *run = find_run(ledger, run_id);
        DiskKey *copy = NULL;

        if (!run)
                return -ENOENT;
        for (size_t i = 0; i < n_disks; i++)
                if (!ledger_disk(ledger, disks[i]))
                        return no_room(ledger);
        if (n_disks > 0) {
                copy = calloc(n_disks, sizeof *copy);
                if (!copy)
                        return -ENOMEM;
                memcpy(copy, disks, n_disks * sizeof *copy);
        }
        free(run->disks);
        run->disks = copy;
        run->n_disks = n_disks;
        return 0;
}

int ledger_reserve(Ledger *ledger, const char *run_id, const DiskKey *disks, size_t n_disks, uint64_t bytes,
                   int64_t now_real_ns)
{
        if (find_run(ledger, run_id))
                return -EEXIST;
        if (ledger->n_runs == LEDGER_MAX_RUNS)
                return -ENOSPC;
        LedgerRun *run = &ledger->runs[ledger->n_runs++];
        *run = (LedgerRun){ .asked_real_ns = now_real_ns, .reserved_bytes = bytes };
        (void) snprintf(run->id, sizeof run->id, "%s", run_id);
        int r = ledger_set_disks(ledger, run_id, disks, n_disks);
        if (r < 0)
                forget_run(ledger, run);
        return r;
}

/* Enters what the run has written since it was last counted. */
static void count(Ledger *ledger, LedgerRun *run, uint64_t written_bytes, int64_t now_real_ns)
{
        if (written_bytes <= run->counted_bytes)
                return;
        for (size_t i = 0; i < run->n_disks; i++) {
                LedgerDisk *disk = ledger_disk(ledger, run->disks[i]);

                if (disk) {
                        tidy_disk(disk, now_real_ns);
                        enter(disk, written_bytes - run->counted_bytes, now_real_ns);
                }
        }
        run->counted_bytes = written_bytes;
}

void ledger_count(Ledger *ledger, const char *run_id, uint64_t written_bytes, int64_t now_real_ns)
{
        LedgerRun *run = find_run(ledger, run_id);

        if (run)
                count(ledger, run, written_bytes, now_real_ns);
}

/* END_REAL_NS is 0 when the disks need no rest after it. */
static void settle(Ledger *ledger, LedgerRun *run, uint64_t written_bytes, int64_t end_real_ns,
                   int64_t now_real_ns)
{
        count(ledger, run, written_bytes, now_real_ns);
        /* A run that wrote nothing counts neither for wear nor for the cooldown. */
        for (size_t i = 0; run->counted_bytes > 0 && i < run->n_disks; i++) {
                LedgerDisk *disk = ledger_disk(ledger, run->disks[i]);

                if (disk && disk->last_end_real_ns < end_real_ns)
                        disk->last_end_real_ns = end_real_ns;
        }
        forget_run(ledger, run);
}

void ledger_settle(Ledger *ledger, const char *run_id, uint64_t written_bytes, bool rests,
                   int64_t now_real_ns)
{
        LedgerRun *run = find_run(ledger, run_id);

        if (run)
                settle(ledger, run, written_bytes, rests ? now_real_ns : 0, now_real_ns);
}

void ledger_settle_lost(Ledger *ledger, int64_t now_real_ns)
{
        while (ledger->n_runs > 0) {
                LedgerRun *run = &ledger->runs[ledger->n_runs - 1];

                settle(ledger, run, run->reserved_bytes, now_real_ns, now_real_ns);
        }
}

int ledger_add(Ledger *ledger, const DiskKey *disks, size_t n_disks, uint64_t bytes, bool rests,
               int64_t end_real_ns, int64_t now_real_ns)
{
        end_real_ns = not_after(end_real_ns, now_real_ns);
        for (size_t i = 0; i < n_disks; i++) {
                LedgerDisk *disk = ledger_disk(ledger, disks[i]);

                if (!disk)
                        return no_room(ledger);
                tidy_disk(disk, now_real_ns);
                enter(disk, bytes, end_real_ns);
                tidy_disk(disk, now_real_ns); /* an old one counts for the lifetime only */
                if (rests && bytes > 0 && disk->last_end_real_ns < end_real_ns)
                        disk->last_end_real_ns = end_real_ns;
        }
        return 0;
}

int ledger_merge(Ledger *ledger, const Ledger *from, int64_t now_real_ns)
{
        for (size_t i = 0; i < from->n_disks; i++) {
                const LedgerDisk *other = &from->disks[i];
                LedgerDisk *disk = ledger_disk(ledger, other->key);

                if (!disk)
                        return no_room(ledger);
                uint64_t lifetime_bytes = sum_of(disk->lifetime_bytes, other->lifetime_bytes);
                for (size_t j = 0; j < other->n_entries; j++)
                        enter(disk, other->entries[j].bytes,
                              not_after(other->entries[j].last_real_ns, now_real_ns));
                disk->lifetime_bytes = lifetime_bytes;
                if (disk->last_end_real_ns < other->last_end_real_ns)
                        disk->last_end_real_ns = other->last_end_real_ns;
                tidy_disk(disk, now_real_ns);
        }
        return 0;
}

/* ---- questions ---- */

static uint64_t entries_sum(const LedgerDisk *disk, int64_t now_real_ns)
{
        uint64_t bytes = 0;

        for (size_t i = 0; disk && i < disk->n_entries; i++)
                if (disk->entries[i].last_real_ns > now_real_ns - (int64_t) NS_PER_DAY)
                        bytes = sum_of(bytes, disk->entries[i].bytes);
        return bytes;
}

/* What runs that have not ended may still write to the disk. */
static uint64_t reserved_sum(const Ledger *ledger, const char *key)
{
        uint64_t bytes = 0;

        for (size_t i = 0; i < ledger->n_runs; i++) {
                const LedgerRun *run = &ledger->runs[i];

                for (size_t j = 0; j < run->n_disks; j++)
                        if (strcmp(run->disks[j], key) == 0 && run->reserved_bytes > run->counted_bytes)
                                bytes = sum_of(bytes, run->reserved_bytes - run->counted_bytes);
        }
        return bytes;
}

uint64_t ledger_last_day(const Ledger *ledger, const DiskKey *disks, size_t n_disks, int64_t now_real_ns)
{
        uint64_t most = 0;

        for (size_t i = 0; i < n_disks; i++) {
                uint64_t bytes = sum_of(entries_sum(find_disk(ledger, disks[i]), now_real_ns),
                                        reserved_sum(ledger, disks[i]));

                if (bytes > most)
                        most = bytes;
        }
        return most;
}

/* When the disk's entries that must go first have gone. */
static int64_t disk_room_at(const LedgerDisk *disk, uint64_t limit, int64_t now_real_ns)
{
        uint64_t bytes = entries_sum(disk, now_real_ns);
        int64_t at_ns = now_real_ns;

        /* Their ends rise with their beginnings, but for what one in the future was taken for. */
        for (size_t i = 0; disk && i < disk->n_entries && bytes > limit; i++) {
                int64_t gone_ns =
                        not_after(disk->entries[i].last_real_ns, now_real_ns) + (int64_t) NS_PER_DAY;

                if (gone_ns <= now_real_ns)
                        continue;
                if (gone_ns > at_ns)
                        at_ns = gone_ns;
                bytes = bytes == UINT64_MAX ? bytes : bytes - disk->entries[i].bytes;
        }
        return bytes > limit ? INT64_MAX : at_ns;
}

int64_t ledger_room_at(const Ledger *ledger, const DiskKey *disks, size_t n_disks, uint64_t limit,
                       int64_t now_real_ns)
{
        int64_t latest_ns = now_real_ns;

        for (size_t i = 0; i < n_disks; i++) {
                uint64_t reserved = reserved_sum(ledger, disks[i]);
                int64_t at_ns = reserved > limit ? INT64_MAX
                                                 : disk_room_at(find_disk(ledger, disks[i]), limit - reserved,
                                                                now_real_ns);

                if (at_ns > latest_ns)
                        latest_ns = at_ns;
        }
        return latest_ns;
}

int64_t ledger_last_end(const Ledger *ledger, const DiskKey *disks, size_t n_disks, int64_t now_real_ns)
{
        int64_t latest_ns = 0;

        for (size_t i = 0; i < n_disks; i++) {
                const LedgerDisk *disk = find_disk(ledger, disks[i]);

                if (disk && disk->last_end_real_ns > latest_ns)
                        latest_ns = disk->last_end_real_ns;
        }
        return not_after(latest_ns, now_real_ns);
}

uint64_t ledger_lifetime(const Ledger *ledger, const char *disk)
{
        const LedgerDisk *known = find_disk(ledger, disk);

        return known ? known->lifetime_bytes : 0;
}
