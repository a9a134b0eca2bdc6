/* SPDX-License-Identifier: Apache-2.0 */
/* Reads iostat's text into rows. Inside the capture room. */
#pragma once

#include "capture-rows.h"

#define TEXT_MAX_TOKENS 96
#define TEXT_MAX_SIGNATURES 8 /* different headers in one report: --pretty has four */

/* What a header says of the rows below it. */
typedef struct TextHeader {
        size_t n_tokens;          /* 0: there was no header yet */
        bool name_last;           /* --pretty */
        size_t indent;            /* of the header line; names of groups (-g) stand one further */
        bool complete;            /* it has wkB/s and w_await */
        size_t wkb, w_s, w_await; /* index among the numbers of a row; w_s may be SIZE_MAX */
        double kb_per_unit;       /* of the throughput column */
} TextHeader;

typedef struct TextReader {
        Rows *rows;
        TextHeader header;
        uint32_t signatures[TEXT_MAX_SIGNATURES]; /* of the headers in this report */
        size_t n_signatures;
        char pending[CAPTURE_NAME_SIZE]; /* a name that stood alone on its line (old -h) */
        bool has_pending;
        bool after_cpu; /* the values of avg-cpu are next */
        int previous;   /* device of the row before: the next one is likely the one after */

        char line[CAPTURE_MAX_LINE]; /* the part of a line that has come */
        size_t line_size;
        bool overlong;                /* the line at hand is being skipped */
        char plain[CAPTURE_MAX_LINE]; /* a line without its colours */

        uint64_t n_headers, n_rows_without_header, n_overlong, n_damaged;
        bool cut; /* the last line was no whole row */
} TextReader;

void text_init(TextReader *reader, Rows *rows);

/* As capture_judge_feed(); text_finish() takes in what follows the last newline. */
int text_feed(TextReader *reader, const char *data, size_t size);
int text_finish(TextReader *reader);

/* kB in one unit of a throughput column without its first letter ("kB/s", "MB/s", "GB/s", "sec/s"), 0 when it
 * is none. */
double text_unit_kb(const char *text, size_t size);
