/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a capture: which devices, which figures, in which report. Inside the capture room. */
#pragma once

#include "tierprobe/capture.h"

#include "columns.h"

typedef enum RowKind {
        ROW_GOOD,
        ROW_PARTIAL, /* without wkB/s or without w_await */
        ROW_DAMAGED, /* a row of the device, but it cannot be read */
        ROW_ABSURD,  /* figures no device has: the counters were reset */
} RowKind;

typedef struct Row {
        uint64_t report;
        int64_t wkb, w_s, w_await; /* of a partial row: WKB is what tells writing from rest, see rows_add() */
        uint32_t device;
        RowKind kind;
} Row;

typedef struct RowDevice {
        char *name;
        size_t name_size;
        bool group;
        uint64_t rows;                     /* with both columns, or damaged */
        uint64_t rows_partial[N_CRITERIA]; /* without the column of one */
        uint64_t rows_bare;                /* under a header with neither */
        uint64_t rows_read;                /* with both columns, whatever they say */
        uint64_t stored;                   /* rows with writes, or without figures */
        uint64_t damaged[N_DAMAGES];       /* by their cause */
        uint64_t absurd;
        uint64_t last_report;           /* 0: none yet */
        int64_t peak_wkb, peak_partial; /* of the good and the partial rows, -1: there is none */
        double written_kb;
        double wkb_rounding, w_await_rounding; /* the coarsest */
        uint64_t rows_of_sectors;              /* in which a count of sectors stands under wkB/s or wMB/s */
        int64_t unsure_divisor; /* what divides the throughput if it is such a column, which cannot be told;
                                   1: it is not */
        uint64_t hung;          /* busy, with a queue, and nothing completed */
        double hung_queue;      /* the longest of it */
} RowDevice;

/* Reports of which something was lost that no device can be named for: FIRST to LAST, of which there are
 * BEFORE in the earlier spans. */
typedef struct LostSpan {
        uint64_t first, last, before;
} LostSpan;

#define MAX_LOST_SPANS 65536 /* more are too many to trust the rest */

typedef struct Rows {
        RowDevice *devices;
        size_t n_devices, allocated;
        uint32_t *index;       /* hash to device + 1 */
        uint64_t rows_ignored; /* of devices beyond CAPTURE_MAX_DEVICES */
        uint64_t report;       /* the current one, from 1 */
        Row *buffer;
        size_t n_buffered, buffer_rows;
        uint64_t n_spooled; /* rows in the file */
        int spool_fd;
        uint64_t n_agree;        /* JSON rows whose throughput is in the unit that its name says */
        int64_t sectors_divisor; /* what divides the throughput of the others, 1: there are none, 0: it
                                    differs */
        LostSpan *lost;          /* in order */
        size_t n_lost, lost_allocated;
        bool lost_overflow;
} Rows;

int rows_init(Rows *rows);
void rows_done(Rows *rows);

/* The device of that name, made when there is none: its index, -ENOSPC (too many: the row is counted as
 * ignored), -ENOMEM. */
int rows_device(Rows *rows, const char *name, size_t size, bool group);
int rows_find(const Rows *rows, const char *name, size_t size); /* index or -ENOENT */

/* Adds a row to the current report, or to a new one when the device has a row in it already. A row without
 * wkB/s and without w_await says nothing; one with either is kept for a device that has no other. 0 or the
 * error of the temporary file. */
int rows_add(Rows *rows, uint32_t index, const Figures *figures);
int rows_add_damaged(Rows *rows, uint32_t index, Damage damage);

/* Says that the last damaged row of the device was rather damaged otherwise. */
void rows_rename_damage(Rows *rows, uint32_t index, Damage from, Damage to);

/* How many rows of a device there are that say something, and those of one column among them. */
uint64_t rows_count(const RowDevice *device);
uint64_t rows_count_partial(const RowDevice *device);

/* Something of the current report was lost: a device without a row in it need not have been quiet. 0 or
 * -ENOMEM. */
int rows_mark_lost(Rows *rows);
bool rows_is_lost(const Rows *rows, uint64_t report);
uint64_t rows_lost_between(const Rows *rows, uint64_t first, uint64_t last); /* both included */

/* Calls VISIT for every stored row in order. 0 or the error of reading the file. */
int rows_visit(Rows *rows, void (*visit)(const Row *row, void *data), void *data);
