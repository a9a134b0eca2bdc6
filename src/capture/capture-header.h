/* SPDX-License-Identifier: Apache-2.0 */
/* The line that names the columns. Inside the capture room. */
#pragma once

#include "capture-line.h"
#include "columns.h"

#define TEXT_GLUE_SIZE 64

/* Whether the header is one line. */
typedef enum HeaderState {
        HEADER_WHOLE,
        HEADER_WRAPPED, /* its columns go on in the next line, and where a row's do so cannot be told */
        HEADER_ENCODED, /* so does the line, by quoted-printable */
        HEADER_JOINED,  /* rows stand on the same line */
} HeaderState;

/* What a header says of the rows below it. */
typedef struct TextHeader {
        size_t n_columns; /* 0: there is none */
        HeaderState state;
        bool name_last;            /* --pretty */
        size_t n_before;           /* words in front of its own */
        size_t n_prefix;           /* of them, those that are no date, time or tag */
        uint32_t tags;             /* of them, see line_tags() */
        char glue[TEXT_GLUE_SIZE]; /* what stands in front of "Device" without a blank */
        size_t glue_size;
        Separators separators;
        size_t indent;             /* of the header line; names of groups (-g) stand one further */
        unsigned known;            /* which roles it has, a bit each */
        size_t at[N_COLUMN_ROLES]; /* index among the numbers of a row */
        double kb[N_COLUMN_ROLES]; /* in one unit of the column */
        uint32_t signature;        /* of its columns */
} TextHeader;

/* Reads LINE when it is a header: "Device" stands somewhere in it, and columns of iostat beside it. */
bool header_parse(const char *line, size_t size, TextHeader *ret);

/* Whether the line is a piece of a wrapped header: names of columns, and no "Device". NEXT: it follows a
 * header, so that its first and its last word may be torn. */
bool header_is_piece(const Token *tokens, size_t n, bool next);
