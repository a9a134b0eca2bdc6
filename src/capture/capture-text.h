/* SPDX-License-Identifier: Apache-2.0 */
/* Reads iostat's text into rows. Inside the capture room. */
#pragma once

#include "capture-row.h"
#include "capture-rows.h"

#define TEXT_MAX_SIGNATURES 8 /* different headers in one report: --pretty has four */
#define TEXT_KNOWN_HEADERS 4  /* remembered by their text */
#define TEXT_HEADER_SIZE 512
#define TEXT_SAMPLE_SIZE 48

typedef struct KnownHeader {
        char line[TEXT_HEADER_SIZE];
        size_t size; /* 0: none */
        TextHeader header;
} KnownHeader;

typedef struct TextReader {
        Rows *rows;
        TextHeader header;
        KnownHeader known[TEXT_KNOWN_HEADERS];
        size_t next_known;
        uint32_t signatures[TEXT_MAX_SIGNATURES]; /* of the headers in this report */
        size_t n_signatures;
        char pending[CAPTURE_NAME_SIZE]; /* a name that stood alone on its line (old -h) */
        bool has_pending;
        bool after_cpu;      /* the values of avg-cpu are next */
        bool after_header;   /* the line before was a header, or a piece of one */
        bool after_piece;    /* it was a line of columns without "Device" */
        bool in_table;       /* a header has come, and no blank line since */
        bool spaced;         /* a blank line follows every line of the table */
        unsigned n_blank;    /* blank lines in a row, of a spaced table */
        int previous;        /* device of the row before: the next one is likely the one after */
        int open_device;     /* of a row just taken for damaged, -1: not known */
        size_t open_numbers; /* how many it had, 0: there is none */
        size_t open_size, header_size, line_size; /* of their lines, and of the line at hand */
        uint32_t tags;                            /* of the rows: "node1:" */
        bool has_tags;
        char plain[CAPTURE_MAX_LINE + 1]; /* a line without its colours */

        uint64_t n_headers, n_rows_without_header, n_damaged, n_unread;
        uint64_t n_wrapped;  /* rows that go on in the next line */
        size_t wrap_columns; /* the longest line of what is wrapped */
        bool encoded;        /* a header was */
        bool joined;         /* rows stood on a header's line */
        uint64_t n_repeats;  /* headers right behind their like */
        unsigned n_repeats_in_a_row, most_repeats;
        bool has_cpu;                /* a line of avg-cpu */
        uint64_t n_led;              /* rows behind other text */
        char lead[TEXT_SAMPLE_SIZE]; /* of the first one */
        uint64_t n_other_tags;       /* rows with other tags than the first */
        char other_tag[TEXT_SAMPLE_SIZE];
        bool cut; /* the last line was no whole row */
} TextReader;

void capture_text_init(TextReader *reader, Rows *rows);

/* Takes in a line without its end; LAST: no newline followed, so that its end may be missing. 1: the line is
 * neither row nor header nor anything that stands among them; else 0, -ENOMEM or the error of the temporary
 * file. */
int capture_text_take_line(TextReader *reader, const char *line, size_t size, bool last);
