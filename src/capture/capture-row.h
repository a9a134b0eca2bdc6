/* SPDX-License-Identifier: Apache-2.0 */
/* A row of a table, in a line that may hold other things. Inside the capture room. */
#pragma once

#include "capture-header.h"

/* The line of a row as what it consists of. */
typedef struct OddRow {
        const char *name;
        size_t name_size;
        size_t n_lead; /* words before the name, or before the numbers in front of it */
        size_t first;  /* the first of the numbers */
        size_t run;    /* how many there are in a row */
        bool whole;
        bool pending; /* the name is that which stood alone */
} OddRow;

/* Finds the row in a line that iostat alone would not have printed so. PENDING: the name that stood alone on
 * the line before, NULL. */
OddRow row_find(const TextHeader *header, const char *pending, const Token *tokens, size_t n);

/* The longest run of numbers among the tokens; *ret_other: the length of the next. */
size_t row_find_run(const Token *tokens, size_t n, size_t *ret_first, size_t *ret_other);

/* What may be the name of a device: it begins with a letter or a digit, is no time and no number with
 * decimals, and has no control character. */
bool row_is_name(const char *name, size_t size);

/* How many bytes of the token that ends with a name are glued to its front: as to the header ("[18:01:12]"),
 * in a bracket, or a time or a number that a mark ends ("12:sda"). */
size_t row_glue_length(const TextHeader *header, const char *text, size_t size);

/* The mark before the decimals of a row that has both, as "716,800.00" shows it; 0: it has one at most.
 * False when it cannot be told. */
bool row_find_mark(const Token *numbers, size_t n, char *ret);

typedef struct RowText {
        const TextHeader *header;
        const Token *numbers;
        char mark;
        bool at_edge; /* the line ends where the header's does: if lines were cut, the last number may have
                         been */
} RowText;

/* Whether the last number lacks its end: iostat prints the same number of decimals of all. */
bool row_is_torn(const Token *numbers, size_t n);

/* Reads what the judge needs of a row, and of what else it says as much as is worth the time. */
bool row_read_figures(const RowText *row, Figures *figures, Damage *ret_damage);
