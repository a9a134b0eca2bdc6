/* SPDX-License-Identifier: Apache-2.0 */
/* JSON without a tree. Every byte is looked at once; nothing is allocated and nothing recurses, whatever the
 * text is. */

#include "scan.h"

#include "tierprobe/text.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef struct Scanner {
        const char *at, *end;
} Scanner;

static bool next_is(const Scanner *s, char c)
{
        return s->at < s->end && *s->at == c;
}

static bool take(Scanner *s, char c)
{
        if (!next_is(s, c))
                return false;
        s->at++;
        return true;
}

static void skip_space(Scanner *s)
{
        while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\r' || *s->at == '\t'))
                s->at++;
}

static bool is_hex(char c)
{
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* What follows a backslash. */
static bool scan_escape(Scanner *s)
{
        if (s->at == s->end)
                return false;
        if (*s->at != 'u') {
                if (!*s->at || !strchr("\"\\/bfnrt", *s->at))
                        return false;
                s->at++;
                return true;
        }
        if (s->end - s->at < 5)
                return false;
        for (int i = 1; i <= 4; i++)
                if (!is_hex(s->at[i]))
                        return false;
        s->at += 5;
        return true;
}

static bool scan_string(Scanner *s)
{
        if (!take(s, '"'))
                return false;
        while (s->at < s->end) {
                unsigned char c = (unsigned char) *s->at;

                if (c == '"') {
                        s->at++;
                        return true;
                }
                if (c == '\\') {
                        s->at++;
                        if (!scan_escape(s))
                                return false;
                } else if (c >= 0x80) {
                        size_t length = utf8_length(s->at, (size_t) (s->end - s->at));
                        if (length == 0)
                                return false;
                        s->at += length;
                } else if (c < 0x20) {
                        return false;
                } else {
                        s->at++;
                }
        }
        return false;
}

static bool scan_digits(Scanner *s)
{
        const char *begin = s->at;

        while (s->at < s->end && *s->at >= '0' && *s->at <= '9')
                s->at++;
        return s->at > begin;
}

static bool scan_number(Scanner *s)
{
        (void) take(s, '-');
        if (!take(s, '0') && !scan_digits(s))
                return false;
        if (take(s, '.') && !scan_digits(s))
                return false;
        if (take(s, 'e') || take(s, 'E')) {
                if (!take(s, '+'))
                        (void) take(s, '-');
                return scan_digits(s);
        }
        return true;
}

static bool scan_word(Scanner *s, const char *word)
{
        size_t length = strlen(word);

        if ((size_t) (s->end - s->at) < length || memcmp(s->at, word, length) != 0)
                return false;
        s->at += length;
        return true;
}

static bool scan_plain(Scanner *s)
{
        if (s->at == s->end)
                return false;
        switch (*s->at) {
        case '"':
                return scan_string(s);
        case 't':
                return scan_word(s, "true");
        case 'f':
                return scan_word(s, "false");
        case 'n':
                return scan_word(s, "null");
        default:
                return scan_number(s);
        }
}

static bool scan_name(Scanner *s)
{
        skip_space(s);
        if (!scan_string(s))
                return false;
        skip_space(s);
        return take(s, ':');
}

/* The objects and arrays around the place that is looked at, the innermost last. */
typedef struct Nest {
        bool is_object[SCAN_MAX_DEPTH]; /* not set beyond depth */
        size_t depth;
} Nest;

/* Goes past the end of a value to where the next one begins. False: a fault, or, with depth 0, the end of the
 * outermost one. */
static bool leave_value(Scanner *s, Nest *nest)
{
        while (nest->depth > 0) {
                bool is_object = nest->is_object[nest->depth - 1];

                skip_space(s);
                if (take(s, ','))
                        return !is_object || scan_name(s);
                if (!take(s, is_object ? '}' : ']'))
                        return false;
                nest->depth--;
        }
        return false;
}

static bool scan_value(Scanner *s)
{
        Nest nest;

        nest.depth = 0;

        for (;;) {
                skip_space(s);
                if (next_is(s, '{') || next_is(s, '[')) {
                        bool is_object = *s->at == '{';

                        if (nest.depth == SCAN_MAX_DEPTH)
                                return false;
                        s->at++;
                        skip_space(s);
                        if (!take(s, is_object ? '}' : ']')) {
                                nest.is_object[nest.depth++] = is_object;
                                if (is_object && !scan_name(s))
                                        return false;
                                continue;
                        }
                } else if (!scan_plain(s)) {
                        return false;
                }
                if (!leave_value(s, &nest))
                        return nest.depth == 0;
        }
}

static bool scan_members(Scanner *s, ScanMember member, void *userdata)
{
        skip_space(s);
        if (!take(s, '{'))
                return false;
        skip_space(s);
        if (take(s, '}'))
                return true;
        do {
                JsonSpan name, value;

                skip_space(s);
                name.text = s->at;
                if (!scan_string(s))
                        return false;
                name.size = (size_t) (s->at - name.text);
                skip_space(s);
                if (!take(s, ':'))
                        return false;
                skip_space(s);
                value.text = s->at;
                if (!scan_value(s))
                        return false;
                value.size = (size_t) (s->at - value.text);
                member(name, value, userdata);
                skip_space(s);
        } while (take(s, ','));
        return take(s, '}');
}

int json_scan_object(const char *text, size_t size, ScanMember member, void *userdata, size_t *ret_at)
{
        Scanner s = { .at = text, .end = text + size };

        if (scan_members(&s, member, userdata)) {
                skip_space(&s);
                if (s.at == s.end)
                        return 0;
        }
        *ret_at = (size_t) (s.at - text);
        return -EINVAL;
}
