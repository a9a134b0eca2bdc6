/* SPDX-License-Identifier: Apache-2.0 */
/* Reading checked values out of a document. The first fault is kept in the reader, and everything after it
 * does nothing: the caller looks once, at the end. OBJECT may be NULL after a fault. Private to src/json. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "tierprobe/device.h"

typedef struct Reader {
        int error; /* 0, -EINVAL with a sentence in text, or -ENOMEM */
        char *text;
        size_t size; /* of text */
} Reader;

void reader_fail(Reader *reader, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The text under KEY, borrowed; NULL when it is null or missing (a fault unless NULLABLE) or no text. */
const char *read_string(Reader *reader, const json_t *object, const char *key, bool nullable);

/* Copies the text under KEY; null is empty, and what does not fit is cut between characters. */
void read_text(Reader *reader, const json_t *object, const char *key, char *buf, size_t size);

/* A copy of the text under KEY, NULL for null. Owned by the caller. */
char *read_text_or_null(Reader *reader, const json_t *object, const char *key);

/* The number under KEY; null and missing become NAN. */
void read_number(Reader *reader, const json_t *object, const char *key, double *ret);

/* The integer under KEY in 0..MAX. */
void read_u64(Reader *reader, const json_t *object, const char *key, uint64_t max, uint64_t *ret);

/* Seconds under KEY as nanoseconds; null and missing become 0. */
void read_ns_from_seconds(Reader *reader, const json_t *object, const char *key, uint64_t *ret);

/* RFC 3339 under KEY; null and missing become 0. */
void read_time(Reader *reader, const json_t *object, const char *key, int64_t *ret_real_ns);

/* 1, 0, or -1 for null and missing. */
int read_flag(Reader *reader, const json_t *object, const char *key);

/* The object under KEY; NULL when null or missing (a fault unless NULLABLE). */
const json_t *read_object(Reader *reader, const json_t *object, const char *key, bool nullable);

/* The array of at most MAX objects under KEY; NULL on a fault. */
const json_t *read_array(Reader *reader, const json_t *object, const char *key, size_t max);

/* What json_device() made, under the key "device". */
void read_device(Reader *reader, const json_t *object, Device **ret);
