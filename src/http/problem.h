/* SPDX-License-Identifier: Apache-2.0 */
/* Why a request is refused, as a plain value: status, stable code, sentence. Private to src/http. */
#pragma once

#include <stdbool.h>

#define PROBLEM_DETAIL_SIZE 512

typedef struct Problem {
        unsigned status;
        const char *code;            /* stable, part of the API */
        const char *allow;           /* for 405: the methods that would do; else NULL */
        const char *authenticate;    /* for 401: the challenge; else NULL */
        bool close;                  /* what follows on this connection cannot be trusted */
        unsigned long retry_after_s; /* 0: none */
        char detail[PROBLEM_DETAIL_SIZE];
} Problem;

/* Fills PROBLEM and returns -1, for `return problem_set(...)`. */
int problem_set(Problem *problem, unsigned status, const char *code, const char *format, ...)
        __attribute__((format(printf, 4, 5)));

/* The same, and the connection ends with the answer. */
int problem_set_closing(Problem *problem, unsigned status, const char *code, const char *detail);
