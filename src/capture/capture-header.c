/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the names of the columns, wherever in its line "Device" stands. Pure. */

#include "capture-header.h"

#include "tierprobe/cleanup.h"

#include <string.h>

static const char device_word[] = "Device";

/* Whether the token is "Device", maybe with a colon behind it and with something glued in front
 * ("[18:01:12]Device:"). *ret_glue: how many bytes that are. */
static bool is_device_word(const Token *token, size_t *ret_glue)
{
        size_t size = sizeof device_word - 1;
        const char *end = token->text + token->size, *found = NULL;

        if (token->size >= size)
                found = memmem(token->text, token->size, device_word, size);
        if (!found)
                return false;
        for (const char *p = found + size; p < end; p++)
                if (!strchr(":*`'\"", *p))
                        return false;
        *ret_glue = (size_t) (found - token->text);
        return true;
}

/* What may be the name of a column, of this sysstat or a later one. */
static bool is_column_like(const Token *token)
{
        bool any = false;

        for (size_t i = 0; i < token->size; i++) {
                char c = token->text[i];
                bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
                if (!letter && !(c >= '0' && c <= '9') && !strchr("/%_+-", c))
                        return false;
                any = any || letter;
        }
        return any;
}

static size_t count_known(const Token *tokens, size_t n)
{
        size_t known = 0;

        for (size_t i = 0; i < n; i++)
                known += column_find(tokens[i].text, tokens[i].size) != NULL;
        return known;
}

static uint32_t sign(const Token *tokens, size_t n)
{
        uint32_t signature = UINT32_C(2166136261); /* FNV-1a */

        for (size_t i = 0; i < n; i++) {
                for (size_t k = 0; k < tokens[i].size; k++)
                        signature = (signature ^ (unsigned char) tokens[i].text[k]) * UINT32_C(16777619);
                signature = (signature ^ ' ') * UINT32_C(16777619);
        }
        return signature;
}

static void take_columns(const Token *columns, size_t n, TextHeader *header)
{
        header->n_columns = n;
        header->signature = sign(columns, n);
        for (size_t i = 0; i < n; i++) {
                const Column *column = column_find(columns[i].text, columns[i].size);

                if (!column || column->role == COLUMN_OTHER || header->known & 1U << column->role)
                        continue;
                header->known |= 1U << column->role;
                header->at[column->role] = i;
                header->kb[column->role] = column->kb;
        }
}

static bool parse_tokens(const char *line, const Token *tokens, size_t n, TextHeader *header)
{
        size_t device = 0, first = 0, end = 0, glue = 0;

        while (device < n && !is_device_word(&tokens[device], &glue))
                device++;
        if (device == n)
                return false;
        size_t after = count_known(tokens + device + 1, n - device - 1), before = count_known(tokens, device);
        header->name_last = before > after;
        if ((header->name_last ? before : after) < 2)
                return false;
        if (header->name_last) {
                while (!column_find(tokens[first].text, tokens[first].size))
                        first++;
                end = device;
                header->n_before = first;
        } else {
                first = end = device + 1;
                while (end < n && is_column_like(&tokens[end]))
                        end++;
                header->n_before = device;
        }
        header->tags = line_tags(tokens, header->n_before);
        header->n_prefix = header->n_before - line_lead(tokens, header->n_before + 1);
        header->indent = (size_t) (tokens[0].text - line);
        if (!header->name_last && glue < sizeof header->glue) {
                memcpy(header->glue, tokens[device].text, glue);
                header->glue_size = glue;
        }
        take_columns(tokens + first, end - first, header);
        size_t n_numbers = 0;
        for (size_t i = end; i < n; i++)
                n_numbers += token_is_number(&tokens[i]);
        if (n_numbers >= end - first)
                header->state = HEADER_JOINED;
        if (tokens[n - 1].text[tokens[n - 1].size - 1] == '=')
                header->state = HEADER_ENCODED;
        return true;
}

bool header_parse(const char *line, size_t size, TextHeader *ret)
{
        Token tokens[LINE_MAX_TOKENS];

        /* In a table of a program the mark behind the word is what separates. */
        const char *word = memmem(line, size, device_word, sizeof device_word - 1);
        const char *behind = word ? word + sizeof device_word - 1 : NULL;
        if (!word)
                return false;
        while (behind < line + size && (*behind == '"' || *behind == ':'))
                behind++;
        char mark = behind < line + size ? *behind : '\0';
        TextHeader header = { .separators = mark == ','   ? SEPARATED_BY_COMMAS
                                            : mark == ';' ? SEPARATED_BY_SEMICOLONS
                                                          : SEPARATED_BY_BLANKS };
        size_t n = line_split(line, size, header.separators, tokens);
        if (n == SIZE_MAX || !parse_tokens(line, tokens, n, &header))
                return false;
        *ret = header;
        return true;
}

bool header_is_piece(const Token *tokens, size_t n, bool next)
{
        size_t known = count_known(tokens, n), torn = 0;

        if (n == 0 || known == 0)
                return false;
        if (next) {
                torn += !column_find(tokens[0].text, tokens[0].size);
                torn += n > 1 && !column_find(tokens[n - 1].text, tokens[n - 1].size);
        }
        return known + torn == n && (next || n >= 2);
}
