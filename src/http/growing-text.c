/* SPDX-License-Identifier: Apache-2.0 */
/* A text that grows. A list of runs is printed run by run, so that only one run's tree exists at a time. */

#include "growing-text.h"

#include "tierprobe/json.h"

#include <stdlib.h>
#include <string.h>

void text_add(Text *text, const char *data, size_t size)
{
        if (text->failed)
                return;
        if (text->allocated - text->size < size) {
                size_t wanted = text->allocated * 2 + size + 1024;
                char *grown = realloc(text->data, wanted);

                if (!grown) {
                        text->failed = true;
                        return;
                }
                text->data = grown;
                text->allocated = wanted;
        }
        memcpy(text->data + text->size, data, size);
        text->size += size;
}

void text_add_string(Text *text, const char *string)
{
        text_add(text, string, strlen(string));
}

void text_add_json(Text *text, json_t *document)
{
        size_t size = 0;
        char *dumped = document ? json_document(document, &size) : NULL;

        if (dumped)
                text_add(text, dumped, size - 1); /* without the newline */
        else
                text->failed = true;
        free(dumped);
        json_decref(document);
}

void text_add_text(Text *text, Text *from)
{
        if (from->failed)
                text->failed = true;
        else if (from->size > 0)
                text_add(text, from->data, from->size);
        free(from->data);
        *from = (Text){ 0 };
}

char *text_take(Text *text, size_t *ret_size)
{
        char *data = text->data;

        if (text->failed) {
                free(data);
                data = NULL;
        }
        *ret_size = text->size;
        *text = (Text){ 0 };
        return data;
}
