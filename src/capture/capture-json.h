/* SPDX-License-Identifier: Apache-2.0 */
/* Reads iostat's JSON into rows, one report at a time. Inside the capture room. */
#pragma once

#include "capture-rows.h"

typedef enum ReportState {
        REPORT_OUTSIDE, /* somewhere in the document */
        REPORT_LIST,    /* in "statistics", between reports */
        REPORT_INSIDE,  /* in a report */
} ReportState;

typedef struct ReportReader {
        Rows *rows;
        ReportState state;
        int depth;      /* of brackets */
        int list_depth; /* inside "statistics" */
        bool in_string, escaped;
        char key[16]; /* the string read last, as far as it fits */
        size_t key_size;
        bool key_done; /* the key is followed by its colon */

        char *report; /* the text of the report at hand */
        size_t size, allocated;
        bool oversized;

        uint64_t n_reports, n_damaged, n_oversized;
        bool closed; /* a whole document has ended */
} ReportReader;

void report_init(ReportReader *reader, Rows *rows);
void report_done(ReportReader *reader);

/* As capture_judge_feed(). */
int report_feed(ReportReader *reader, const char *data, size_t size);

/* Whether the document breaks off. */
bool report_is_cut(const ReportReader *reader);
