/* SPDX-License-Identifier: Apache-2.0 */
/* A line of text as tokens, and what may stand in front of its own. Inside the capture room. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINE_MAX_TOKENS 96

/* A token with the tally of its characters: four counts of 16 bits each, which no line is long enough to
 * fill. */
typedef struct Token {
        const char *text;
        size_t size;
        uint64_t tally;
} Token;

#define TALLY_DIGIT (UINT64_C(1))
#define TALLY_DOT (UINT64_C(1) << 16)
#define TALLY_COMMA (UINT64_C(1) << 32)
#define TALLY_OTHER (UINT64_C(1) << 48)

static inline unsigned tally_digits(uint64_t tally)
{
        return tally & 0xffff;
}

static inline unsigned tally_dots(uint64_t tally)
{
        return tally >> 16 & 0xffff;
}

static inline unsigned tally_commas(uint64_t tally)
{
        return tally >> 32 & 0xffff;
}

static inline unsigned tally_others(uint64_t tally)
{
        return tally >> 48;
}

/* What separates tokens beside blanks, control characters and "|". */
typedef enum Separators {
        SEPARATED_BY_BLANKS,
        SEPARATED_BY_COMMAS, /* CSV: quotation marks separate, too */
        SEPARATED_BY_SEMICOLONS,
} Separators;

/* Splits a line, behind which a blank must stand (LINE[SIZE] is read); control characters among the blanks
 * are tabs, CR, and the NULs of a file that was truncated while it was written to. Returns how many tokens
 * there are, SIZE_MAX when more than LINE_MAX_TOKENS. */
size_t line_split(const char *line, size_t size, Separators separators, Token tokens[LINE_MAX_TOKENS]);

/* Copies LINE into PLAIN of SIZE + 1 bytes, with a blank behind it, without what terminals, mail and web
 * pages put into it: escape sequences, tags, emphasis, and blanks and hyphens beyond ASCII. Returns the
 * size; *ret_changed: whether anything was left out. */
size_t line_plain(const char *line, size_t size, char *plain, bool *ret_changed);

bool token_is(const Token *token, const char *text);

/* Whether it is a number in any notation that a row may have: "803520.00", "803520,00", "1.5M", "98.4%",
 * "716,800.00", "nan", or the "?" of pcp. */
bool token_is_number(const Token *token);

/* Whether the N tokens are plain numbers, all with the same decimal mark: what iostat itself prints. */
bool tokens_are_plain(const Token *tokens, size_t n);

/* Of WORDS, the last of which is the name of a device, those in front that are dates, times, tags such as
 * "iostat[123]:" or "node1:", quotation and comment marks: how many there are. */
size_t line_lead(const Token *words, size_t n);

/* A hash of the tags among the words; 0: there are none. Dates and times are none. */
uint32_t line_tags(const Token *words, size_t n);
