/* SPDX-License-Identifier: Apache-2.0 */
/* The query string of a request. A misspelt parameter must not be silently ignored: "?taget=x" would start
 * a run on every target. */

#include "query.h"

#include "tierprobe/units.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int hex_digit(char c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        if (c >= 'a' && c <= 'f')
                return c - 'a' + 10;
        if (c >= 'A' && c <= 'F')
                return c - 'A' + 10;
        return -1;
}

static int percent_decode(const char *text, char *out, size_t size)
{
        size_t at = 0;

        for (; *text; text++) {
                char c = *text;

                if (c == '%') {
                        int high = hex_digit(text[1]);
                        int low = high < 0 ? -1 : hex_digit(text[2]);
                        if (low < 0)
                                return -EINVAL;
                        c = (char) (high * 16 + low);
                        text += 2;
                }
                /* No value of ours holds a control character, and a NUL would cut it. */
                if ((unsigned char) c < 0x20 || at + 1 >= size)
                        return -EINVAL;
                out[at++] = c;
        }
        out[at] = '\0';
        return 0;
}

static int unknown_parameter(const char *const *known, Problem *problem)
{
        char names[128] = "";
        size_t length = 0;

        for (size_t i = 0; known[i]; i++)
                length += (size_t) snprintf(names + length, sizeof names - length, "%s%s", i ? ", " : "",
                                            known[i]);
        if (!known[0])
                return problem_set(problem, 400, "unknown_parameter", "this route takes no parameters");
        return problem_set(problem, 400, "unknown_parameter", "the parameters of this route are: %s", names);
}

int query_read(const char *const *known, const QueryPair *pairs, size_t n_pairs, Query *ret, Problem *problem)
{
        memset(ret->values, 0, sizeof ret->values);
        for (size_t p = 0; p < n_pairs; p++) {
                size_t k = 0;

                while (known[k] && strcmp(known[k], pairs[p].key) != 0)
                        k++;
                if (!known[k])
                        return unknown_parameter(known, problem);
                if (ret->values[k])
                        return problem_set(problem, 400, "duplicate_parameter", "\"%s\" is given twice",
                                           known[k]);
                if (!pairs[p].value || !*pairs[p].value ||
                    percent_decode(pairs[p].value, ret->texts[k], sizeof ret->texts[k]) < 0)
                        return problem_set(problem, 400, "bad_parameter", "\"%s\" has no valid value",
                                           known[k]);
                ret->values[k] = ret->texts[k];
        }
        return 0;
}

int query_number(const char *name, const char *text, uint64_t min, uint64_t max, uint64_t fallback,
                 uint64_t *ret, Problem *problem)
{
        uint64_t value = fallback;

        if (text && (parse_u64(text, &value) < 0 || value < min || value > max))
                return problem_set(problem, 400, "bad_parameter",
                                   "\"%s\" is a whole number from %" PRIu64 " to %" PRIu64, name, min, max);
        *ret = value;
        return 0;
}
