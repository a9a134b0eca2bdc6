/* SPDX-License-Identifier: Apache-2.0 */
/* The mount that holds a path. A table is gone through once, whatever its size, and a NUL or a cut line costs
 * only itself. Not by libmount: it decodes a file system's options before they can be told apart, and
 * replaces
 * "/dev/root" by what this machine, not the table's, calls so. */

#include "mounts.h"

#include "tierprobe/cleanup.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MOUNTS_ON_THE_WAY_MAX 4096

void mount_done(Mount *mount)
{
        free(mount->mount_point);
        free(mount->root);
        free(mount->filesystem);
        free(mount->source);
        free(mount->options);
        free(mount->super_options);
        free(mount->super_options_encoded);
        *mount = (Mount){};
}

/* ---- lines ---- */

/* A part of the table, still encoded (\040 is a blank). */
typedef struct Field {
        const char *text;
        size_t size;
} Field;

/* One line: "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAG...] - TYPE SOURCE SUPER-OPTIONS". */
typedef struct Line {
        int id, parent;
        uint32_t major, minor;
        Field root, point, options, filesystem, source, super_options;
} Line;

/* Takes the next field: blanks separate. It is empty at the end. */
static Field next_field(Field *rest)
{
        Field field = { .text = rest->text };

        while (rest->size > 0 && *rest->text == ' ')
                rest->text++, rest->size--;
        field.text = rest->text;
        while (rest->size > 0 && *rest->text != ' ')
                rest->text++, rest->size--;
        field.size = (size_t) (rest->text - field.text);
        return field;
}

/* Takes what comes before one blank, or the end: the source of a mount may be empty. */
static Field next_field_or_none(Field *rest)
{
        if (rest->size > 0) /* the blank before it */
                rest->text++, rest->size--;
        if (rest->size > 0 && *rest->text == ' ')
                return (Field){ .text = rest->text };
        return next_field(rest);
}

static bool take_number(Field *field, uint64_t max, uint64_t *ret)
{
        uint64_t value = 0;
        size_t n = 0;

        for (; n < field->size && field->text[n] >= '0' && field->text[n] <= '9'; n++) {
                value = value * 10 + (uint64_t) (field->text[n] - '0');
                if (value > max)
                        return false;
        }
        field->text += n;
        field->size -= n;
        *ret = value;
        return n > 0;
}

static bool take_numbers(Field *rest, Line *line)
{
        uint64_t id, parent, major, minor;
        Field first = next_field(rest), second = next_field(rest), device = next_field(rest);

        if (!take_number(&first, INT_MAX, &id) || first.size > 0 || !take_number(&second, INT_MAX, &parent) ||
            second.size > 0 || !take_number(&device, UINT32_MAX, &major) || device.size == 0 ||
            *device.text != ':')
                return false;
        device.text++, device.size--;
        if (!take_number(&device, UINT32_MAX, &minor) || device.size > 0)
                return false;
        line->id = (int) id;
        line->parent = (int) parent;
        line->major = (uint32_t) major;
        line->minor = (uint32_t) minor;
        return true;
}

static bool parse_line(const char *text, size_t size, Line *ret)
{
        Field rest = { .text = text, .size = size }, tag;
        Line line = { .id = 0 };

        if (memchr(text, '\0', size) || !take_numbers(&rest, &line))
                return false;
        line.root = next_field(&rest);
        line.point = next_field(&rest);
        line.options = next_field(&rest);
        do
                tag = next_field(&rest);
        while (tag.size > 0 && !(tag.size == 1 && *tag.text == '-'));
        line.filesystem = next_field(&rest);
        line.source = next_field_or_none(&rest);
        line.super_options = next_field(&rest); /* "rw" or "ro" at the least: without it the line is cut */
        if (line.filesystem.size == 0 || line.super_options.size == 0)
                return false;
        *ret = line;
        return true;
}

static bool is_octal(const char *s)
{
        return s[0] >= '0' && s[0] <= '3' && s[1] >= '0' && s[1] <= '7' && s[2] >= '0' && s[2] <= '7';
}

/* Takes the next character of a field. */
static char next_char(Field *rest)
{
        char c = *rest->text++;

        rest->size--;
        if (c == '\\' && rest->size >= 3 && is_octal(rest->text)) {
                c = (char) ((rest->text[0] - '0') << 6 | (rest->text[1] - '0') << 3 | (rest->text[2] - '0'));
                rest->text += 3;
                rest->size -= 3;
        }
        return c;
}

/* The caller's, free(). An encoded NUL ends it. NULL: out of memory. */
static char *decode(Field field)
{
        char *text = malloc(field.size + 1), *out = text;

        while (text && field.size > 0)
                *out++ = next_char(&field);
        if (text)
                *out = '\0';
        return text;
}

/* Whether the directory that is encoded in FIELD is PATH or above it; RET_LENGTH gets how long it is. */
static bool field_holds(Field field, const char *path, size_t *ret_length)
{
        const char *p = path;

        if (field.size == 1 && field.text[0] == '/') {
                *ret_length = 1;
                return path[0] == '/';
        }
        if (field.size == 0)
                return false;
        for (; field.size > 0; p++)
                if (*p == '\0' || *p != next_char(&field))
                        return false;
        *ret_length = (size_t) (p - path);
        return *p == '\0' || *p == '/';
}

/* ---- the walk ---- */

/* A mount on the way. */
typedef struct Step {
        Line line;
        int id, parent;
        size_t length;      /* of its mount point */
        bool free_standing; /* its parent is not among them: behind the root of a chroot, or the root's own */
        bool taken;
} Step;

static int add_step(Step **steps, size_t *n, const Line *line, size_t length)
{
        if (*n >= MOUNTS_ON_THE_WAY_MAX)
                return -E2BIG;
        if ((*n & (*n - 1)) == 0) { /* grows at powers of two */
                Step *grown = reallocarray(*steps, *n > 0 ? *n * 2 : 1, sizeof *grown);
                if (!grown)
                        return -ENOMEM;
                *steps = grown;
        }
        (*steps)[(*n)++] = (Step){ .line = *line, .id = line->id, .parent = line->parent, .length = length };
        return 0;
}

static int find_steps(const char *text, size_t size, const char *path, Step **ret, size_t *ret_n)
{
        _cleanup_free_ Step *steps = NULL;
        size_t n = 0;

        for (const char *p = text, *end = text + size; p < end;) {
                const char *newline = memchr(p, '\n', (size_t) (end - p));
                size_t length = (size_t) ((newline ? newline : end) - p), point_length = 0;
                Line line;
                if (parse_line(p, length, &line) && field_holds(line.point, path, &point_length)) {
                        int r = add_step(&steps, &n, &line, point_length);
                        if (r < 0)
                                return r;
                }
                p += length + 1;
        }

        /* A parent that is mounted deeper than its child is no parent: the numbers are not to be trusted. */
        for (size_t i = 0; i < n; i++) {
                steps[i].free_standing = true;
                for (size_t j = 0; j < n && steps[i].free_standing; j++)
                        if (steps[j].id == steps[i].parent && j != i && steps[j].length <= steps[i].length)
                                steps[i].free_standing = false;
        }
        *ret = TAKE_PTR(steps);
        *ret_n = n;
        return 0;
}

/* What the kernel meets next on its way from AT (NULL: from nowhere). All candidates lie on one path, so the
 * shortest mount point is met first. */
static Step *next_step(Step *steps, size_t n, const Step *at)
{
        Step *next = NULL;

        for (size_t i = 0; i < n; i++) {
                Step *s = &steps[i];
                if (s->taken || (at && s->length < at->length))
                        continue;
                if (!s->free_standing && (!at || s->parent != at->id))
                        continue;
                if (!next || s->length <= next->length)
                        next = s;
        }
        return next;
}

static int mount_from_line(const Line *line, Mount *ret)
{
        Mount mount = {
                .id = line->id,
                .major = line->major,
                .minor = line->minor,
                .mount_point = decode(line->point),
                .root = decode(line->root),
                .filesystem = decode(line->filesystem),
                .source = decode(line->source),
                .options = decode(line->options),
                .super_options = decode(line->super_options),
                .super_options_encoded = strndup(line->super_options.text, line->super_options.size),
        };

        if (!mount.mount_point || !mount.root || !mount.filesystem || !mount.source || !mount.options ||
            !mount.super_options || !mount.super_options_encoded) {
                mount_done(&mount);
                return -ENOMEM;
        }
        *ret = mount;
        return 0;
}

int mounts_find(const char *text, size_t size, const char *path, Mount *ret)
{
        _cleanup_free_ Step *steps = NULL;
        const Step *at = NULL;
        size_t n_steps = 0;

        int r = find_steps(text, size, path, &steps, &n_steps);
        if (r < 0)
                return r;
        for (Step *next; (next = next_step(steps, n_steps, at)); at = next)
                next->taken = true;
        return at ? mount_from_line(&at->line, ret) : -ENOENT;
}

int mount_option(const char *options_encoded, const char *name, char **ret)
{
        size_t n = strlen(name);

        for (const char *p = options_encoded; *p != '\0'; p += *p == ',') {
                size_t length = strcspn(p, ",");
                if (length > n && strncmp(p, name, n) == 0 && p[n] == '=') {
                        char *decoded = decode((Field){ .text = p + n + 1, .size = length - n - 1 });
                        if (!decoded)
                                return -ENOMEM;
                        *ret = decoded;
                        return 0;
                }
                p += length;
        }
        return -ENOENT;
}
