/* SPDX-License-Identifier: Apache-2.0 */
/* The query string of a request: known names, each at most once. Pure. Private to src/http. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "problem.h"

#define QUERY_MAX 8
#define QUERY_SIZE 1024 /* of the whole string as it came, its end included */
#define QUERY_VALUE_SIZE 128

typedef struct Query {
        const char *const *known;      /* the route's */
        const char *values[QUERY_MAX]; /* in the order of the known names, decoded; NULL: not given */
        char text[QUERY_SIZE];         /* as it came, what follows "?"; values point into it */
        bool too_long;
} Query;

/* Takes TEXT as it came (NULL: none); a longer one than QUERY_SIZE is for query_read() to refuse. */
void query_set(Query *query, const char *text);

/* Reads it; KNOWN ends with NULL and has at most QUERY_MAX names. 0, or -1 with PROBLEM filled in. QUERY must
 * stay where it is. */
int query_read(Query *query, const char *const *known, Problem *problem);

/* The value of NAME, one of those known; NULL: not given. */
const char *query_value(const Query *query, const char *name);

/* A time as RFC 3339 or in whole seconds since 1970, in nanoseconds; FALLBACK_NS when NAME is not given. */
int query_time(const Query *query, const char *name, int64_t fallback_ns, int64_t *ret_ns, Problem *problem);

/* A whole number in MIN..MAX; FALLBACK when NAME is not given. */
int query_number(const Query *query, const char *name, uint64_t min, uint64_t max, uint64_t fallback,
                 uint64_t *ret, Problem *problem);
