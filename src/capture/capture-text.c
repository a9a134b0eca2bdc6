/* SPDX-License-Identifier: Apache-2.0 */
/* Reads iostat's text: headers, rows by the names of their columns, and everything between that is neither.
 * Knows base. */

#include "capture-text.h"

#include "number.h"

#include <errno.h>
#include <string.h>

typedef struct Token {
        const char *text;
        size_t size;
} Token;

void text_init(TextReader *reader, Rows *rows)
{
        memset(reader, 0, sizeof *reader);
        reader->rows = rows;
        reader->previous = -1;
}

static bool token_is(Token token, const char *text)
{
        return token.size == strlen(text) && memcmp(token.text, text, token.size) == 0;
}

static bool token_ends_with(Token token, const char *text)
{
        size_t size = strlen(text);

        return token.size >= size && memcmp(token.text + token.size - size, text, size) == 0;
}

/* Splits at blanks, among which every control character counts: tabs, CR, and the NULs of a file that was
 * truncated while it was written to. Returns how many there are, SIZE_MAX when too many. */
static size_t split(const char *line, size_t size, Token tokens[TEXT_MAX_TOKENS])
{
        size_t n = 0;

        for (const char *p = line, *end = line + size; p < end;) {
                while (p < end && (unsigned char) *p <= ' ')
                        p++;
                if (p == end)
                        break;
                if (n == TEXT_MAX_TOKENS)
                        return SIZE_MAX;
                tokens[n].text = p;
                while (p < end && (unsigned char) *p > ' ')
                        p++;
                tokens[n].size = (size_t) (p - tokens[n].text);
                n++;
        }
        return n;
}

/* Copies LINE without escape sequences: S_COLORS=always, and what a terminal recorder adds. */
static size_t strip_escapes(const char *line, size_t size, char *plain)
{
        size_t n = 0;

        for (size_t i = 0; i < size; i++) {
                if (line[i] != '\033') {
                        plain[n++] = line[i];
                        continue;
                }
                i++;
                if (i < size && line[i] == '[') { /* ESC [ parameters, then a letter */
                        i++;
                        while (i < size && (line[i] < '@' || line[i] > '~'))
                                i++;
                } else if (i < size && (line[i] == '(' || line[i] == ')')) /* ESC ( B: a character set */
                        i++;
        }
        return n;
}

/* ---- headers ---- */

double text_unit_kb(const char *text, size_t size)
{
        static const struct {
                const char *name;
                double kb;
        } units[] = {
                { "kB/s", 1 },
                { "MB/s", 1024 },
                { "GB/s", 1024.0 * 1024 },
                { "sec/s", 0.5 },
        };

        for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
                if (strlen(units[i].name) == size && memcmp(units[i].name, text, size) == 0)
                        return units[i].kb;
        return 0;
}

static bool is_device_word(Token token)
{
        return token_is(token, "Device") || token_is(token, "Device:");
}

static bool is_header(const Token *tokens, size_t n)
{
        if (n < 2 || !(is_device_word(tokens[0]) || is_device_word(tokens[n - 1])))
                return false;
        for (size_t i = 0; i < n; i++)
                if (token_ends_with(tokens[i], "/s") || token_is(tokens[i], "tps") ||
                    token_is(tokens[i], "%util"))
                        return true;
        return false;
}

/* A header that is in this report already begins the next one. */
static void enter_section(TextReader *reader, const Token *tokens, size_t n)
{
        uint32_t signature = UINT32_C(2166136261);
        size_t known = 0;

        for (size_t i = 0; i < n; i++) {
                for (size_t k = 0; k < tokens[i].size; k++)
                        signature = (signature ^ (unsigned char) tokens[i].text[k]) * UINT32_C(16777619);
                signature = (signature ^ ' ') * UINT32_C(16777619);
        }
        while (known < reader->n_signatures && reader->signatures[known] != signature)
                known++;
        if (known < reader->n_signatures || reader->n_signatures == TEXT_MAX_SIGNATURES)
                reader->n_signatures = 0;
        if (reader->n_signatures == 0)
                reader->rows->report++;
        reader->signatures[reader->n_signatures++] = signature;
}

static void take_header(TextReader *reader, const Token *tokens, size_t n)
{
        TextHeader header = { .n_tokens = n, .name_last = !is_device_word(tokens[0]), .w_s = SIZE_MAX };
        bool has_wkb = false, has_await = false;

        for (size_t i = 0; i < n; i++) {
                size_t at = header.name_last ? i : i - 1; /* of the number in a row */
                double kb =
                        tokens[i].text[0] == 'w' ? text_unit_kb(tokens[i].text + 1, tokens[i].size - 1) : 0;

                if (kb > 0 && !has_wkb) {
                        has_wkb = true;
                        header.wkb = at;
                        header.kb_per_unit = kb;
                } else if (token_is(tokens[i], "w_await")) {
                        has_await = true;
                        header.w_await = at;
                } else if (token_is(tokens[i], "w/s"))
                        header.w_s = at;
        }
        header.complete = has_wkb && has_await;
        enter_section(reader, tokens, n);
        reader->header = header;
        reader->n_headers++;
        reader->previous = -1;
}

/* ---- rows ---- */

static bool looks_numeric(Token token)
{
        char c = token.text[0];

        if (c == '-' || c == '+')
                c = token.size > 1 ? token.text[1] : ' ';
        return (c >= '0' && c <= '9') || token_is(token, "nan") || token_is(token, "-nan") ||
               token_is(token, "inf") || token_is(token, "-inf");
}

/* A name of several words: control characters, though they separate, are no part of a name. */
static bool is_name(const char *name, size_t size)
{
        for (size_t i = 0; i < size; i++)
                if ((unsigned char) name[i] < ' ')
                        return false;
        return true;
}

static bool all_numeric(const Token *tokens, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (!looks_numeric(tokens[i]))
                        return false;
        return true;
}

static bool take_number(Token token, unsigned digits, Number *ret)
{
        return number_parse(token.text, token.size, digits, ret);
}

static bool read_figures(const TextHeader *header, const Token *numbers, RowFigures *ret)
{
        Number wkb, w_s = { 0 }, w_await;

        if (!take_number(numbers[header->wkb], SCALE_WKB_DIGITS, &wkb) ||
            !take_number(numbers[header->w_await], SCALE_AWAIT_DIGITS, &w_await) || w_await.suffix ||
            (header->w_s != SIZE_MAX &&
             (!take_number(numbers[header->w_s], SCALE_WKB_DIGITS, &w_s) || w_s.suffix)))
                return false;
        double unit = wkb.suffix ? number_suffix_kb(wkb.suffix) : header->kb_per_unit;
        if (unit <= 0)
                return false;
        *ret = (RowFigures){ .wkb = number_scale(wkb.value, unit),
                             .w_s = w_s.value,
                             .w_await = w_await.value,
                             .wkb_rounding = number_rounding(&wkb) * unit,
                             .w_await_rounding = number_rounding(&w_await) };
        return true;
}

/* The device of a row; the order of rows is the same in every report, so look at the next one first. */
static int find_device(TextReader *reader, const char *name, size_t size, bool group)
{
        size_t next = reader->previous < 0 ? 0 : (size_t) reader->previous + 1;

        if (next < reader->rows->n_devices && reader->rows->devices[next].name_size == size &&
            memcmp(reader->rows->devices[next].name, name, size) == 0)
                return (int) next;
        return rows_device(reader->rows, name, size, group);
}

static int take_row(TextReader *reader, const char *name, size_t size, bool group, const Token *numbers)
{
        const TextHeader *header = &reader->header;
        RowFigures figures;

        if (size >= CAPTURE_NAME_SIZE)
                return 0;
        int device = find_device(reader, name, size, group);
        if (device == -ENOSPC)
                return 0;
        if (device < 0)
                return device;
        reader->previous = device;
        if (!header->complete) {
                rows_add_incomplete(reader->rows, (uint32_t) device);
                return 0;
        }
        if (!read_figures(header, numbers, &figures)) {
                reader->n_damaged++;
                return rows_add_damaged(reader->rows, (uint32_t) device);
        }
        return rows_add(reader->rows, (uint32_t) device, &figures);
}

/* A line that is no row, though it begins as one of a device we know: cut, or two written over each other. */
static int take_damaged(TextReader *reader, const Token *tokens, size_t n)
{
        int device = n >= 2 && !reader->header.name_last && looks_numeric(tokens[1])
                             ? rows_find(reader->rows, tokens[0].text, tokens[0].size)
                             : -ENOENT;

        if (device < 0 || !reader->header.complete)
                return 0;
        reader->n_damaged++;
        return rows_add_damaged(reader->rows, (uint32_t) device);
}

/* LAST: no newline followed, so that its end may be missing. */
static int take_tokens(TextReader *reader, const char *line, const Token *tokens, size_t n, bool last)
{
        bool had_pending = reader->has_pending;
        const TextHeader *header = &reader->header;
        size_t indent = (size_t) (tokens[0].text - line);
        bool after_cpu = reader->after_cpu;

        reader->has_pending = false;
        reader->after_cpu = false;
        if (is_header(tokens, n)) {
                take_header(reader, tokens, n);
                reader->header.indent = indent;
                return 0;
        }
        if (token_is(tokens[0], "avg-cpu:")) {
                reader->n_signatures = 0; /* the next header is of a new report */
                reader->after_cpu = true;
                return 0;
        }
        if (after_cpu && all_numeric(tokens, n))
                return 0;
        if (header->n_tokens == 0) {
                if (n >= 6 && all_numeric(tokens + 1, n - 1))
                        reader->n_rows_without_header++;
                return 0;
        }
        size_t n_numbers = header->n_tokens - 1;
        if (n > n_numbers) { /* a name may hold blanks (-g "my disks"), or be a number (-N: a WWID) */
                size_t n_words = n - n_numbers, first = header->name_last ? n_numbers : 0;
                const Token *numbers = header->name_last ? tokens : tokens + n_words;
                const Token *end = &tokens[first + n_words - 1];
                const char *name = tokens[first].text;
                size_t size = (size_t) (end->text + end->size - name);

                if ((n_words == 1 || (!looks_numeric(tokens[first]) && is_name(name, size))) &&
                    all_numeric(numbers, n_numbers)) {
                        /* A name cut short would be another device. */
                        if (last && header->name_last && rows_find(reader->rows, name, size) < 0) {
                                reader->cut = true;
                                return 0;
                        }
                        bool group = header->name_last ? name[-1] == ' ' && name[-2] == ' '
                                                       : indent == header->indent + 1;
                        return take_row(reader, name, size, group, numbers);
                }
        } else if (n == n_numbers && had_pending && all_numeric(tokens, n))
                return take_row(reader, reader->pending, strlen(reader->pending), false, tokens);
        else if (n == 1 && tokens[0].size < CAPTURE_NAME_SIZE) {
                memcpy(reader->pending, tokens[0].text, tokens[0].size);
                reader->pending[tokens[0].size] = '\0';
                reader->has_pending = true;
                return 0;
        }
        if (last) {
                reader->cut = true;
                return 0;
        }
        return take_damaged(reader, tokens, n);
}

static int take_line(TextReader *reader, const char *line, size_t size, bool last)
{
        Token tokens[TEXT_MAX_TOKENS];

        if (memchr(line, '\033', size)) {
                size = strip_escapes(line, size, reader->plain);
                line = reader->plain;
        }
        size_t n = split(line, size, tokens);
        if (n == 0 || n == SIZE_MAX) {
                reader->has_pending = false;
                return 0;
        }
        return take_tokens(reader, line, tokens, n, last);
}

/* ---- lines ---- */

int text_feed(TextReader *reader, const char *data, size_t size)
{
        while (size > 0) {
                const char *newline = memchr(data, '\n', size);
                size_t part = newline ? (size_t) (newline - data) : size;
                int r = 0;

                if (newline && reader->line_size == 0 && !reader->overlong && part <= CAPTURE_MAX_LINE)
                        r = take_line(reader, data, part, false);
                else {
                        if (part > sizeof reader->line - reader->line_size)
                                reader->overlong = true;
                        if (!reader->overlong) {
                                memcpy(reader->line + reader->line_size, data, part);
                                reader->line_size += part;
                        }
                        if (newline) {
                                if (reader->overlong)
                                        reader->n_overlong++;
                                else
                                        r = take_line(reader, reader->line, reader->line_size, false);
                                reader->overlong = false;
                                reader->line_size = 0;
                        }
                }
                if (r < 0)
                        return r;
                data += part + (newline != NULL);
                size -= part + (newline != NULL);
        }
        return 0;
}

int text_finish(TextReader *reader)
{
        if (reader->overlong) {
                reader->n_overlong++;
                return 0;
        }
        return reader->line_size ? take_line(reader, reader->line, reader->line_size, true) : 0;
}
