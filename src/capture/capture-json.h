/* SPDX-License-Identifier: Apache-2.0 */
/* Reads iostat's JSON into rows, one row at a time. Inside the capture room. */
#pragma once

#include "capture-rows.h"

#define JSON_MAX_OBJECT 16384 /* bytes of one row; sysstat's have some 500 */
#define JSON_WORD_SIZE 64
#define JSON_LEAD_SIZE 96

typedef struct JsonReader {
        Rows *rows;

        char object[JSON_MAX_OBJECT]; /* from the last opening brace on */
        size_t size;
        bool collecting;  /* no other brace has come yet */
        bool broken;      /* a line ends inside of a value, or it is too long */
        bool line_begins; /* what stands before the first quote or brace of a line is no part of it */
        char lead[JSON_LEAD_SIZE], usual_lead[JSON_LEAD_SIZE]; /* that, of this line and of another */
        size_t lead_size, usual_lead_size;
        bool in_string, escaped;
        char last; /* character of the object that is not blank */

        char word[JSON_WORD_SIZE]; /* the string read last, as far as it fits */
        size_t word_size;
        bool is_node; /* the next string is the host's name */
        char node[JSON_WORD_SIZE];
        bool has_node, other_node; /* more than one host */

        int64_t depth;  /* of brackets */
        bool lost_open; /* one closed that was not open */
        uint64_t n_reports, n_damaged;
        const char *other; /* what else it is output of; NULL unknown */
} JsonReader;

void capture_json_init(JsonReader *reader, Rows *rows);

/* Takes in a piece of a line, then its end. 0, -ENOMEM or the error of the temporary file. */
int capture_json_feed(JsonReader *reader, const char *data, size_t size);
void capture_json_end_line(JsonReader *reader);

/* Whether the document breaks off. */
bool capture_json_is_cut(const JsonReader *reader);
