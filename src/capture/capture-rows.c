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

/* More than any device does: see the judge of runs for 200 GB/s. A mean of an hour over a report is what a
 * counter stepping back by one gives (2^32 ms over some writes). */
#define ABSURD_WKB (INT64_C(200000000) * SCALE_WKB)
#define ABSURD_W_S (INT64_C(1000000000) * SCALE_WKB)
#define ABSURD_AWAIT (INT64_C(3600000) * SCALE_AWAIT)

int rows_init(Rows *rows)
{
        *rows = (Rows){ .spool_fd = -1 };
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
        rows->devices[rows->n_devices] =
                (RowDevice){ .name = copy, .name_size = size, .group = group, .peak_wkb = -1 };
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

static bool is_absurd(const RowFigures *f)
{
        return f->wkb < 0 || f->w_s < 0 || f->w_await < 0 || f->wkb > ABSURD_WKB || f->w_s > ABSURD_W_S ||
               f->w_await > ABSURD_AWAIT;
}

int rows_add(Rows *rows, uint32_t index, const RowFigures *figures)
{
        RowDevice *device = &rows->devices[index];
        Row row = { .device = index, .kind = ROW_GOOD };

        device->rows++;
        enter_report(rows, device);
        row.report = rows->report;
        if (is_absurd(figures)) {
                row.kind = ROW_ABSURD;
                return store(rows, &row);
        }
        if (figures->wkb == 0 && figures->w_s == 0)
                return 0; /* quiet: a report without a row of it says the same */
        row.wkb = figures->wkb;
        row.w_s = figures->w_s;
        row.w_await = figures->w_await;
        if (row.wkb > device->peak_wkb)
                device->peak_wkb = row.wkb;
        device->written_kb += (double) row.wkb / SCALE_WKB;
        if (figures->wkb_rounding > device->wkb_rounding)
                device->wkb_rounding = figures->wkb_rounding;
        if (figures->w_await_rounding > device->w_await_rounding)
                device->w_await_rounding = figures->w_await_rounding;
        return store(rows, &row);
}

int rows_add_damaged(Rows *rows, uint32_t index)
{
        RowDevice *device = &rows->devices[index];

        device->rows++;
        enter_report(rows, device);
        return store(rows, &(Row){ .report = rows->report, .device = index, .kind = ROW_DAMAGED });
}

void rows_add_incomplete(Rows *rows, uint32_t index)
{
        rows->devices[index].rows_incomplete++;
}
