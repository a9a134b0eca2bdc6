/* SPDX-License-Identifier: Apache-2.0 */
/* The query string of a request: known names, each at most once. Pure. Private to src/http. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "problem.h"

#define QUERY_MAX 4
#define QUERY_VALUE_SIZE 128

/* One "key=value" as it came, still percent-encoded; value NULL: there was no "=". */
typedef struct QueryPair {
        const char *key, *value;
} QueryPair;

/* Values in the order of the known names; NULL: not given. */
typedef struct Query {
        const char *values[QUERY_MAX];
        char texts[QUERY_MAX][QUERY_VALUE_SIZE];
} Query;

/* Reads PAIRS; KNOWN ends with NULL and has at most QUERY_MAX names. 0, or -1 with PROBLEM filled in. RET
 * must stay where it is: values point into it. */
int query_read(const char *const *known, const QueryPair *pairs, size_t n_pairs, Query *ret,
               Problem *problem);

/* A whole number in MIN..MAX; TEXT NULL gives FALLBACK. */
int query_number(const char *name, const char *text, uint64_t min, uint64_t max, uint64_t fallback,
                 uint64_t *ret, Problem *problem);
