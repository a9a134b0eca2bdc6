/* SPDX-License-Identifier: Apache-2.0 */
/* Reads iostat's text: headers, rows by the names of their columns, and everything between that is neither.
 * Knows base.
 *
 * A row is a name and exactly as many numbers as the header has columns. What stands in front of the name, or
 * behind the numbers, is no part of it; when there is one number more or less, it is damaged, and never read
 * one column to the side. */

#include "capture-text.h"

#include "tierprobe/text.h"

#include <errno.h>
#include <string.h>

void capture_text_init(TextReader *reader, Rows *rows)
{
        memset(reader, 0, sizeof *reader);
        reader->rows = rows;
        reader->previous = -1;
        reader->open_device = -1;
}

/* A name that stood alone, and no numbers followed. */
static int drop_pending(TextReader *reader)
{
        int device = reader->has_pending ? rows_find(reader->rows, reader->pending, strlen(reader->pending))
                                         : -ENOENT;

        reader->has_pending = false;
        if (device < 0 || !reader->in_table)
                return 0;
        reader->n_damaged++;
        return rows_add_damaged(reader->rows, (uint32_t) device, DAMAGE_CUT);
}

/* ---- headers ---- */

/* A header that is in this report already begins the next one. */
static void enter_section(TextReader *reader, uint32_t signature)
{
        size_t known = 0;

        while (known < reader->n_signatures && reader->signatures[known] != signature)
                known++;
        if (known < reader->n_signatures || reader->n_signatures == TEXT_MAX_SIGNATURES)
                reader->n_signatures = 0;
        if (reader->n_signatures == 0)
                reader->rows->report++;
        reader->signatures[reader->n_signatures++] = signature;
}

/* A header right behind its like: iostat -z, of which the blank lines were left out, had nothing to show. */
static void note_repeat(TextReader *reader, const TextHeader *header)
{
        bool repeats = reader->after_header && header->signature == reader->header.signature;

        reader->n_repeats += repeats;
        reader->n_repeats_in_a_row = repeats ? reader->n_repeats_in_a_row + 1 : 0;
        if (reader->n_repeats_in_a_row > reader->most_repeats)
                reader->most_repeats = reader->n_repeats_in_a_row;
}

static int enter_header(TextReader *reader, const TextHeader *header)
{
        int r = drop_pending(reader);

        note_repeat(reader, header);

        reader->header = *header;
        if (reader->after_piece)
                reader->header.state = HEADER_WRAPPED;
        reader->after_piece = false;
        reader->after_header = true;
        reader->in_table = true;
        reader->after_cpu = false;
        reader->spaced = false;
        reader->open_numbers = 0;
        reader->previous = -1;
        reader->n_headers++;
        reader->encoded = reader->encoded || header->state == HEADER_ENCODED;
        reader->joined = reader->joined || header->state == HEADER_JOINED;
        reader->header_size = reader->line_size;
        enter_section(reader, header->signature);
        return r;
}

/* A header is the same in every report. */
static const TextHeader *find_known_header(const TextReader *reader, const char *line, size_t size)
{
        for (size_t i = 0; i < TEXT_KNOWN_HEADERS; i++) {
                const KnownHeader *known = &reader->known[i];
                if (known->size == size && memcmp(known->line, line, size) == 0)
                        return &known->header;
        }
        return NULL;
}

static void remember_header(TextReader *reader, const char *line, size_t size, const TextHeader *header)
{
        KnownHeader *known = &reader->known[reader->next_known];

        if (size > sizeof known->line)
                return;
        memcpy(known->line, line, size);
        known->size = size;
        known->header = *header;
        reader->next_known = (reader->next_known + 1) % TEXT_KNOWN_HEADERS;
}

/* ---- rows ---- */

static void note_wrap(TextReader *reader, size_t line_size)
{
        if (line_size > reader->wrap_columns)
                reader->wrap_columns = line_size;
}

/* The device of a row; the order of rows is the same in every report, so look at the next one first. */
static int find_device(const TextReader *reader, const char *name, size_t size)
{
        size_t next = reader->previous < 0 ? 0 : (size_t) reader->previous + 1;

        if (next < reader->rows->n_devices && reader->rows->devices[next].name_size == size &&
            memcmp(reader->rows->devices[next].name, name, size) == 0)
                return (int) next;
        return -ENOENT;
}

static int take_row(TextReader *reader, const char *name, size_t size, bool group, const Token *numbers,
                    char mark)
{
        RowText row = { .header = &reader->header,
                        .numbers = numbers,
                        .mark = mark,
                        .at_edge = !reader->header.name_last && reader->line_size == reader->header_size };
        Figures figures = { .if_sectors = 1 };
        Damage damage = DAMAGE_CUT;

        reader->has_pending = reader->after_cpu = reader->after_header = reader->after_piece = false;
        reader->open_numbers = 0;
        reader->in_table = true;
        reader->n_blank = 0;
        int device = find_device(reader, name, size);
        if (device < 0)
                device = rows_device(reader->rows, name, size, group);
        if (device == -ENOSPC)
                return 0;
        if (device < 0)
                return device;
        reader->previous = device;
        if (mark != '?' && row_read_figures(&row, &figures, &damage))
                return rows_add(reader->rows, (uint32_t) device, &figures);
        reader->n_damaged++;
        return rows_add_damaged(reader->rows, (uint32_t) device, mark == '?' ? DAMAGE_MARKS : damage);
}

static void keep_sample(char *to, const char *from, size_t size)
{
        char copy[TEXT_SAMPLE_SIZE];

        while (size > 0 && (unsigned char) from[size - 1] <= ' ')
                size--;
        size = size < sizeof copy ? size : sizeof copy - 1;
        memcpy(copy, from, size);
        copy[size] = '\0';
        text_copy_clean(to, TEXT_SAMPLE_SIZE, copy);
}

/* Rows of another host, or another file, would be taken for the same device. */
static bool has_same_tags(TextReader *reader, const Token *words, size_t n, const char *name)
{
        uint32_t tags = line_tags(words, n);

        if (!reader->has_tags) {
                reader->has_tags = true;
                reader->tags = tags;
        }
        if (tags == reader->tags)
                return true;
        if (reader->n_other_tags++ == 0)
                keep_sample(reader->other_tag, words[0].text, (size_t) (name - words[0].text));
        return false;
}

static int take_odd_row(TextReader *reader, const char *line, const Token *tokens, const OddRow *row)
{
        const TextHeader *header = &reader->header;
        char name[CAPTURE_NAME_SIZE], mark = 0;
        size_t indent = (size_t) (tokens[0].text - line);
        bool group = header->name_last ? row->name[-1] == ' ' && row->name[-2] == ' '
                                       : !row->pending && row->n_lead == 0 && indent == header->indent + 1;

        if (!has_same_tags(reader, tokens, row->n_lead, row->name))
                return 0;
        size_t led = row->pending ? 0 : (size_t) (row->name - tokens[0].text);
        if (led > 0 && !header->name_last && reader->n_led++ == 0)
                keep_sample(reader->lead, tokens[0].text, led);
        if (!row_find_mark(tokens + row->first, header->n_columns, &mark))
                mark = '?';
        memcpy(name, row->name, row->name_size); /* it may be that which is pending */
        return take_row(reader, name, row->name_size, group, tokens + row->first, mark);
}

/* A line that is no row, though it holds numbers: cut, torn, or two written over each other. */
static int take_damaged(TextReader *reader, const Token *tokens, size_t n, const OddRow *row,
                        size_t line_size)
{
        const TextHeader *header = &reader->header;
        int device = -ENOENT;

        for (size_t i = 0; i < n && i <= row->n_lead + 3 && device < 0; i++) {
                const Token *token = header->name_last ? &tokens[n - 1 - i] : &tokens[i];
                size_t glue = row_glue_length(header, token->text, token->size);
                device = rows_find(reader->rows, token->text + glue, token->size - glue);
        }
        /* The numbers that a row before lacked: it was one, on two lines. */
        bool numbers_only = row->run > 0 && row->first == line_lead(tokens, row->first + 1);
        if (device < 0 && reader->open_numbers > 0 && numbers_only &&
            reader->open_numbers + row->run >= header->n_columns) {
                if (reader->open_device >= 0)
                        rows_rename_damage(reader->rows, (uint32_t) reader->open_device, DAMAGE_CUT,
                                           DAMAGE_WRAPPED);
                reader->n_wrapped++;
                note_wrap(reader, line_size);
                note_wrap(reader, reader->open_size);
                reader->open_numbers = 0;
                return 0;
        }
        reader->open_numbers = row->run;
        reader->open_size = line_size;
        reader->open_device = device;
        if (device < 0) {
                /* A name and numbers to the end, or enough of them: who knows of which device. */
                const Token *before = row->first > 0 ? &tokens[row->first - 1] : NULL;
                bool named = before && row->first + row->run == n && row_is_name(before->text, before->size);
                reader->n_unread += row->run >= 3 || named;
                return rows_mark_lost(reader->rows);
        }
        reader->n_damaged++;
        return rows_add_damaged(reader->rows, (uint32_t) device,
                                header->state == HEADER_WHOLE ? DAMAGE_CUT : DAMAGE_WRAPPED);
}

/* ---- lines ---- */

static bool is_ascii(const Token *token)
{
        for (size_t i = 0; i < token->size; i++)
                if ((unsigned char) token->text[i] >= 0x80)
                        return false;
        return true;
}

/* What iostat prints itself: a name and as many plain numbers as there are columns. */
static bool is_clean_row(const TextReader *reader, const Token *tokens, size_t n)
{
        const TextHeader *header = &reader->header;

        return header->n_columns > 0 && n == header->n_columns + 1 && header->state == HEADER_WHOLE &&
               !header->name_last && header->n_before == 0 && header->glue_size == 0 &&
               tally_others(tokens[0].tally) > 0 && tokens_are_plain(tokens + 1, n - 1) &&
               (find_device(reader, tokens[0].text, tokens[0].size) >= 0 ||
                (is_ascii(&tokens[0]) && row_is_name(tokens[0].text, tokens[0].size) &&
                 row_glue_length(header, tokens[0].text, tokens[0].size) == 0));
}

static int take_clean_row(TextReader *reader, const char *line, const Token *tokens, size_t n, bool last)
{
        if (last && row_is_torn(tokens, n)) {
                reader->cut = true;
                return 0;
        }
        if (reader->has_tags && reader->tags != 0) {
                reader->n_other_tags++;
                return 0;
        }
        reader->has_tags = true;
        int r = drop_pending(reader);
        if (r < 0)
                return r;
        bool group = (size_t) (tokens[0].text - line) == reader->header.indent + 1;
        return take_row(reader, tokens[0].text, tokens[0].size, group, tokens + 1, 0);
}

static bool ends_with(const Token *token, const char *text)
{
        size_t size = strlen(text);

        return token->size >= size && memcmp(token->text + token->size - size, text, size) == 0;
}

/* Whether the line holds nothing but what stands in front of every other. */
static bool is_blank(const TextReader *reader, const Token *tokens, size_t n)
{
        Token all[LINE_MAX_TOKENS + 1];

        for (size_t i = 0; i < n; i++) /* that is the beginning of JSON */
                if (memchr(tokens[i].text, '"', tokens[i].size) ||
                    memchr(tokens[i].text, '{', tokens[i].size) || token_is(&tokens[i], "["))
                        return false;
        if (n == 0 || (n == reader->header.n_before && line_tags(tokens, n) == reader->header.tags))
                return true;
        /* A date has no two numbers in a row, and none with decimals. */
        size_t first = 0, other = 0;
        if (row_find_run(tokens, n, &first, &other) > 1 ||
            (token_is_number(&tokens[n - 1]) && tally_digits(tokens[n - 1].tally) != tokens[n - 1].size))
                return false;
        memcpy(all, tokens, n * sizeof *all);
        all[n] = (Token){ .text = "x", .size = 1, .tally = TALLY_OTHER };
        return line_lead(all, n + 1) == n;
}

static void leave_table(TextReader *reader)
{
        reader->after_cpu = reader->after_header = reader->after_piece = false;
        reader->in_table = false;
        reader->open_numbers = 0;
}

static void enter_cpu(TextReader *reader)
{
        leave_table(reader);
        reader->n_signatures = 0; /* the next header is of a new report */
        reader->after_cpu = reader->has_cpu = true;
}

/* A blank line ends a table, but not where one follows every line. */
static int take_blank(TextReader *reader)
{
        int r = drop_pending(reader);

        reader->spaced = reader->spaced || reader->after_header;
        if (!reader->spaced || reader->n_blank++ > 0)
                leave_table(reader);
        reader->after_header = reader->after_piece = false;
        return r;
}

/* The values of avg-cpu, behind whatever stands in front of every line. */
static bool is_cpu_values(const Token *tokens, size_t n)
{
        size_t first = 0, other = 0, run = row_find_run(tokens, n, &first, &other);

        return run >= 4 && first + run == n && first == line_lead(tokens, first + 1);
}

/* A name alone on its line, as sysstat 10.0.1 to 11.7.1 print it with -h: its numbers are to follow. */
static bool take_name(TextReader *reader, const Token *tokens, size_t n)
{
        size_t lead = line_lead(tokens, n);
        const Token *name = &tokens[n - 1];
        size_t glue = row_glue_length(&reader->header, name->text, name->size);

        if (reader->header.name_last || (n - lead != 1 && n - lead != reader->header.n_prefix + 1) ||
            !row_is_name(name->text + glue, name->size - glue) || token_is_number(name))
                return false;
        memcpy(reader->pending, name->text + glue, name->size - glue);
        reader->pending[name->size - glue] = '\0';
        reader->has_pending = true;
        return true;
}

/* Whether numbers stand behind the name of a device that has rows. */
static bool names_device(const TextReader *reader, const Token *tokens, const OddRow *row)
{
        if (row->run < 2 || row->first == 0)
                return false;
        const Token *name = &tokens[row->first - 1];
        size_t glue = row_glue_length(&reader->header, name->text, name->size);
        return rows_find(reader->rows, name->text + glue, name->size - glue) >= 0;
}

static int take_table_line(TextReader *reader, const char *line, size_t size, const Token *tokens, size_t n,
                           bool last)
{
        OddRow row = row_find(&reader->header, reader->has_pending ? reader->pending : NULL, tokens, n);

        if (row.whole && last && reader->header.name_last &&
            rows_find(reader->rows, row.name, row.name_size) < 0)
                row.whole = false; /* a name cut short would be another device */
        int r = row.whole && row.pending ? 0 : drop_pending(reader);
        if (r < 0)
                return r;
        if (row.whole && !(last && row_is_torn(tokens, n)))
                return take_odd_row(reader, line, tokens, &row);
        if (last && row.run > 0) {
                reader->cut = true;
                return 0;
        }
        if (row.run == 0 && take_name(reader, tokens, n))
                return 1;
        if (row.run > 0 && (reader->in_table || names_device(reader, tokens, &row)))
                return take_damaged(reader, tokens, n, &row, size);
        if (reader->in_table)
                r = rows_mark_lost(reader->rows);
        return r < 0 ? r : 1;
}

/* A line that is no clean row. */
static int take_odd_line(TextReader *reader, const char *line, size_t size, const Token *tokens, size_t n,
                         bool last)
{
        TextHeader header;
        bool after_header = reader->after_header;

        if (header_parse(line, size, &header)) {
                remember_header(reader, line, size, &header);
                return enter_header(reader, &header);
        }
        if (n == SIZE_MAX)
                return reader->in_table ? rows_mark_lost(reader->rows) : 1;
        if (header_is_piece(tokens, n, after_header)) {
                reader->header.state = after_header ? HEADER_WRAPPED : reader->header.state;
                reader->after_piece = !after_header;
                note_wrap(reader, size);
                if (after_header)
                        note_wrap(reader, reader->header_size);
                return 0;
        }
        if (is_blank(reader, tokens, n))
                return take_blank(reader);
        reader->n_blank = 0;
        reader->after_header = reader->after_piece = false;
        for (size_t i = 0; i < n; i++)
                if (ends_with(&tokens[i], "avg-cpu:")) {
                        enter_cpu(reader);
                        return 0;
                }
        if (reader->after_cpu && is_cpu_values(tokens, n)) {
                reader->after_cpu = false;
                return 0;
        }
        if (reader->header.n_columns > 0)
                return take_table_line(reader, line, size, tokens, n, last);
        size_t first = 0, other = 0;
        if (row_find_run(tokens, n, &first, &other) >= 5 && first > 0)
                reader->n_rows_without_header++;
        return 1;
}

int capture_text_take_line(TextReader *reader, const char *line, size_t size, bool last)
{
        Token tokens[LINE_MAX_TOKENS];
        bool changed = false;

        reader->line_size = size;
        size_t n = line_split(line, size, reader->header.separators, tokens);
        if (n == 0)
                return take_blank(reader);
        if (n != SIZE_MAX && is_clean_row(reader, tokens, n))
                return take_clean_row(reader, line, tokens, n, last);
        if (token_is(&tokens[0], "avg-cpu:")) {
                enter_cpu(reader);
                return 0;
        }
        if (reader->after_cpu && n != SIZE_MAX && tokens_are_plain(tokens, n)) {
                reader->after_cpu = false;
                return 0;
        }
        const TextHeader *known = size > 0 ? find_known_header(reader, line, size) : NULL;
        if (known)
                return enter_header(reader, known);
        size = line_plain(line, size, reader->plain, &changed);
        line = changed ? reader->plain : line;
        if (changed) {
                n = line_split(line, size, reader->header.separators, tokens);
                if (n != SIZE_MAX && is_clean_row(reader, tokens, n))
                        return take_clean_row(reader, line, tokens, n, last);
        }
        return take_odd_line(reader, line, size, tokens, n, last);
}
