/* SPDX-License-Identifier: Apache-2.0 */
/* Reading checked values out of a document: types, ranges, bounded copies. */

#include "json-reader.h"

#include "tierprobe/clock.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void reader_fail(Reader *reader, const char *format, ...)
{
        va_list ap;

        if (reader->error)
                return;
        reader->error = -EINVAL;
        va_start(ap, format);
        (void) vsnprintf(reader->text, reader->size, format, ap);
        va_end(ap);
}

/* The member; NULL, and a fault unless NULLABLE, when it is null or missing. */
static const json_t *member(Reader *reader, const json_t *object, const char *key, bool nullable)
{
        if (reader->error)
                return NULL;
        const json_t *value = json_object_get(object, key);
        if (value && !json_is_null(value))
                return value;
        if (!nullable)
                reader_fail(reader, "\"%s\" is missing", key);
        return NULL;
}

const char *read_string(Reader *reader, const json_t *object, const char *key, bool nullable)
{
        const json_t *value = member(reader, object, key, nullable);

        if (value && !json_is_string(value))
                reader_fail(reader, "\"%s\" is not a text", key);
        return json_string_value(value);
}

void read_text(Reader *reader, const json_t *object, const char *key, char *buf, size_t size)
{
        const char *text = read_string(reader, object, key, true);
        size_t length = 0;

        /* Whole characters only: a cut one would not be UTF-8 any more. */
        for (size_t i = 0; text && i < size; i++) {
                if (((unsigned char) text[i] & 0xc0) != 0x80)
                        length = i;
                if (!text[i])
                        break;
        }
        if (length)
                memcpy(buf, text, length);
        buf[length] = '\0';
}

char *read_text_or_null(Reader *reader, const json_t *object, const char *key)
{
        const char *text = read_string(reader, object, key, true);

        if (!text)
                return NULL;
        char *copy = strdup(text);
        if (!copy && !reader->error)
                reader->error = -ENOMEM;
        return copy;
}

void read_number(Reader *reader, const json_t *object, const char *key, double *ret)
{
        const json_t *value = member(reader, object, key, true);

        if (value && !json_is_number(value))
                reader_fail(reader, "\"%s\" is not a number", key);
        *ret = value && json_is_number(value) ? json_number_value(value) : NAN;
}

void read_u64(Reader *reader, const json_t *object, const char *key, uint64_t max, uint64_t *ret)
{
        const json_t *value = member(reader, object, key, false);

        if (!value)
                return;
        if (!json_is_integer(value) || json_integer_value(value) < 0 ||
            (uint64_t) json_integer_value(value) > max)
                reader_fail(reader, "\"%s\" is not a whole number in its range", key);
        else
                *ret = (uint64_t) json_integer_value(value);
}

void read_ns_from_seconds(Reader *reader, const json_t *object, const char *key, uint64_t *ret)
{
        double seconds = NAN;

        read_number(reader, object, key, &seconds);
        if (isnan(seconds))
                return;
        /* Thirty years: far below what 64 bits of nanoseconds hold. */
        if (seconds < 0 || seconds > 1e9)
                reader_fail(reader, "\"%s\" is not a duration in seconds", key);
        else
                *ret = (uint64_t) llround(seconds * 1e9);
}

void read_time(Reader *reader, const json_t *object, const char *key, int64_t *ret_real_ns)
{
        const char *text = read_string(reader, object, key, true);

        if (text && rfc3339_parse(text, ret_real_ns) < 0)
                reader_fail(reader, "\"%s\" is not a time like 2026-11-30T13:14:05.123Z", key);
}

int read_flag(Reader *reader, const json_t *object, const char *key)
{
        const json_t *value = member(reader, object, key, true);

        if (!value)
                return -1;
        if (!json_is_boolean(value))
                reader_fail(reader, "\"%s\" is neither true nor false", key);
        return json_is_true(value);
}

const json_t *read_object(Reader *reader, const json_t *object, const char *key, bool nullable)
{
        const json_t *value = member(reader, object, key, nullable);

        if (value && !json_is_object(value)) {
                reader_fail(reader, "\"%s\" is not an object", key);
                return NULL;
        }
        return value;
}

const json_t *read_array(Reader *reader, const json_t *object, const char *key, size_t max)
{
        const json_t *array = member(reader, object, key, false);
        const json_t *item = NULL;
        size_t i = 0;

        if (!array)
                return NULL;
        if (!json_is_array(array) || json_array_size(array) > max) {
                reader_fail(reader, "\"%s\" is not a list of at most %zu", key, max);
                return NULL;
        }
        json_array_foreach(array, i, item) if (!json_is_object(item))
        {
                reader_fail(reader, "item %zu of \"%s\" is not an object", i, key);
                return NULL;
        }
        return array;
}
