/* SPDX-License-Identifier: Apache-2.0 */
/* Tables: the rows of many devices at one moment, out of diskstats of this machine or of a record. May read
 * the files it is told to. */

#include "tierprobe/iostat.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define DISKSTATS_SIZE ((size_t) 16 << 20)
#define UPTIME_SIZE 4096

void snapshot_table_clear(SnapshotTable *table)
{
        table->n = 0;
}

void snapshot_table_done(SnapshotTable *table)
{
        free(table->rows);
        *table = (SnapshotTable){ 0 };
}

int snapshot_table_add(SnapshotTable *table, const char *name, const Snapshot *snapshot)
{
        size_t size = strlen(name);

        if (size >= DEVICE_NAME_SIZE)
                return -EINVAL;
        if (table->n == table->allocated) {
                size_t wanted = table->allocated ? table->allocated * 2 : 16;
                NamedSnapshot *grown = reallocarray(table->rows, wanted, sizeof *grown);
                if (!grown)
                        return -ENOMEM;
                table->rows = grown;
                table->allocated = wanted;
        }
        NamedSnapshot *row = &table->rows[table->n++];
        memcpy(row->name, name, size + 1);
        row->snapshot = *snapshot;
        return 0;
}

const NamedSnapshot *snapshot_table_find(const SnapshotTable *table, const char *name, size_t hint)
{
        for (size_t i = 0; i < table->n; i++) {
                const NamedSnapshot *row = &table->rows[(hint + i) % table->n];
                if (strcmp(row->name, name) == 0)
                        return row;
        }
        return NULL;
}

int snapshot_table_parse(SnapshotTable *table, const char *text, size_t size, const Snapshot *when)
{
        Diskstats rest = { .text = text, .size = size };
        size_t n_before = table->n;
        DiskstatsRow row;

        while (diskstats_next(&rest, &row)) {
                Snapshot snapshot = *when;
                snapshot.major = row.major;
                snapshot.minor = row.minor;
                snapshot.counters = row.counters;
                int r = snapshot_table_add(table, row.name, &snapshot);
                if (r < 0)
                        return r;
        }
        return size > 0 && table->n == n_before ? -EINVAL : 0;
}

int diskstats_read(const char *procfs, char **ret_text, size_t *ret_size)
{
        _cleanup_free_ char *path = path_format("%s/diskstats", procfs);

        return path ? read_file_at(AT_FDCWD, path, DISKSTATS_SIZE, ret_text, ret_size) : -ENOMEM;
}

int snapshot_table_read(SnapshotTable *table, const char *procfs)
{
        _cleanup_free_ char *text = NULL;
        size_t size = 0;

        uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
        int r = diskstats_read(procfs, &text, &size);
        if (r < 0)
                return r;
        Snapshot when = { 0 };
        snapshot_stamp(&when, begin_ns, clock_ns(CLOCK_MONOTONIC));
        return snapshot_table_parse(table, text, size, &when);
}

int uptime_parse(const char *text, uint64_t *ret_cs)
{
        const char *p = text;
        uint64_t s = 0, cs = 0;

        if (*p < '0' || *p > '9')
                return -EINVAL;
        for (; *p >= '0' && *p <= '9'; p++) {
                s = s * 10 + (uint64_t) (*p - '0');
                if (s >= UINT64_MAX / NS_PER_S)
                        return -EINVAL;
        }
        if (*p == '.') {
                p++;
                for (uint64_t unit = 10; *p >= '0' && *p <= '9'; p++, unit /= 10)
                        cs += unit * (uint64_t) (*p - '0');
        }
        if (*p != ' ' && *p != '\t' && *p != '\r' && *p != '\n' && *p != '\0')
                return -EINVAL;
        *ret_cs = s * 100 + cs;
        return 0;
}

int snapshot_table_read_record(SnapshotTable *table, const char *dir, const char **ret_file)
{
        _cleanup_free_ char *uptime = NULL, *diskstats = NULL;
        size_t size = 0;
        uint64_t cs = 0;

        _cleanup_free_ char *uptime_path = path_format("%s/uptime", dir);
        *ret_file = "uptime";
        if (!uptime_path)
                return -ENOMEM;
        int r = read_file_at(AT_FDCWD, uptime_path, UPTIME_SIZE, &uptime, NULL);
        if (r >= 0)
                r = uptime_parse(uptime, &cs);
        if (r < 0)
                return r;

        *ret_file = "diskstats";
        r = diskstats_read(dir, &diskstats, &size);
        if (r < 0)
                return r;
        Snapshot when = { .mono_ns = cs * 10 * NS_PER_MS, .boot_ns = cs * 10 * NS_PER_MS };
        return snapshot_table_parse(table, diskstats, size, &when);
}
