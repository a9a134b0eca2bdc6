/* SPDX-License-Identifier: Apache-2.0 */
/* A text that grows, for documents put together piece by piece. Private to src/http. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct Text {
        char *data;
        size_t size, allocated;
        bool failed; /* out of memory: nothing is added any more */
} Text;

void text_add(Text *text, const char *data, size_t size);
void text_add_string(Text *text, const char *string);

/* Adds DOCUMENT as compact JSON; its reference is taken; NULL: it ran out of memory. */
void text_add_json(Text *text, json_t *document);

/* Moves what FROM has to the end of TEXT. */
void text_add_text(Text *text, Text *from);

/* Hands the text over; NULL when it failed. The text is empty afterwards. */
char *text_take(Text *text, size_t *ret_size);
