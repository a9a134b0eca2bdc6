/* SPDX-License-Identifier: Apache-2.0 */
/* Text to values and back: sizes, durations, numbers. Knows libc.
 *
 * Every parser takes the whole text or refuses it: no trailing characters, no sign where none is meant,
 * no overflow. All return 0, -EINVAL (not of the form) or -ERANGE (does not fit). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decimal digits only, 0..UINT64_MAX. */
int parse_u64(const char *text, uint64_t *ret);

/* A finite decimal number with "." as decimal point, whatever the locale says. */
int parse_double(const char *text, double *ret);

/* The same rounded to the 15 digits that format_number() prints: what a double holds for certain, so that it
 * can be printed and read back to the very same. */
int parse_number(const char *text, double *ret);

/* "yes", "true", "on", "1" and their opposites, in any case. */
int parse_bool(const char *text, bool *ret);

/* A size in bytes: "4096", "1M", "1.5G", "1MiB"; suffixes B K M G T P are powers of 1024, and an
 * optional "B" or "iB" may follow them. */
int parse_size(const char *text, uint64_t *ret_bytes);

/* A duration: "20ms", "1s", "1h30m", "24h", "7d"; units ns us ms s m h d, each at most once and falling;
 * a bare number is refused, since nobody can tell what it counts. */
int parse_duration(const char *text, uint64_t *ret_ns);

#define FORMAT_SIZE 32

/* The shortest exact form that parse_size() reads back: "1M", "1536K", "4097". */
const char *format_size(char buf[FORMAT_SIZE], uint64_t bytes);

/* The shortest exact form that parse_duration() reads back: "24h", "1h30m", "250ms". */
const char *format_duration(char buf[FORMAT_SIZE], uint64_t ns);

/* At most 15 digits: "600", "0.9". */
const char *format_number(char buf[FORMAT_SIZE], double value);
