/* SPDX-License-Identifier: Apache-2.0 */
/* The query string of a request. A misspelt parameter must not be silently ignored: "?taget=x" would start
 * a run on every target. */

#include "query.h"

#include "tierprobe/clock.h"
#include "tierprobe/units.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <stdio.h>
#include <string.h>

/* Decodes TEXT where it stands. "+" is itself, as in RFC 3986: a time may have one, and no value has a blank.
 */
static int percent_decode(char *text)
{
        /* The library leaves a malformed escape as it is, without an error. */
        for (const char *p = text; (p = strchr(p, '%')); p++)
                if (!isxdigit((unsigned char) p[1]) || !isxdigit((unsigned char) p[2]))
                        return -EINVAL;
        size_t length = MHD_http_unescape(text);
        /* No value of ours holds a control character, and a NUL would cut it. */
        for (size_t i = 0; i < length; i++)
                if ((unsigned char) text[i] < 0x20)
                        return -EINVAL;
        return 0;
}

static int unknown_parameter(const char *const *known, Problem *problem)
{
        char names[128] = "";
        size_t length = 0;

        for (size_t i = 0; known[i] && length < sizeof names; i++)
                length += (size_t) snprintf(names + length, sizeof names - length, "%s%s", i ? ", " : "",
                                            known[i]);
        if (!known[0])
                return problem_set(problem, 400, "unknown_parameter", "this route takes no parameters");
        return problem_set(problem, 400, "unknown_parameter", "the parameters of this route are: %s", names);
}

void query_set(Query *query, const char *text)
{
        size_t length = text ? strlen(text) : 0;

        query->too_long = length >= sizeof query->text;
        if (query->too_long)
                length = 0;
        if (length > 0)
                memcpy(query->text, text, length);
        query->text[length] = '\0';
}

static int take_parameter(Query *query, const char *const *known, char *key, Problem *problem)
{
        char *value = strchr(key, '=');
        size_t k = 0;

        if (value)
                *value++ = '\0';
        while (known[k] && strcmp(known[k], key) != 0)
                k++;
        if (!known[k])
                return unknown_parameter(known, problem);
        if (query->values[k])
                return problem_set(problem, 400, "duplicate_parameter", "\"%s\" is given twice", known[k]);
        if (!value || !*value || percent_decode(value) < 0 || strlen(value) >= QUERY_VALUE_SIZE)
                return problem_set(problem, 400, "bad_parameter", "\"%s\" has no valid value", known[k]);
        query->values[k] = value;
        return 0;
}

int query_read(Query *query, const char *const *known, Problem *problem)
{
        query->known = known;
        memset(query->values, 0, sizeof query->values);
        if (query->too_long)
                return problem_set(problem, 414, "query_too_long",
                                   "the query string may have at most %zu bytes", sizeof query->text - 1);
        for (char *key = query->text, *next = NULL; key && *key; key = next) {
                next = strchr(key, '&');
                if (next)
                        *next++ = '\0';
                if (take_parameter(query, known, key, problem) < 0)
                        return -1;
        }
        return 0;
}

const char *query_value(const Query *query, const char *name)
{
        size_t k = 0;

        while (query->known[k] && strcmp(query->known[k], name) != 0)
                k++;
        assert(query->known[k]);
        return query->known[k] ? query->values[k] : NULL;
}

int query_number(const Query *query, const char *name, uint64_t min, uint64_t max, uint64_t fallback,
                 uint64_t *ret, Problem *problem)
{
        const char *text = query_value(query, name);
        uint64_t value = fallback;

        if (text && (parse_u64(text, &value) < 0 || value < min || value > max))
                return problem_set(problem, 400, "bad_parameter",
                                   "\"%s\" is a whole number from %" PRIu64 " to %" PRIu64, name, min, max);
        *ret = value;
        return 0;
}

int query_time(const Query *query, const char *name, int64_t fallback_ns, int64_t *ret_ns, Problem *problem)
{
        const char *text = query_value(query, name);
        uint64_t seconds = 0;

        *ret_ns = fallback_ns;
        if (!text || rfc3339_parse(text, ret_ns) >= 0)
                return 0;
        if (query_number(query, name, 0, INT64_MAX / NS_PER_S, 0, &seconds, problem) < 0)
                return problem_set(problem, 400, "bad_parameter",
                                   "\"%s\" is a time such as 2026-12-01T02:00:00Z, or in seconds since 1970; "
                                   "at the latest in 2262",
                                   name);
        *ret_ns = (int64_t) (seconds * NS_PER_S);
        return 0;
}
