/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a capture: which devices, which figures, in which report. Inside the capture room. */
#pragma once

#include "tierprobe/capture.h"

/* Figures as printed, in whole numbers so that sums are exact: a mean of rows that all say 20.00 is 20. */
#define SCALE_WKB 10000     /* wkB/s and w/s in 1/10000 */
#define SCALE_AWAIT 1000000 /* w_await in ns */
#define SCALE_WKB_DIGITS 4
#define SCALE_AWAIT_DIGITS 6

typedef enum RowKind {
        ROW_GOOD,
        ROW_DAMAGED, /* a row of the device, but it cannot be read */
        ROW_ABSURD,  /* figures no device has: the counters were reset (sysstat <= 12.7.2 prints 2^64) */
} RowKind;

typedef struct Row {
        uint64_t report;
        int64_t wkb, w_s, w_await;
        uint32_t device;
        RowKind kind;
} Row;

typedef struct RowDevice {
        char *name;
        size_t name_size;
        bool group;
        uint64_t rows;            /* with both columns */
        uint64_t rows_incomplete; /* under a header without one of them */
        uint64_t stored;          /* rows with writes, or without figures */
        uint64_t last_report;     /* 0: none yet */
        int64_t peak_wkb;         /* of the good rows, -1: there is none */
        double written_kb;
        double wkb_rounding, w_await_rounding; /* the coarsest */
} RowDevice;

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
} Rows;

int rows_init(Rows *rows);
void rows_done(Rows *rows);

/* The device of that name, made when there is none: its index, -ENOSPC (too many: the row is counted as
 * ignored), -ENOMEM. */
int rows_device(Rows *rows, const char *name, size_t size, bool group);
int rows_find(const Rows *rows, const char *name, size_t size); /* index or -ENOENT */

/* What a row says. */
typedef struct RowFigures {
        int64_t wkb, w_s, w_await; /* scaled; INT64_MAX: too large to tell; negative: nonsense */
        double wkb_rounding, w_await_rounding;
} RowFigures;

/* Adds a row to the current report, or to a new one when the device has a row in it already. 0 or the error
 * of the temporary file. */
int rows_add(Rows *rows, uint32_t index, const RowFigures *figures);
int rows_add_damaged(Rows *rows, uint32_t index);
void rows_add_incomplete(Rows *rows, uint32_t index);

/* Calls VISIT for every stored row in order. 0 or the error of reading the file. */
int rows_visit(Rows *rows, void (*visit)(const Row *row, void *data), void *data);
