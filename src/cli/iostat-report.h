/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of `tierprobe iostat`: two tables of snapshots to text or JSON as iostat prints them. */
#pragma once

#include "tierprobe/iostat.h"

#include <stdbool.h>
#include <stdio.h>

typedef struct ReportStyle {
        bool json;
        bool hide_unused; /* no row for a device that never did any I/O */
} ReportStyle;

/* What stands before the first report, and after the last one. */
void iostat_report_begin(const ReportStyle *style, FILE *out);
void iostat_report_end(const ReportStyle *style, FILE *out);

/* One report: the devices of NOW in its order, over the interval since PREVIOUS. Says on stderr why a device
 * has no figures for this interval, if that is news. */
void iostat_report_print(const ReportStyle *style, const SnapshotTable *previous, const SnapshotTable *now,
                         bool first, FILE *out);
