/* SPDX-License-Identifier: Apache-2.0 */
/* Reads iostat's JSON. A day of it is larger than memory should be, an endless run that was killed never
 * closes its brackets, some versions lose a comma or a bracket, and what people paste has other text around
 * it. So the document is not parsed: what is read are the innermost objects, one by one, and of them those
 * with a "disk_device". Knows base and jansson. */

#include "capture-json.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/text.h"

#include "number.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

void capture_json_init(JsonReader *reader, Rows *rows)
{
        *reader = (JsonReader){ .rows = rows };
}

/* ---- one row ---- */

#define NAME_KEY "\"disk_device\""

/* JSON is always printed with two decimals. */
#define JSON_ROUNDING 0.005

static int64_t scale_number(double value, double factor)
{
        double scaled = value * factor;

        if (!(fabs(scaled) < 9e18))
                return INT64_MAX;
        return llround(scaled);
}

/* The name of the device, of a row that need not be whole; NULL when it cannot be told. */
static const char *find_name(const char *object, size_t size, size_t *ret_size)
{
        const char *key = memmem(object, size, NAME_KEY, strlen(NAME_KEY)), *end = object + size;
        const char *p = key ? key + strlen(NAME_KEY) : end;

        while (p < end && (*p == ' ' || *p == ':' || *p == '\t'))
                p++;
        if (p == end || *p != '"')
                return NULL;
        const char *name = ++p;
        while (p < end && *p != '"' && *p != '\\' && !text_is_control(*p))
                p++;
        while (name < p && *name == ' ')
                name++;
        *ret_size = (size_t) (p - name);
        return p < end && *p == '"' && *ret_size > 0 && *ret_size < CAPTURE_NAME_SIZE ? name : NULL;
}

/* The object at hand is a row that cannot be read. */
static int take_damaged(JsonReader *reader, Damage damage)
{
        size_t size = 0;
        const char *name = find_name(reader->object, reader->size, &size);

        reader->n_damaged++;
        if (!name)
                return rows_mark_lost(reader->rows);
        int device = rows_device(reader->rows, name, size, false);
        if (device == -ENOSPC)
                return 0;
        return device < 0 ? device : rows_add_damaged(reader->rows, (uint32_t) device, damage);
}

/* A number, or a string of one, as some programs write it. */
static bool read_number(const json_t *value, double *ret)
{
        const char *text = json_string_value(value);
        Number number;

        if (!text) {
                *ret = json_number_value(value);
                return json_is_number(value);
        }
        if (!number_parse(text, strlen(text), SCALE_AWAIT_DIGITS, &number) || number.suffix ||
            strchr(text, ','))
                return false;
        *ret = (double) number.value / SCALE_AWAIT;
        return true;
}

/* Whether w_await alone has no decimals, so that it lost its mark. */
static bool lost_its_mark(json_t *disk)
{
        const json_t *w_await = json_object_get(disk, "w_await");
        const char *key = NULL;
        json_t *value = NULL;
        bool others = false;

        if (!json_is_integer(w_await))
                return false;
        json_object_foreach(disk, key, value)
        {
                others = others || json_is_real(value);
                if (json_is_integer(value) && value != w_await)
                        return false;
        }
        return others;
}

/* The figures of a row; false when one of them is no number. A null is as if it were not there. */
static bool read_figures(json_t *disk, Figures *ret)
{
        Figures f = { .if_sectors = 1 };
        const Column *column = NULL;

        if (lost_its_mark(disk))
                return false;
        for (size_t i = 0; (column = column_at(i)); i++) {
                if (column->role == COLUMN_OTHER || column->role == COLUMN_RKB ||
                    column->role == COLUMN_AVGRQ)
                        continue;
                const json_t *value = json_object_get(disk, column->name + (column->name[0] == '%'));
                if (!value || json_is_null(value))
                        continue;
                double number = 0;
                if (!read_number(value, &number))
                        return false;
                int64_t scale = column->role == COLUMN_W_AWAIT ? SCALE_AWAIT : SCALE_WKB;
                if (column->role == COLUMN_WKB)
                        f.if_sectors = column->kb > 1 ? 2048 : column->kb < 1 ? 1 : 2;
                figures_set(&f, column->role, scale_number(number, column->kb * (double) scale),
                            JSON_ROUNDING * column->kb);
        }
        /* Keys of the versions before and after those that print sectors. */
        f.surely_kb = json_object_get(disk, "svctm") || json_object_get(disk, "f/s");
        /* Of a device that wrote nothing, the other figure is known. */
        bool idle = !figures_have(&f, COLUMN_W_S) || f.value[COLUMN_W_S] == 0;
        if (idle && figures_have(&f, COLUMN_WKB) && f.value[COLUMN_WKB] == 0 &&
            !figures_have(&f, COLUMN_W_AWAIT))
                figures_set(&f, COLUMN_W_AWAIT, 0, JSON_ROUNDING);
        *ret = f;
        return true;
}

static int take_row(JsonReader *reader)
{
        json_error_t error;
        Figures figures;

        json_auto_t *disk = json_loadb(reader->object, reader->size, JSON_REJECT_DUPLICATES, &error);
        if (!disk && json_error_code(&error) == json_error_out_of_memory)
                return -ENOMEM;
        const char *name = json_string_value(json_object_get(disk, "disk_device"));
        bool group = name && name[0] == ' ';
        while (name && *name == ' ')
                name++;
        /* A name goes to terminals and logs: with control characters it is none. */
        for (const char *p = name; p && *p; p++)
                if (text_is_control(*p))
                        name = NULL;
        if (!name || !*name || strlen(name) >= CAPTURE_NAME_SIZE || !read_figures(disk, &figures))
                return take_damaged(reader, DAMAGE_CUT);
        int device = rows_device(reader->rows, name, strlen(name), group);
        if (device == -ENOSPC)
                return 0;
        return device < 0 ? device : rows_add(reader->rows, (uint32_t) device, &figures);
}

/* An object has ended, or another brace came before its end. */
static int take_object(JsonReader *reader, bool whole)
{
        bool row = memmem(reader->object, reader->size, NAME_KEY, strlen(NAME_KEY));

        reader->collecting = false;
        if (row)
                return reader->broken ? take_damaged(reader, DAMAGE_WRAPPED)
                       : whole        ? take_row(reader)
                                      : take_damaged(reader, DAMAGE_CUT);
        /* Which device's row it might have been is not known. */
        bool figures = memmem(reader->object, reader->size, "await", 5) ||
                       memmem(reader->object, reader->size, "/s\"", 3);
        return reader->broken && figures ? rows_mark_lost(reader->rows) : 0;
}

/* ---- the document ---- */

/* What else has an array of statistics, or is JSON about disks. */
static const struct {
        const char *key, *what;
} others[] = {
        { "disk-device", "sadf -j, which prints no w_await" },
        { "cpu-load", "mpstat" },
        { "sum-interrupts", "mpstat" },
        { "individual-interrupts", "mpstat" },
        { "process-and-context-switch", "sadf -j" },
        { "blockdevices", "lsblk" },
};

static bool word_is(const JsonReader *reader, const char *text)
{
        return reader->word_size == strlen(text) && memcmp(reader->word, text, reader->word_size) == 0;
}

/* A colon: the word before it is a key. */
static int take_key(JsonReader *reader)
{
        if (word_is(reader, "disk")) {
                reader->n_reports++;
                reader->rows->report++;
        } else if (word_is(reader, "disk_device")) {
                if (!reader->collecting) /* its brace was lost */
                        return rows_mark_lost(reader->rows);
        } else if (word_is(reader, "nodename"))
                reader->is_node = true;
        else
                for (size_t i = 0; !reader->other && i < ELEMENTSOF(others); i++)
                        if (word_is(reader, others[i].key))
                                reader->other = others[i].what;
        return 0;
}

/* A string has ended that is no key, or will turn out to be one. */
static void take_string(JsonReader *reader)
{
        if (!reader->is_node)
                return;
        reader->is_node = false;
        if (reader->has_node && !word_is(reader, reader->node))
                reader->other_node = true;
        if (!reader->has_node && reader->word_size < sizeof reader->node) {
                memcpy(reader->node, reader->word, reader->word_size);
                reader->node[reader->word_size] = '\0';
                reader->has_node = true;
        }
}

static void collect(JsonReader *reader, char c)
{
        if (!reader->collecting)
                return;
        if (reader->size == sizeof reader->object)
                reader->broken = true;
        else
                reader->object[reader->size++] = c;
        if (c != ' ' && c != '\t')
                reader->last = c;
}

static void follow_string(JsonReader *reader, char c)
{
        if (reader->escaped)
                reader->escaped = false;
        else if (c == '\\')
                reader->escaped = true;
        else if (c == '"') {
                reader->in_string = false;
                take_string(reader);
                return;
        }
        if (reader->word_size < sizeof reader->word)
                reader->word[reader->word_size++] = c;
}

/* What stands before the JSON of a line, with one 0 for any number: it is the same in every line. */
static void collect_lead(JsonReader *reader, char c)
{
        if ((unsigned char) c <= ' ' || reader->lead_size == sizeof reader->lead)
                return;
        if (c >= '0' && c <= '9') {
                c = '0';
                if (reader->lead_size > 0 && reader->lead[reader->lead_size - 1] == c)
                        return;
        }
        reader->lead[reader->lead_size++] = c;
}

/* What stands before the JSON of a line is complete. When the line before ended inside of a value, it may be
 * the rest of that. */
static void check_lead(JsonReader *reader)
{
        const char *lead = reader->lead;
        size_t size = reader->lead_size;
        const char *open = memchr(lead, '[', size), *close = memchr(lead, ']', size);
        bool usual = size == reader->usual_lead_size && memcmp(lead, reader->usual_lead, size) == 0;

        if (close && (!open || close < open))
                reader->broken = true; /* the array ends, but its object does not */
        else if (reader->last == ',' || reader->last == '{') {
                memcpy(reader->usual_lead, lead, size);
                reader->usual_lead_size = size;
        } else if (size > 0 && (!usual || (size == 1 && lead[0] == '0')))
                reader->broken = true;
        reader->lead_size = 0;
}

static int follow(JsonReader *reader, char c)
{
        switch (c) {
        case '"':
                reader->in_string = true;
                reader->word_size = 0;
                break;
        case ':': {
                int r = take_key(reader);
                reader->word_size = 0; /* that of a time is no key */
                return r;
        }
        case '{':
                reader->depth++;
                if (reader->collecting && reader->size > 1) {
                        reader->size--; /* the brace is of the next */
                        int r = take_object(reader, false);
                        if (r < 0)
                                return r;
                }
                reader->collecting = true;
                reader->broken = false;
                reader->object[0] = c;
                reader->size = 1;
                reader->last = c;
                break;
        case '[':
                reader->depth++;
                break;
        case ']':
        case '}':
                if (--reader->depth < 0) {
                        reader->depth = 0;
                        reader->lost_open = true;
                }
                return c == '}' && reader->collecting ? take_object(reader, true) : 0;
        default: /* white space, numbers, noise: nothing that has a structure */
                break;
        }
        return 0;
}

int capture_json_feed(JsonReader *reader, const char *data, size_t size)
{
        for (size_t i = 0; i < size; i++) {
                char c = data[i];

                if (reader->in_string) {
                        collect(reader, c);
                        follow_string(reader, c);
                        continue;
                }
                if (reader->line_begins && reader->collecting) {
                        if (c == '"' || c == '{' || c == '}') {
                                check_lead(reader);
                                reader->line_begins = false;
                        } else {
                                collect_lead(reader, c);
                                if (c != '[' && c != ']')
                                        continue;
                        }
                }
                if (!(reader->line_begins && reader->collecting))
                        collect(reader, c);
                int r = follow(reader, c);
                if (r < 0)
                        return r;
        }
        return 0;
}

void capture_json_end_line(JsonReader *reader)
{
        if (reader->in_string) {
                reader->in_string = false;
                reader->escaped = false;
                reader->broken = true; /* no string holds the end of a line */
        }
        if (reader->collecting && reader->lead_size > 0)
                check_lead(reader);
        collect(reader, ' ');
        reader->line_begins = true;
        reader->lead_size = 0;
}

bool capture_json_is_cut(const JsonReader *reader)
{
        return reader->depth > 0;
}
