/* SPDX-License-Identifier: Apache-2.0 */
/* Reads iostat's JSON. A day of it is larger than memory should be, and an endless run that was killed never
 * closes its brackets: so the document is followed by counting brackets, and only the elements of
 * "statistics" go to the parser, one by one. Knows base and jansson. */

#include "capture-json.h"

#include "tierprobe/cleanup.h"

#include "capture-text.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void report_init(ReportReader *reader, Rows *rows)
{
        *reader = (ReportReader){ .rows = rows };
}

void report_done(ReportReader *reader)
{
        free(reader->report);
}

/* ---- one report ---- */

/* JSON is always printed with two decimals. */
#define JSON_ROUNDING 0.005

static int64_t scale_number(const json_t *value, double factor)
{
        double scaled = json_number_value(value) * factor;

        if (!(fabs(scaled) < 9e18))
                return INT64_MAX;
        return llround(scaled);
}

/* The throughput under whichever of its names ("wkB/s", "wMB/s", ...); NULL when there is none. */
static const json_t *find_throughput(json_t *disk, double *ret_kb)
{
        const char *key = NULL;
        json_t *value = NULL;

        json_object_foreach(disk, key, value)
        {
                double kb = key[0] == 'w' ? text_unit_kb(key + 1, strlen(key + 1)) : 0;
                if (kb > 0) {
                        *ret_kb = kb;
                        return value;
                }
        }
        return NULL;
}

static int take_disk(Rows *rows, json_t *disk)
{
        const char *name = json_string_value(json_object_get(disk, "disk_device"));
        const json_t *w_await = json_object_get(disk, "w_await"), *w_s = json_object_get(disk, "w/s");
        bool group = name && name[0] == ' ';
        double kb = 0;

        if (!name)
                return 0;
        while (*name == ' ')
                name++;
        /* A name goes to terminals and logs: with control characters it is none. */
        for (const char *p = name; *p; p++)
                if ((unsigned char) *p < ' ' || *p == '\177')
                        return 0;
        if (!*name || strlen(name) >= CAPTURE_NAME_SIZE)
                return 0;
        int device = rows_device(rows, name, strlen(name), group);
        if (device == -ENOSPC)
                return 0;
        if (device < 0)
                return device;
        const json_t *wkb = find_throughput(disk, &kb);
        if (!wkb || !w_await) {
                rows_add_incomplete(rows, (uint32_t) device);
                return 0;
        }
        if (!json_is_number(wkb) || !json_is_number(w_await) || (w_s && !json_is_number(w_s)))
                return rows_add_damaged(rows, (uint32_t) device);
        RowFigures figures = { .wkb = scale_number(wkb, kb * SCALE_WKB),
                               .w_s = w_s ? scale_number(w_s, SCALE_WKB) : 0,
                               .w_await = scale_number(w_await, SCALE_AWAIT),
                               .wkb_rounding = JSON_ROUNDING * kb,
                               .w_await_rounding = JSON_ROUNDING };
        return rows_add(rows, (uint32_t) device, &figures);
}

static int take_report(ReportReader *reader)
{
        json_error_t error;
        size_t i = 0;
        json_t *disk = NULL;

        reader->rows->report++;
        reader->n_reports++;
        json_auto_t *report = json_loadb(reader->report, reader->size, JSON_DECODE_INT_AS_REAL, &error);
        if (!report) {
                if (json_error_code(&error) == json_error_out_of_memory)
                        return -ENOMEM;
                reader->n_damaged++;
                return 0;
        }
        json_array_foreach(json_object_get(report, "disk"), i, disk)
        {
                int r = take_disk(reader->rows, disk);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* ---- the document ---- */

static int keep(ReportReader *reader, const char *data, size_t size)
{
        if (reader->oversized || size > CAPTURE_MAX_REPORT - reader->size) {
                reader->oversized = true;
                return 0;
        }
        if (size > reader->allocated - reader->size) {
                size_t wanted = reader->allocated ? reader->allocated : 8192;
                while (wanted - reader->size < size)
                        wanted *= 2;
                char *grown = realloc(reader->report, wanted);
                if (!grown)
                        return -ENOMEM;
                reader->report = grown;
                reader->allocated = wanted;
        }
        memcpy(reader->report + reader->size, data, size);
        reader->size += size;
        return 0;
}

/* A character outside of reports. Returns whether a report begins with it. */
static bool follow(ReportReader *reader, char c)
{
        if (reader->in_string) {
                if (reader->escaped)
                        reader->escaped = false;
                else if (c == '\\')
                        reader->escaped = true;
                else if (c == '"')
                        reader->in_string = false;
                else if (reader->key_size < sizeof reader->key)
                        reader->key[reader->key_size++] = c;
                return false;
        }
        switch (c) {
        case '"':
                reader->in_string = true;
                reader->key_size = 0;
                reader->key_done = false;
                break;
        case ':':
                reader->key_done = true;
                break;
        case ',':
                reader->key_done = false;
                break;
        case '[':
        case '{':
                if (reader->state == REPORT_LIST && c == '{')
                        return true;
                reader->depth++;
                if (c == '[' && reader->key_done && reader->key_size == strlen("statistics") &&
                    memcmp(reader->key, "statistics", reader->key_size) == 0) {
                        reader->state = REPORT_LIST;
                        reader->list_depth = reader->depth;
                }
                reader->key_done = false;
                break;
        case ']':
        case '}':
                if (reader->state == REPORT_LIST && reader->depth == reader->list_depth)
                        reader->state = REPORT_OUTSIDE;
                if (reader->depth > 0 && --reader->depth == 0)
                        reader->closed = true;
                break;
        default: /* white space, numbers, noise: nothing that has a structure */
                break;
        }
        return false;
}

/* Where the report that DATA continues ends: the number of bytes that belong to it. */
static size_t find_end(ReportReader *reader, const char *data, size_t size, bool *ret_ended)
{
        for (size_t i = 0; i < size; i++) {
                char c = data[i];

                if (reader->in_string) {
                        if (reader->escaped)
                                reader->escaped = false;
                        else if (c == '\\')
                                reader->escaped = true;
                        else if (c == '"')
                                reader->in_string = false;
                } else if (c == '"')
                        reader->in_string = true;
                else if (c == '{' || c == '[')
                        reader->depth++;
                else if ((c == '}' || c == ']') && --reader->depth == reader->list_depth) {
                        *ret_ended = true;
                        return i + 1;
                }
        }
        return size;
}

int report_feed(ReportReader *reader, const char *data, size_t size)
{
        for (size_t i = 0; i < size;) {
                if (reader->state != REPORT_INSIDE) {
                        reader->closed = false;
                        if (!follow(reader, data[i])) {
                                i++;
                                continue;
                        }
                        reader->state = REPORT_INSIDE;
                        reader->size = 0;
                        reader->oversized = false;
                }
                bool ended = false;
                size_t part = find_end(reader, data + i, size - i, &ended);
                int r = keep(reader, data + i, part);
                if (r >= 0 && ended) {
                        reader->state = REPORT_LIST;
                        if (reader->oversized) {
                                reader->n_oversized++;
                                reader->rows->report++;
                        } else
                                r = take_report(reader);
                }
                if (r < 0)
                        return r;
                i += part;
        }
        return 0;
}

bool report_is_cut(const ReportReader *reader)
{
        return reader->depth > 0 || reader->in_string || reader->state != REPORT_OUTSIDE;
}
