/* SPDX-License-Identifier: Apache-2.0 */
/* Text into HTML, and figures out of JSON. Inside the page room. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

/* TEXT for content and quoted attributes; NULL prints an en dash. Control characters become U+FFFD. */
void html_text(FILE *out, const char *text);

/* Members of a document that may hold anything. Text: NULL when it is none. Number: NAN. */
const char *page_text_at(const json_t *object, const char *key);
double page_number_at(const json_t *object, const char *key);
bool page_true_at(const json_t *object, const char *key);

/* A value with about four significant digits, or an en dash; UNIT may be NULL. */
void html_figure(FILE *out, double value, const char *unit);

/* A whole number, or an en dash. */
void html_count(FILE *out, double value);

/* Seconds as "4 min", bytes as "10.5 GB" (10^9, as throughput is read). */
void html_seconds(FILE *out, double seconds);
void html_bytes(FILE *out, double bytes);

/* <time> with the RFC 3339 text of a member, or an en dash. */
void html_time(FILE *out, const char *rfc3339);

/* The word and shape of a verdict: never colour alone. VERDICT may be anything. */
void html_verdict(FILE *out, const char *verdict, bool warning);

/* A class name for a verdict, of a fixed set: "pass", "warning", "fail", "inconclusive", "never_run". */
const char *html_verdict_class(const char *verdict, bool warning);

/* The <ul> of reasons, if there are any. */
void html_reasons(FILE *out, const json_t *reasons);
