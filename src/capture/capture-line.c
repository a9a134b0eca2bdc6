/* SPDX-License-Identifier: Apache-2.0 */
/* Splits lines and tells numbers, dates and tags apart. Pure. */

#include "capture-line.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/text.h"

#include "number.h"

#include <string.h>

/* 0 separates. */
typedef uint64_t Classes[256];

/* A later entry of the list takes the place of an earlier one. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
#ifdef __clang__
#pragma clang diagnostic ignored "-Winitializer-overrides"
#endif
#define CLASSES                                           \
        [0 ... ' '] = 0, [' ' + 1 ... 255] = TALLY_OTHER, \
               ['0' ... '9'] = TALLY_DIGIT, ['.'] = TALLY_DOT, [','] = TALLY_COMMA, ['|'] = 0

static const Classes classes[] = {
        [SEPARATED_BY_BLANKS] = { CLASSES },
        [SEPARATED_BY_COMMAS] = { CLASSES, [','] = 0, ['"'] = 0 },
        [SEPARATED_BY_SEMICOLONS] = { CLASSES, [';'] = 0, ['"'] = 0 },
};
#pragma GCC diagnostic pop

size_t line_split(const char *line, size_t size, Separators separators, Token tokens[LINE_MAX_TOKENS])
{
        const uint64_t *class = classes[separators];
        size_t n = 0;

        for (const char *p = line, *end = line + size; p < end;) {
                uint64_t tally = 0, one = 0;

                while (p < end && class[(unsigned char) *p] == 0)
                        p++;
                if (p == end)
                        break;
                if (n == LINE_MAX_TOKENS)
                        return SIZE_MAX;
                tokens[n].text = p;
                while ((one = class[(unsigned char) *p])) { /* a blank is behind the line */
                        tally += one;
                        p++;
                }
                tokens[n].size = (size_t) (p - tokens[n].text);
                tokens[n].tally = tally;
                n++;
        }
        return n;
}

/* ---- plain text ---- */

/* How long an escape sequence at TEXT is: colours (S_COLORS=always), and what a terminal recorder adds. */
static size_t escape_length(const char *text, size_t size)
{
        size_t n = 1;

        if (n == size)
                return n;
        if (text[n] == '[') { /* ESC [ parameters, then a letter */
                for (n++; n < size && (text[n] < '@' || text[n] > '~'); n++)
                        ;
        } else if (text[n] == ']') { /* ESC ] a title, to BEL */
                for (n++; n < size && text[n] != '\a'; n++)
                        ;
        } else if (text[n] == '(' || text[n] == ')') /* ESC ( B: a character set */
                n++;
        return n < size ? n + 1 : size;
}

/* How long a tag of a page or one of its characters is at TEXT, 0 when it is none. */
static size_t markup_length(const char *text, size_t size)
{
        static const char *const markup[] = { "<pre>",  "</pre>", "<code>", "</code>", "<br>",   "<br/>",
                                              "<br />", "<p>",    "</p>",   "&nbsp;",  "&#160;", "&gt;" };

        for (size_t i = 0; i < ELEMENTSOF(markup); i++)
                if (strlen(markup[i]) <= size && memcmp(text, markup[i], strlen(markup[i])) == 0)
                        return strlen(markup[i]);
        return 0;
}

/* How long a blank beyond ASCII is at TEXT, 0 when it is none. */
static size_t blank_length(const char *text, size_t size)
{
        static const char *const blanks[] = {
                "\xc2\xa0",     /* no-break space */
                "\xe3\x80\x80", /* ideographic space */
                "\xe2\x80\xaf", /* narrow no-break space */
                "\xe2\x94\x82", /* the line of a box */
        };

        for (size_t i = 0; i < ELEMENTSOF(blanks); i++)
                if (strlen(blanks[i]) <= size && memcmp(text, blanks[i], strlen(blanks[i])) == 0)
                        return strlen(blanks[i]);
        /* U+2000 to U+200A: spaces of all widths */
        bool thin = size >= 3 && memcmp(text, "\xe2\x80", 2) == 0 && (unsigned char) text[2] >= 0x80 &&
                    (unsigned char) text[2] <= 0x8a;
        return thin ? 3 : 0;
}

/* The length at TEXT of invisible characters: byte order marks, U+200B to U+200F, the emphasis and the
 * escapes of Markdown. 0 when it is none. */
static size_t invisible_length(const char *text, size_t size)
{
        unsigned char c = (unsigned char) text[0];

        if (c == '\033')
                return escape_length(text, size);
        if (c == '*' || c == '`' || (c == '\\' && size > 1 && (text[1] == '_' || text[1] == '%')))
                return 1;
        if (size < 3 || c < 0x80)
                return 0;
        bool width = memcmp(text, "\xe2\x80", 2) == 0 && (unsigned char) text[2] >= 0x8b &&
                     (unsigned char) text[2] <= 0x8f;
        return width || memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

/* How long a hyphen of a word processor is at TEXT, 0 when it is none: U+2010 to U+2015, U+2212. */
static size_t hyphen_length(const char *text, size_t size)
{
        if (size < 3 || text[0] != '\xe2')
                return 0;
        unsigned char last = (unsigned char) text[2];
        bool hyphen = text[1] == '\x80' && last >= 0x90 && last <= 0x95;
        return hyphen || memcmp(text, "\xe2\x88\x92", 3) == 0 ? 3 : 0;
}

size_t line_plain(const char *line, size_t size, char *plain, bool *ret_changed)
{
        size_t n = 0;

        *ret_changed = false;
        for (size_t i = 0; i < size;) {
                unsigned char c = (unsigned char) line[i];
                size_t hyphen = c >= 0x80 ? hyphen_length(line + i, size - i) : 0;
                size_t blank = c == '<' || c == '&' ? markup_length(line + i, size - i)
                               : c >= 0x80          ? blank_length(line + i, size - i)
                                                    : 0;
                size_t nothing = invisible_length(line + i, size - i);
                size_t skip = hyphen + blank + nothing;

                if (skip == 0)
                        plain[n++] = line[i++];
                else if (nothing == 0)
                        plain[n++] = hyphen ? '-' : ' ';
                *ret_changed = *ret_changed || skip > 0;
                i += skip;
        }
        plain[n] = ' ';
        return n;
}

/* ---- tokens ---- */

bool token_is(const Token *token, const char *text)
{
        return token->size == strlen(text) && memcmp(token->text, text, token->size) == 0;
}

bool token_is_number(const Token *token)
{
        Number number;

        if (tally_others(token->tally) == 0)
                return tally_digits(token->tally) > 0;
        if (tally_digits(token->tally) == 0)
                return token_is(token, "nan") || token_is(token, "-nan") || token_is(token, "inf") ||
                       token_is(token, "-inf") || token_is(token, "?");
        size_t size = token->size - (token->text[token->size - 1] == '%');
        return tally_others(token->tally) <= 2 && number_parse(token->text, size, 0, &number);
}

bool tokens_are_plain(const Token *tokens, size_t n)
{
        uint64_t all = 0;
        bool without_digit = false;

        for (size_t i = 0; i < n; i++) {
                without_digit = without_digit || tally_digits(tokens[i].tally) == 0;
                all |= tokens[i].tally & ~UINT64_C(0xffff);
        }
        /* A second mark in a token, or anything else, would be another bit. */
        return !without_digit && (all == 0 || all == TALLY_DOT || all == TALLY_COMMA);
}

/* ---- what stands in front ---- */

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (unsigned char) c >= 0x80;
}

/* A date, a time, or a part of one: digits and what stands between them ("10:00:01", "2026-11-30T10:00:01Z",
 * "30", "12:"), maybe in a bracket ("[18:01:12]"), or a word of dates. */
static bool is_stamp(const Token *token)
{
        static const char *const words[] = { "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun", "Jan",
                                             "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep",
                                             "Oct", "Nov", "Dec", "AM",  "PM",  "UTC", "GMT" };
        const char *p = token->text, *end = p + token->size;

        while (p < end && (*p == '[' || *p == '('))
                p++;
        if (p < end && is_digit(*p)) {
                while (p < end &&
                       (is_digit(*p) || (unsigned char) *p >= 0x80 || strchr(":;.,/+-TZAPM])", *p)))
                        p++;
                return p == end;
        }
        for (size_t i = 0; i < ELEMENTSOF(words); i++)
                if (token_is(token, words[i]))
                        return true;
        return false;
}

static bool is_punctuation(const Token *token)
{
        for (size_t i = 0; i < token->size; i++)
                if (is_digit(token->text[i]) || is_letter(token->text[i]))
                        return false;
        return true;
}

/* "iostat[123]:", "node1:", "[pod/x]", "<KEY>" */
static bool is_tag(const Token *token)
{
        char first = token->text[0], last = token->text[token->size - 1];

        return last == ':' || (first == '[' && last == ']') || (first == '(' && last == ')') ||
               (first == '<' && last == '>');
}

size_t line_lead(const Token *words, size_t n)
{
        for (size_t i = n > 0 ? n - 1 : 0; i > 0; i--)
                if (is_stamp(&words[i - 1]) || is_punctuation(&words[i - 1]) || is_tag(&words[i - 1]))
                        return i;
        return 0;
}

uint32_t line_tags(const Token *words, size_t n)
{
        uint32_t hash = UINT32_C(2166136261); /* FNV-1a */
        bool any = false;

        for (size_t i = 0; i < n; i++) {
                if (is_stamp(&words[i]) || is_punctuation(&words[i]))
                        continue;
                any = true;
                for (size_t k = 0; k < words[i].size; k++)
                        hash = (hash ^ (unsigned char) words[i].text[k]) * UINT32_C(16777619);
                hash = (hash ^ ' ') * UINT32_C(16777619);
        }
        return !any ? 0 : hash ? hash : 1;
}
