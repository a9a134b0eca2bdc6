/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the row in a line, its name and its numbers, and reads what they say. Pure. */

#include "capture-row.h"

#include "tierprobe/capture.h"
#include "tierprobe/text.h"

#include "number.h"

#include <string.h>

/* ---- figures ---- */

bool row_find_mark(const Token *numbers, size_t n, char *ret)
{
        uint64_t all = 0;
        char mark = 0;

        for (size_t i = 0; i < n; i++) {
                uint64_t tally = numbers[i].tally;
                if (tally_dots(tally) && tally_commas(tally)) {
                        const char *p = numbers[i].text + numbers[i].size;
                        while (*--p != '.' && *p != ',')
                                ;
                        if (mark && mark != *p)
                                return false;
                        mark = *p;
                } else if (tally_dots(tally) > 1 || tally_commas(tally) > 1)
                        return false;
                all |= tally;
        }
        if (tally_dots(all) && tally_commas(all) && !mark)
                return false;
        *ret = mark;
        return true;
}

/* Whether three decimals are decimals, not thousands: all numbers have three, and one cannot be grouped. */
static bool has_three_decimals(const Token *numbers, size_t n)
{
        bool proof = false;

        for (size_t i = 0; i < n; i++) {
                Number number;

                if (tally_dots(numbers[i].tally) + tally_commas(numbers[i].tally) == 0)
                        continue;
                if (!number_parse(numbers[i].text, numbers[i].size, 0, &number) || number.decimals != 3)
                        return false;
                proof = proof || !number_may_be_grouped(numbers[i].text, numbers[i].size);
        }
        return proof;
}

/* Reads the figure of a role that the header has; false when it is no number. */
static bool read_figure(const RowText *row, ColumnRole role, Figures *figures, Damage *ret_damage)
{
        const TextHeader *header = row->header;
        const Token *token = &row->numbers[header->at[role]];
        bool sized = role == COLUMN_WKB || role == COLUMN_RKB || role == COLUMN_WAREQ || role == COLUMN_AVGRQ;
        unsigned digits = role == COLUMN_W_AWAIT ? SCALE_AWAIT_DIGITS : SCALE_WKB_DIGITS;
        size_t size = token->size - (role == COLUMN_UTIL && token->text[token->size - 1] == '%');
        Number number;

        *ret_damage = DAMAGE_CUT;
        if (row->mark ? !number_parse_grouped(token->text, size, digits, row->mark, &number)
                      : !number_parse(token->text, size, digits, &number))
                return false;
        if (number.decimals == 3 && !row->mark && number_may_be_grouped(token->text, size) &&
            !has_three_decimals(row->numbers, header->n_columns)) {
                *ret_damage = DAMAGE_MARKS;
                return false;
        }
        if (number.suffix && !sized)
                return false;
        double unit = number.suffix ? number_suffix_kb(number.suffix) : header->kb[role];
        if (unit <= 0)
                return false;
        figures_set(figures, role, unit > 1 || unit < 1 ? number_scale(number.value, unit) : number.value,
                    number_rounding(&number) * unit);
        return true;
}

static bool has_column(const TextHeader *header, ColumnRole role)
{
        return header->known & 1U << role;
}

static size_t count_decimals(const Token *token)
{
        const char *mark = memchr(token->text, '.', token->size);

        if (!mark)
                mark = memchr(token->text, ',', token->size);
        return mark ? (size_t) (token->text + token->size - mark) - 1 : 0;
}

bool row_is_torn(const Token *tokens, size_t n)
{
        return n >= 2 && token_is_number(&tokens[n - 1]) && token_is_number(&tokens[n - 2]) &&
               count_decimals(&tokens[n - 1]) < count_decimals(&tokens[n - 2]);
}

/* Whether the number alone has no decimals: iostat prints the same of all, so that it lost its mark. */
static bool lost_its_mark(const RowText *row, size_t at)
{
        for (size_t i = 0; i < row->header->n_columns; i++) {
                uint64_t tally = row->numbers[i].tally;
                if ((tally_dots(tally) + tally_commas(tally) == 0) != (i == at))
                        return false;
        }
        return true;
}

bool row_read_figures(const RowText *row, Figures *figures, Damage *ret_damage)
{
        static const ColumnRole needed[] = { COLUMN_WKB, COLUMN_W_AWAIT, COLUMN_W_S };
        static const ColumnRole of_writes[] = { COLUMN_WAREQ, COLUMN_AVGRQ, COLUMN_RKB, COLUMN_R_S };
        static const ColumnRole of_rest[] = { COLUMN_R_S, COLUMN_QUEUE, COLUMN_UTIL };
        bool wrote = false;
        Damage ignored;

        for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
                if (!has_column(row->header, needed[i]))
                        continue;
                if (!read_figure(row, needed[i], figures, ret_damage))
                        return false;
                wrote = wrote || figures->value[needed[i]] != 0;
        }
        if (has_column(row->header, COLUMN_W_AWAIT) && wrote && row->header->n_columns > 1 &&
            lost_its_mark(row, row->header->at[COLUMN_W_AWAIT]))
                return false;
        size_t last = row->header->n_columns - 1;
        for (size_t i = 0; i < sizeof needed / sizeof needed[0] && row->at_edge; i++)
                if (has_column(row->header, needed[i]) && row->header->at[needed[i]] == last &&
                    row_is_torn(row->numbers, last + 1))
                        return false;
        size_t n_more = wrote ? sizeof of_writes / sizeof of_writes[0] : sizeof of_rest / sizeof of_rest[0];
        if (wrote && has_column(row->header, COLUMN_WAREQ))
                n_more = 1;
        for (size_t i = 0; i < n_more; i++) {
                ColumnRole role = wrote ? of_writes[i] : of_rest[i];
                if (has_column(row->header, role))
                        (void) read_figure(row, role, figures, &ignored);
        }
        return true;
}

/* ---- names ---- */

static bool is_alphanumeric(char c)
{
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               (unsigned char) c >= 0x80;
}

bool row_is_name(const char *name, size_t size)
{
        bool letters = false, colon = false;

        if (size == 0 || size >= CAPTURE_NAME_SIZE || !(is_alphanumeric(name[0]) || strchr("_/", name[0])))
                return false;
        for (size_t i = 0; i < size; i++) {
                if (text_is_control(name[i]))
                        return false;
                letters = letters || (is_alphanumeric(name[i]) && !(name[i] >= '0' && name[i] <= '9'));
                colon = colon || strchr(":.,", name[i]);
        }
        return letters || !colon;
}

static bool is_of_stamp(char c)
{
        return (c >= '0' && c <= '9') || (c != '\0' && strchr(":;.,/+-TZ)", c));
}

size_t row_glue_length(const TextHeader *header, const char *text, size_t size)
{
        size_t n = 0;

        if (header->glue_size > 0 && header->glue_size < size &&
            memcmp(text, header->glue, header->glue_size) == 0)
                return header->glue_size;
        while (n < size && strchr(">#*`'\"^$", text[n]))
                n++;
        if (n < size && (text[n] == '[' || text[n] == '(')) {
                const char *end = memchr(text + n, text[n] == '[' ? ']' : ')', size - n);
                return end ? (size_t) (end - text) + 1 : n;
        }
        size_t mark = n;
        for (size_t i = n; i < size && is_of_stamp(text[i]); i++)
                if (i > n && strchr(":;,)", text[i]))
                        mark = i + 1;
        /* grep -n ends the number of a line of context with a dash. */
        if (mark == n && header->glue_size > 0 && header->glue[0] >= '0' && header->glue[0] <= '9') {
                for (mark = n; mark < size && text[mark] >= '0' && text[mark] <= '9'; mark++)
                        ;
                mark = mark < size && text[mark] == '-' ? mark + 1 : n;
        }
        return mark;
}

/* ---- rows ---- */

size_t row_find_run(const Token *tokens, size_t n, size_t *ret_first, size_t *ret_other)
{
        size_t longest = 0, other = 0;

        *ret_first = n;
        for (size_t i = 0; i < n;) {
                size_t end = i;
                while (end < n && token_is_number(&tokens[end]))
                        end++;
                if (end - i > longest) {
                        other = longest;
                        longest = end - i;
                        *ret_first = i;
                } else if (end - i > other)
                        other = end - i;
                i = end + 1;
        }
        *ret_other = other;
        return longest;
}

/* The name out of the N words in front of the numbers. */
static void name_first(const TextHeader *header, const Token *words, size_t n, OddRow *row)
{
        row->n_lead = line_lead(words, n);
        if (n - row->n_lead > 1 && n - row->n_lead == header->n_prefix + 1)
                row->n_lead = n - 1; /* as many words without meaning as the header has */
        const Token *last = &words[n - 1];
        row->name = words[row->n_lead].text;
        row->name_size = (size_t) (last->text + last->size - row->name); /* -g "my disks" */
        size_t glue = row_glue_length(header, row->name, row->name_size);
        row->name += glue;
        row->name_size -= glue;
}

OddRow row_find(const TextHeader *header, const char *pending, const Token *tokens, size_t n)
{
        OddRow row = { 0 };
        size_t other = 0, wanted = header->n_columns;

        row.run = row_find_run(tokens, n, &row.first, &other);
        if (row.run == 0 || other >= 3 || header->state != HEADER_WHOLE)
                return row;
        /* A number in front of every line, as seconds are, stands beside those of a row. */
        bool beside = header->n_before > 0 && row.run == wanted + header->n_before && row.first == 0;
        bool alone = row.first == line_lead(tokens, row.first + 1); /* nothing but dates and tags before */

        size_t ahead = beside ? header->n_before : 0;
        if (header->name_last || (pending && (beside || (row.run == wanted && alone)))) {
                if (!beside && (row.run != wanted || !alone))
                        return row;
                row.first += ahead;
                row.n_lead = row.first;
                size_t end = row.first + wanted;
                if (!header->name_last) {
                        row.name = pending;
                        row.name_size = strlen(pending);
                        row.whole = row.pending = end == n;
                } else if (end < n) {
                        row.name = tokens[end].text;
                        row.name_size = (size_t) (tokens[n - 1].text + tokens[n - 1].size - row.name);
                        row.whole = true;
                }
        } else if (row.run == wanted && row.first > 0) {
                name_first(header, tokens, row.first, &row);
                row.whole = true;
        } else if (row.run == wanted + 1 && alone &&
                   tally_digits(tokens[row.first].tally) == tokens[row.first].size) {
                row.n_lead = row.first; /* -N: a WWID of digits */
                row.name = tokens[row.first].text;
                row.name_size = tokens[row.first++].size;
                row.whole = true;
        }
        row.whole = row.whole && row_is_name(row.name, row.name_size);
        return row;
}
