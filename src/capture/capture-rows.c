/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the rows of a capture: a bounded table of devices, and the rows with writes in memory or, beyond 2
 * MiB, in an unlinked temporary file. A device's window depends on its peak, which is known only at the end,
 * so that exactness needs every row twice. Knows base. */

#include "capture-rows.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INDEX_SIZE (4 * CAPTURE_MAX_DEVICES) /* a power of two */
#define BUFFER_ROWS ((UINT32_C(2) << 20) / sizeof(Row))

int rows_init(Rows *rows)
{
        *rows = (Rows){ .spool_fd = -1, .sectors_divisor = 1 };
        rows->index = calloc(INDEX_SIZE, sizeof *rows->index);
        return rows->index ? 0 : -ENOMEM;
}

void rows_done(Rows *rows)
{
        for (size_t i = 0; i < rows->n_devices; i++)
                free(rows->devices[i].name);
        free(rows->devices);
        free(rows->index);
        free(rows->buffer);
        free(rows->lost);
        close_fdp(&rows->spool_fd);
}

/* ---- devices ---- */

static bool has_name(const RowDevice *device, const char *name, size_t size)
{
        return device->name_size == size && memcmp(device->name, name, size) == 0;
}

/* The slot of NAME in the index: with its device, or empty. */
static uint32_t *find_slot(const Rows *rows, const char *name, size_t size)
{
        uint32_t hash = UINT32_C(2166136261); /* FNV-1a */

        for (size_t i = 0; i < size; i++)
                hash = (hash ^ (unsigned char) name[i]) * UINT32_C(16777619);
        for (;; hash++) {
                uint32_t *slot = &rows->index[hash % INDEX_SIZE];
                if (*slot == 0 || has_name(&rows->devices[*slot - 1], name, size))
                        return slot;
        }
}

int rows_find(const Rows *rows, const char *name, size_t size)
{
        uint32_t found = *find_slot(rows, name, size);

        return found ? (int) found - 1 : -ENOENT;
}

int rows_device(Rows *rows, const char *name, size_t size, bool group)
{
        uint32_t *slot = find_slot(rows, name, size);

        if (*slot)
                return (int) *slot - 1;
        if (rows->n_devices == CAPTURE_MAX_DEVICES) {
                rows->rows_ignored++;
                return -ENOSPC;
        }
        if (rows->n_devices == rows->allocated) {
                size_t wanted = rows->allocated ? rows->allocated * 2 : 16;
                RowDevice *grown = reallocarray(rows->devices, wanted, sizeof *grown);
                if (!grown)
                        return -ENOMEM;
                rows->devices = grown;
                rows->allocated = wanted;
        }
        char *copy = strndup(name, size);
        if (!copy)
                return -ENOMEM;
        rows->devices[rows->n_devices] = (RowDevice){ .name = copy,
                                                      .name_size = size,
                                                      .group = group,
                                                      .peak_wkb = -1,
                                                      .peak_partial = -1,
                                                      .unsure_divisor = 1 };
        *slot = (uint32_t) ++rows->n_devices;
        return (int) *slot - 1;
}

/* ---- the store ---- */

static int open_spool(void)
{
        const char *directory = secure_getenv("TMPDIR");

        if (!directory || directory[0] != '/')
                directory = "/tmp";
        int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
        if (fd >= 0)
                return fd;
        /* Not every file system has O_TMPFILE. */
        _cleanup_free_ char *path = path_format("%s/tierprobe-XXXXXX", directory);
        if (!path)
                return -ENOMEM;
        fd = mkostemp(path, O_CLOEXEC);
        if (fd < 0)
                return -errno;
        (void) unlink(path);
        return fd;
}

static int spool_buffer(Rows *rows)
{
        const char *data = (const char *) rows->buffer;
        size_t left = rows->n_buffered * sizeof *rows->buffer;

        if (rows->spool_fd < 0) {
                int fd = open_spool();
                if (fd < 0)
                        return fd;
                rows->spool_fd = fd;
        }
        while (left > 0) {
                ssize_t n = write(rows->spool_fd, data, left);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                data += n;
                left -= (size_t) n;
        }
        rows->n_spooled += rows->n_buffered;
        rows->n_buffered = 0;
        return 0;
}

static int store(Rows *rows, const Row *row)
{
        if (rows->n_buffered == BUFFER_ROWS) {
                int r = spool_buffer(rows);
                if (r < 0)
                        return r;
        }
        if (rows->n_buffered == rows->buffer_rows) {
                size_t wanted = rows->buffer_rows ? rows->buffer_rows * 2 : 64;
                wanted = wanted > BUFFER_ROWS ? BUFFER_ROWS : wanted;
                Row *grown = reallocarray(rows->buffer, wanted, sizeof *grown);
                if (!grown)
                        return -ENOMEM;
                rows->buffer = grown;
                rows->buffer_rows = wanted;
        }
        rows->buffer[rows->n_buffered++] = *row;
        rows->devices[row->device].stored++;
        return 0;
}

int rows_visit(Rows *rows, void (*visit)(const Row *row, void *data), void *data)
{
        if (rows->spool_fd >= 0) {
                if (rows->n_buffered > 0) { /* the buffer is needed to read into */
                        int r = spool_buffer(rows);
                        if (r < 0)
                                return r;
                }
                off_t at = 0, end = (off_t) (rows->n_spooled * sizeof(Row));
                while (at < end) {
                        size_t wanted = BUFFER_ROWS * sizeof(Row);
                        ssize_t n = pread(rows->spool_fd, rows->buffer, wanted, at);
                        if (n < 0 && errno == EINTR)
                                continue;
                        if (n < 0)
                                return -errno;
                        if ((size_t) n < sizeof(Row))
                                return -EIO; /* cut by someone else */
                        size_t n_rows = (size_t) n / sizeof(Row);
                        for (size_t i = 0; i < n_rows; i++)
                                visit(&rows->buffer[i], data);
                        at += (off_t) (n_rows * sizeof(Row));
                }
                return 0;
        }
        for (size_t i = 0; i < rows->n_buffered; i++)
                visit(&rows->buffer[i], data);
        return 0;
}

/* ---- rows ---- */

static void enter_report(Rows *rows, RowDevice *device)
{
        /* Rows whose headers were filtered out (grep): the same device again is the next report. */
        if (rows->report == 0 || device->last_report == rows->report)
                rows->report++;
        device->last_report = rows->report;
}

int rows_add_damaged(Rows *rows, uint32_t index, Damage damage)
{
        RowDevice *device = &rows->devices[index];

        device->rows++;
        device->damaged[damage]++;
        enter_report(rows, device);
        return store(rows, &(Row){ .report = rows->report, .device = index, .kind = ROW_DAMAGED });
}

void rows_rename_damage(Rows *rows, uint32_t index, Damage from, Damage to)
{
        rows->devices[index].damaged[from]--;
        rows->devices[index].damaged[to]++;
}

/* sysstat 12.1.2 to 12.2.0 print sectors in JSON under wkB/s and wMB/s: over the rows, all do or none does.
 */
static void note_unit(Rows *rows, RowDevice *device, const Figures *figures, Agreement agreement)
{
        int64_t divisor = agreement == AGREEMENT_TWICE ? 2 : agreement == AGREEMENT_2048_TIMES ? 2048 : 1;

        if (figures->if_sectors == 1)
                return;
        if (divisor > 1 && divisor == figures->if_sectors) {
                device->rows_of_sectors++;
                if (rows->sectors_divisor == 1)
                        rows->sectors_divisor = divisor;
                else if (rows->sectors_divisor != divisor)
                        rows->sectors_divisor = 0;
        } else if (agreement == AGREEMENT_GOOD)
                rows->n_agree++;
        else if (agreement == AGREEMENT_UNKNOWN && !figures->surely_kb &&
                 figures->if_sectors > device->unsure_divisor)
                device->unsure_divisor = figures->if_sectors;
}

/* A queue that is busy and completes nothing, neither writes nor reads. */
#define HUNG_UTIL (INT64_C(90) * SCALE_WKB)

static void note_hang(RowDevice *device, const Figures *f)
{
        if (!figures_have(f, COLUMN_QUEUE) || !figures_have(f, COLUMN_UTIL) || !figures_have(f, COLUMN_R_S) ||
            f->value[COLUMN_R_S] > 0 || f->value[COLUMN_QUEUE] <= 0 || f->value[COLUMN_UTIL] < HUNG_UTIL)
                return;
        double queue = (double) f->value[COLUMN_QUEUE] / SCALE_WKB;
        device->hung++;
        if (queue > device->hung_queue)
                device->hung_queue = queue;
}

static void widen(double *rounding, const Figures *figures, ColumnRole role)
{
        if (figures_have(figures, role) && figures->rounding[role] > *rounding)
                *rounding = figures->rounding[role];
}

static int64_t value_or(const Figures *figures, ColumnRole role, int64_t otherwise)
{
        return figures_have(figures, role) ? figures->value[role] : otherwise;
}

int rows_add(Rows *rows, uint32_t index, const Figures *figures)
{
        RowDevice *device = &rows->devices[index];
        bool has_wkb = figures_have(figures, COLUMN_WKB), has_await = figures_have(figures, COLUMN_W_AWAIT);

        if (!has_wkb && !has_await) {
                device->rows_bare++;
                return 0;
        }
        bool absurd = figures_are_absurd(figures);
        Agreement agreement = absurd ? AGREEMENT_UNKNOWN : figures_agreement(figures);
        if (agreement == AGREEMENT_NONE || (agreement == AGREEMENT_2048_TIMES && figures->if_sectors == 1))
                return rows_add_damaged(rows, index, DAMAGE_CONTRADICTION);
        enter_report(rows, device);
        Row row = { .report = rows->report, .device = index, .kind = ROW_GOOD };
        if (has_wkb && has_await) {
                device->rows++;
                device->rows_read++;
        } else {
                device->rows_partial[has_wkb ? CRITERION_WRITE_LATENCY : CRITERION_WRITE_THROUGHPUT]++;
                row.kind = ROW_PARTIAL;
        }
        if (absurd) {
                row.kind = ROW_ABSURD;
                device->absurd++;
                return store(rows, &row);
        }
        /* Without its throughput a row is known by its writes, without them by its latency. */
        row.w_s = value_or(figures, COLUMN_W_S, 0);
        row.w_await = value_or(figures, COLUMN_W_AWAIT, 0);
        if (!has_wkb && !figures_have(figures, COLUMN_W_S) && row.w_await > 0)
                row.w_s = SCALE_WKB;
        row.wkb = value_or(figures, COLUMN_WKB, row.w_s);
        if (row.wkb == 0 && row.w_s == 0) {
                note_hang(device, figures);
                return 0; /* quiet: a report without a row of it says the same */
        }
        note_unit(rows, device, figures, agreement);
        int64_t *peak = row.kind == ROW_GOOD ? &device->peak_wkb : &device->peak_partial;
        if (row.wkb > *peak)
                *peak = row.wkb;
        if (has_wkb)
                device->written_kb += (double) row.wkb / SCALE_WKB;
        widen(&device->wkb_rounding, figures, COLUMN_WKB);
        widen(&device->w_await_rounding, figures, COLUMN_W_AWAIT);
        return store(rows, &row);
}

uint64_t rows_count_partial(const RowDevice *device)
{
        uint64_t n = 0;

        for (CriterionName name = 0; name < N_CRITERIA; name++)
                n += device->rows_partial[name];
        return n;
}

uint64_t rows_count(const RowDevice *device)
{
        return device->rows + rows_count_partial(device);
}

/* ---- what was lost ---- */

int rows_mark_lost(Rows *rows)
{
        LostSpan *last = rows->n_lost > 0 ? &rows->lost[rows->n_lost - 1] : NULL;

        if (rows->report == 0 || rows->lost_overflow || (last && last->last == rows->report))
                return 0;
        if (last && last->last + 1 == rows->report) {
                last->last++;
                return 0;
        }
        uint64_t before = last ? last->before + last->last - last->first + 1 : 0;
        if (rows->n_lost == MAX_LOST_SPANS) {
                rows->lost_overflow = true;
                return 0;
        }
        if (!rows->lost || rows->n_lost == rows->lost_allocated) {
                size_t wanted = rows->lost_allocated ? rows->lost_allocated * 2 : 16;
                LostSpan *grown = reallocarray(rows->lost, wanted, sizeof *grown);
                if (!grown)
                        return -ENOMEM;
                rows->lost = grown;
                rows->lost_allocated = wanted;
        }
        rows->lost[rows->n_lost++] = (LostSpan){ rows->report, rows->report, before };
        return 0;
}

/* How many lost reports there are up to REPORT. */
static uint64_t lost_until(const Rows *rows, uint64_t report)
{
        size_t low = 0, high = rows->n_lost;

        while (low < high) { /* the spans before LOW begin at or before REPORT */
                size_t middle = low + (high - low) / 2;
                if (rows->lost[middle].first <= report)
                        low = middle + 1;
                else
                        high = middle;
        }
        if (low == 0)
                return 0;
        const LostSpan *span = &rows->lost[low - 1];
        return span->before + (report < span->last ? report : span->last) - span->first + 1;
}

uint64_t rows_lost_between(const Rows *rows, uint64_t first, uint64_t last)
{
        return last < first ? 0 : lost_until(rows, last) - lost_until(rows, first - 1);
}

bool rows_is_lost(const Rows *rows, uint64_t report)
{
        return rows_lost_between(rows, report, report) > 0;
}
