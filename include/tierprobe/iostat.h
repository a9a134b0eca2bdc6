/* SPDX-License-Identifier: Apache-2.0 */
/* Counters to rates: the kernel's block statistics, their differences and iostat's extended columns.
 * Knows base. See Documentation/admin-guide/iostats.rst of the kernel for the fields. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEVICE_NAME_SIZE 64 /* the kernel's DISK_NAME_LEN is 32; a partition adds digits */
#define SECTOR_BYTES 512    /* in block statistics always, whatever the device's own sector is */

/* ---- counters: one row as the kernel prints it ---- */

/* Operations, merges and sectors are 64 bit in the kernel and do not wrap; milliseconds are printed as 32
 * bit and do (genhd.c casts them to unsigned int). */
typedef struct Counters {
        uint64_t r_ios, r_merges, r_sectors;
        uint64_t w_ios, w_merges, w_sectors;
        uint64_t d_ios, d_merges, d_sectors;
        uint64_t f_ios;
        uint32_t r_ms, w_ms, d_ms, f_ms;
        uint32_t io_ms;    /* time with at least one request in flight */
        uint32_t queue_ms; /* sum over requests of the time in flight */
        int32_t in_flight; /* the kernel's accounting can go below zero: such a row is suspect */
        uint32_t n_fields; /* statistics fields present: 11, 15 (discards) or 17 (flushes) */
} Counters;

/* Parses the statistics fields of one row, i.e. the whole of a `/sys/.../stat` file, or what follows the
 * name in a diskstats line. TEXT need not be terminated. 11 to 14 fields count as 11, 15 and 16 as 15, 17
 * and more as 17, where what follows the 17th is not looked at. Milliseconds of more than 32 bit (lxcfs) are
 * taken modulo 2^32. Returns 0 or -EINVAL (too few fields, no number, no fit). */
int counters_parse(const char *text, size_t size, Counters *ret);

typedef struct DiskstatsRow {
        uint32_t major, minor;
        char name[DEVICE_NAME_SIZE];
        Counters counters;
} DiskstatsRow;

/* Parses one line of /proc/diskstats (without its newline). Returns 0 or -EINVAL; 7-field lines (partitions
 * of kernels before 2.6.25) and the 2.4 layout are -EINVAL too, as sysstat skips them with -x. */
int diskstats_parse_line(const char *line, size_t size, DiskstatsRow *ret);

/* The text of a diskstats that is still to be gone through; not terminated. */
typedef struct Diskstats {
        const char *text;
        size_t size;
} Diskstats;

/* Takes the next row of REST, passing over lines that are none, as sysstat does. False at the end. */
bool diskstats_next(Diskstats *rest, DiskstatsRow *ret);

/* Reads PROCFS/diskstats whole. TEXT is the caller's, free(). Returns 0, the error of reading (-EFBIG above
 * 16 MiB, which is the rows of 80000 devices) or -ENOMEM. */
int diskstats_read(const char *procfs, char **ret_text, size_t *ret_size);

/* A device's name with a slash in diskstats has "!" in its place in /sys ("cciss/c0d0", "cciss!c0d0"). Both
 * change NAME in place. */
void name_to_diskstats(char *name);
void name_to_sysfs(char *name);

/* ---- snapshots: a row and when it was read ---- */

/* Why two snapshots make no interval. The names are API (JSON, metrics). */
typedef enum Gap {
        GAP_NONE,
        GAP_FIRST,      /* nothing before it */
        GAP_ABSENT,     /* the row was not there */
        GAP_RETURNED,   /* it was absent before: what happened meanwhile is unknown */
        GAP_REPLACED,   /* the name now means another device (major:minor or diskseq changed) */
        GAP_RESET,      /* a counter went back, and not by a 32-bit wrap */
        GAP_SUSPENDED,  /* the machine slept: BOOTTIME and MONOTONIC moved apart */
        GAP_CLOCK,      /* no time passed, or the record's time went back (another boot) */
        GAP_UNREADABLE, /* the row could not be read or parsed */
        _GAP_MAX,
} Gap;

const char *gap_to_string(Gap gap);

typedef struct Snapshot {
        uint64_t mono_ns;    /* CLOCK_MONOTONIC, middle of the read */
        uint64_t boot_ns;    /* CLOCK_BOOTTIME at the same moment */
        int64_t real_ns;     /* CLOCK_REALTIME: a label only */
        uint64_t bracket_ns; /* how long the read took: twice the error of mono_ns */
        uint64_t diskseq;    /* the kernel's number of this very disk; 0 where it has none */
        uint32_t major, minor;
        Gap gap; /* GAP_NONE, or why this read breaks the series: GAP_ABSENT, GAP_UNREADABLE, or, for a
                  * sampler over several rows, what happened to one of them */
        Counters counters;
} Snapshot;

/* Sets the four times of a snapshot that was read between BEGIN_NS and END_NS of CLOCK_MONOTONIC, just now.
 */
void snapshot_stamp(Snapshot *snapshot, uint64_t begin_ns, uint64_t end_ns);

/* ---- deltas: what happened between two snapshots ---- */

typedef struct Delta {
        uint64_t interval_ns;
        uint64_t r_ios, r_merges, r_sectors, r_ms;
        uint64_t w_ios, w_merges, w_sectors, w_ms;
        uint64_t d_ios, d_merges, d_sectors, d_ms;
        uint64_t f_ios, f_ms;
        uint64_t io_ms, queue_ms;
        int32_t in_flight; /* at the end */
        bool has_discards, has_flushes;
        bool in_flight_suspect; /* negative or >= 2^31 at either end: aqu-sz and util cannot be trusted */
} Delta;

/* Computes CURRENT - PREVIOUS (PREVIOUS may be NULL). Returns GAP_NONE and fills RET, or the reason why
 * there is no interval; RET is then untouched. Nothing is ever clamped. A millisecond field that went back
 * is a wrap only when the old value was >= 2^31 and the difference modulo 2^32 is at most
 * interval x (in-flight + completions) + 1000 ms; completions are the field's own (writes for the writes'
 * time), for the two fields of the whole queue all of them. The clocks make no interval when either stood
 * still or went back, or BOOTTIME moved more than 1 ms further than MONOTONIC (suspend). */
Gap delta_compute(const Snapshot *previous, const Snapshot *current, Delta *ret);

/* Adds DELTA to SUM, which begins as all zeros: what metrics_from_delta() makes of that are the means over
 * all of it, rates weighted by time and latencies by operations. */
void delta_add(Delta *sum, const Delta *delta);

/* ---- metrics: iostat's extended columns ---- */

/* In the order and with the meaning of `iostat -x -o JSON` (sysstat 12.3.1 and later). A value that cannot
 * be known is NAN: an await or a size without completions, a part of merged requests where there were none,
 * a discard column of a kernel without discards. iostat prints 0.00 for all of these. */
typedef struct Metrics {
        double r_s, w_s, d_s, f_s;
        double rkb_s, wkb_s, dkb_s;
        double rrqm_s, wrqm_s, drqm_s;
        double rrqm_pc, wrqm_pc, drqm_pc;
        double r_await, w_await, d_await, f_await;
        double rareq_sz, wareq_sz, dareq_sz;
        double aqu_sz, util;
} Metrics;

/* Every value unknown. */
void metrics_forget(Metrics *metrics);

void metrics_from_delta(const Delta *delta, Metrics *ret);

typedef struct MetricColumn {
        const char *key;    /* iostat's JSON key: "w/s", "wkB/s", "wrqm", "aqu-sz", "util" */
        const char *header; /* iostat's text header: "w/s", "wkB/s", "%wrqm", "aqu-sz", "%util" */
        size_t offset;      /* of the double in Metrics */
        int width;          /* in iostat's text, */
        unsigned text_at;   /* which has another order than its JSON: its place there, from 0 */
} MetricColumn;

#define N_METRIC_COLUMNS (sizeof(Metrics) / sizeof(double))
extern const MetricColumn metric_columns[]; /* in JSON order, a row for each field of Metrics */

/* The column at a place of iostat's text; NULL past the end. */
const MetricColumn *metric_column_in_text(size_t place);

static inline double metric_value(const Metrics *metrics, const MetricColumn *column)
{
        return *(const double *) (const void *) ((const char *) metrics + column->offset);
}

/* ---- sampler: reads the rows of one device ---- */

typedef struct Sampler Sampler;

/* Makes a sampler of N_NAMES (1..64) kernel names as /sys spells them ("sdb", "nvme0n1p1", "dm-3",
 * "cciss!c0d0"); with several, the snapshot is their sum (a file system on several devices), and what breaks
 * the series of one since the last read breaks the sum's. PROCFS and SYSFS are the roots ("/proc", "/sys").
 * Reads `SYSFS/class/block/NAME/stat`, where that is missing `SYSFS/block/NAME/stat`, where there is none the
 * row of `PROCFS/diskstats`. Of a sum, major, minor and diskseq are those of the first row.
 * Returns 0, -EINVAL (no or too many names, a name too long or with a slash), -ENOMEM. */
int sampler_new(Sampler **ret, const char *procfs, const char *sysfs, const char *const *names,
                size_t n_names);
Sampler *sampler_free(Sampler *sampler);
void sampler_freep(Sampler **sampler);

/* Takes one snapshot. Never fails: what is wrong is in ret->gap. Does not block on the device. */
void sampler_read(Sampler *sampler, Snapshot *ret);

/* ---- ticks: when it is read ---- */

/* The tick after the one at TICK_NS, as of NOW_NS: on the same grid of INTERVAL_NS (> 0), so that what one
 * reading is late the next does not inherit, and after NOW_NS. After a stop of this process the ticks that
 * have passed are left out, for made up for they would be as many intervals in which nothing can have
 * happened; so is one that would leave less than half of its interval for a figure. RET_MISSED (may be NULL)
 * gets how many were. Pure. */
uint64_t tick_after(uint64_t tick_ns, uint64_t interval_ns, uint64_t now_ns, uint64_t *ret_missed);

/* ---- tables: the rows of many devices at one moment, or of a record ---- */

typedef struct NamedSnapshot {
        char name[DEVICE_NAME_SIZE]; /* as diskstats spells it: "cciss/c0d0" */
        Snapshot snapshot;
} NamedSnapshot;

typedef struct SnapshotTable {
        NamedSnapshot *rows;
        size_t n, allocated;
} SnapshotTable;

/* Forgets the rows, keeps the memory; _done() gives that back too. */
void snapshot_table_clear(SnapshotTable *table);
void snapshot_table_done(SnapshotTable *table);

/* Appends a row. 0, -EINVAL (the name is too long) or -ENOMEM. */
int snapshot_table_add(SnapshotTable *table, const char *name, const Snapshot *snapshot);

/* The row of NAME, NULL when there is none. The search begins at row HINT, so that going through two tables
 * of the same devices takes one comparison each. */
const NamedSnapshot *snapshot_table_find(const SnapshotTable *table, const char *name, size_t hint);

/* Appends the rows of a diskstats TEXT in its order, each at the time that WHEN holds. Lines that are no rows
 * are passed over, as sysstat does. 0, -EINVAL when there is text but not one row, -ENOMEM. */
int snapshot_table_parse(SnapshotTable *table, const char *text, size_t size, const Snapshot *when);

/* Reads PROCFS/diskstats now. Returns 0, what snapshot_table_parse() does, or the error of reading. */
int snapshot_table_read(SnapshotTable *table, const char *procfs);

/* Reads a record: DIR/diskstats, and DIR/uptime for both clocks (hundredths of a second). On failure
 * *RET_FILE, static text, says which of the two it was. -EINVAL: not of the form. */
int snapshot_table_read_record(SnapshotTable *table, const char *dir, const char **ret_file);

/* Reads the first field of /proc/uptime, cut to the hundredth. 0 or -EINVAL. */
int uptime_parse(const char *text, uint64_t *ret_cs);
