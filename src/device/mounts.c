/* SPDX-License-Identifier: Apache-2.0 */
/* The mount that holds a path. libmount parses the lines; which of them may matter is decided here first, so
 * that a hostile table of any size costs one pass, and a NUL or a cut line only itself. */

#include "mounts.h"

#include "tierprobe/cleanup.h"

#include <errno.h>
#include <libmount.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

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

/* ---- which lines may matter ---- */

/* The next field of a line: blanks separate. Returns its length, 0 at the end. */
static size_t next_field(const char **p, const char *end)
{
        const char *start = *p;

        while (start < end && *start == ' ')
                start++;
        *p = start;
        while (start < end && *start != ' ')
                start++;
        return (size_t) (start - *p);
}

static bool is_number(const char *s, size_t size)
{
        size_t i = 0;

        while (i < size && s[i] >= '0' && s[i] <= '9')
                i++;
        return size > 0 && i == size;
}

static bool is_major_minor(const char *s, size_t size)
{
        const char *colon = memchr(s, ':', size);

        return colon && is_number(s, (size_t) (colon - s)) &&
               is_number(colon + 1, size - (size_t) (colon - s) - 1);
}

static bool is_octal(const char *s)
{
        return s[0] >= '0' && s[0] <= '3' && s[1] >= '0' && s[1] <= '7' && s[2] >= '0' && s[2] <= '7';
}

/* Whether directory NAME of LENGTH is PATH or above it. */
static bool holds(const char *name, size_t length, const char *path)
{
        if (length == 1 && name[0] == '/')
                return path[0] == '/';
        return strncmp(path, name, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

/* The same for a field that is still encoded. */
static bool field_holds(const char *field, size_t size, const char *path)
{
        const char *p = path;

        if (size == 1)
                return field[0] == '/' && path[0] == '/';
        for (size_t i = 0; i < size; p++) {
                char c = field[i++];
                if (c == '\\' && size - i >= 3 && is_octal(field + i)) {
                        c = (char) ((field[i] - '0') << 6 | (field[i + 1] - '0') << 3 | (field[i + 2] - '0'));
                        i += 3;
                }
                if (*p == '\0' || *p != c)
                        return false;
        }
        return size > 0 && (*p == '\0' || *p == '/');
}

/* Whether a line begins as mountinfo does, and mounts something on the way to PATH. */
static bool line_on_the_way(const char *line, size_t size, const char *path)
{
        const char *p = line, *end = line + size;
        size_t n;

        if (memchr(line, '\0', size))
                return false;
        for (int i = 0; i < 2; i++, p += n) { /* id, parent */
                n = next_field(&p, end);
                if (!is_number(p, n))
                        return false;
        }
        n = next_field(&p, end);
        if (!is_major_minor(p, n))
                return false;
        p += n;
        p += next_field(&p, end); /* root */
        n = next_field(&p, end);
        return field_holds(p, n, path);
}

/* Copies the lines that may matter, each with a newline (libmount leaks on a broken last line without). */
static int lines_on_the_way(const char *text, size_t size, const char *path, char **ret, size_t *ret_size)
{
        _cleanup_free_ char *lines = NULL;
        size_t used = 0, n = 0;

        for (const char *line = text, *end = text + size; line < end;) {
                const char *newline = memchr(line, '\n', (size_t) (end - line));
                size_t length = (size_t) ((newline ? newline : end) - line);
                if (line_on_the_way(line, length, path)) {
                        if (++n > MOUNTS_ON_THE_WAY_MAX)
                                return -E2BIG;
                        char *grown = realloc(lines, used + length + 1);
                        if (!grown)
                                return -ENOMEM;
                        lines = grown;
                        memcpy(lines + used, line, length);
                        lines[used + length] = '\n';
                        used += length + 1;
                }
                line += length + 1;
        }
        *ret = TAKE_PTR(lines);
        *ret_size = used;
        return 0;
}

/* ---- the walk ---- */

static void mnt_unref_tablep(struct libmnt_table **table)
{
        mnt_unref_table(*table);
}

static void free_iterp(struct libmnt_iter **iter)
{
        mnt_free_iter(*iter);
}

static int pass_over(struct libmnt_table *table, const char *filename, int line)
{
        (void) table;
        (void) filename;
        (void) line;
        return 1;
}

static int parse_lines(char *lines, size_t size, struct libmnt_table **ret)
{
        _cleanup_(mnt_unref_tablep) struct libmnt_table *table = mnt_new_table();
        if (!table)
                return -ENOMEM;
        _cleanup_fclose_ FILE *stream = fmemopen(lines, size, "r");
        if (!stream)
                return -ENOMEM;
        if (mnt_table_set_parser_errcb(table, pass_over) < 0 ||
            mnt_table_parse_stream(table, stream, "mountinfo") < 0)
                return -ENOMEM; /* every other error has been passed over */
        *ret = TAKE_PTR(table);
        return 0;
}

/* A mount on the way, as far as the walk needs it. */
typedef struct Step {
        struct libmnt_fs *fs;
        int id, parent;
        size_t length;
        bool free_standing; /* its parent is not among them: behind the root of a chroot, or the root's own */
        bool taken;
} Step;

static int find_steps(struct libmnt_table *table, const char *path, Step **ret, size_t *ret_n)
{
        int n = mnt_table_get_nents(table);
        size_t n_steps = 0;
        struct libmnt_fs *fs;

        _cleanup_free_ Step *steps = calloc(n > 0 ? (size_t) n : 1, sizeof *steps);
        _cleanup_(free_iterp) struct libmnt_iter *iter = mnt_new_iter(MNT_ITER_FORWARD);
        if (!steps || !iter)
                return -ENOMEM;
        while (mnt_table_next_fs(table, iter, &fs) == 0) {
                const char *target = mnt_fs_get_target(fs);
                if (target && mnt_fs_get_fstype(fs) && holds(target, strlen(target), path))
                        steps[n_steps++] = (Step){
                                .fs = fs,
                                .id = mnt_fs_get_id(fs),
                                .parent = mnt_fs_get_parent_id(fs),
                                .length = strlen(target),
                        };
        }

        /* A parent that is mounted deeper than its child is no parent: the numbers are not to be trusted. */
        for (size_t i = 0; i < n_steps; i++) {
                steps[i].free_standing = true;
                for (size_t j = 0; j < n_steps && steps[i].free_standing; j++)
                        if (steps[j].id == steps[i].parent && j != i && steps[j].length <= steps[i].length)
                                steps[i].free_standing = false;
        }
        *ret = TAKE_PTR(steps);
        *ret_n = n_steps;
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

static char *copy_text(const char *text)
{
        return strdup(text ? text : "");
}

/* mnt_unmangle() takes no empty text. */
static char *decode(const char *text)
{
        return text[0] != '\0' ? mnt_unmangle(text) : strdup("");
}

/* The last field of the line that became FS: libmount keeps it decoded only. */
static char *super_options_encoded(struct libmnt_fs *fs, const char *lines, size_t size)
{
        const char *decoded = mnt_fs_get_fs_options(fs);

        for (const char *line = lines, *end; decoded && line < lines + size; line = end + 1) {
                end = memchr(line, '\n', (size_t) (lines + size - line));
                if (strtol(line, NULL, 10) != mnt_fs_get_id(fs))
                        continue;
                const char *blank = memrchr(line, ' ', (size_t) (end - line));
                if (!blank)
                        continue;
                _cleanup_free_ char *field = strndup(blank + 1, (size_t) (end - blank) - 1);
                _cleanup_free_ char *plain = field ? decode(field) : NULL;
                if (!plain)
                        return NULL;
                if (strcmp(plain, decoded) == 0)
                        return TAKE_PTR(field);
        }
        return strdup("");
}

static int mount_from_fs(struct libmnt_fs *fs, const char *lines, size_t lines_size, Mount *ret)
{
        Mount mount = {
                .id = mnt_fs_get_id(fs),
                .major = major(mnt_fs_get_devno(fs)),
                .minor = minor(mnt_fs_get_devno(fs)),
                .mount_point = copy_text(mnt_fs_get_target(fs)),
                .root = copy_text(mnt_fs_get_root(fs)),
                .filesystem = copy_text(mnt_fs_get_fstype(fs)),
                .source = copy_text(mnt_fs_get_source(fs)),
                .options = copy_text(mnt_fs_get_vfs_options(fs)),
                .super_options = copy_text(mnt_fs_get_fs_options(fs)),
                .super_options_encoded = super_options_encoded(fs, lines, lines_size),
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
        _cleanup_free_ char *lines = NULL;
        _cleanup_(mnt_unref_tablep) struct libmnt_table *table = NULL;
        _cleanup_free_ Step *steps = NULL;
        size_t lines_size = 0, n_steps = 0;
        const Step *at = NULL;

        int r = lines_on_the_way(text, size, path, &lines, &lines_size);
        if (r < 0)
                return r;
        if (lines_size == 0)
                return -ENOENT;
        r = parse_lines(lines, lines_size, &table);
        if (r < 0)
                return r;
        r = find_steps(table, path, &steps, &n_steps);
        if (r < 0)
                return r;
        for (Step *next; (next = next_step(steps, n_steps, at)); at = next)
                next->taken = true;
        return at ? mount_from_fs(at->fs, lines, lines_size, ret) : -ENOENT;
}

int mount_option(const char *options_encoded, const char *name, char **ret)
{
        size_t n = strlen(name);

        for (const char *p = options_encoded; *p != '\0'; p += *p == ',') {
                size_t length = strcspn(p, ",");
                if (length > n && strncmp(p, name, n) == 0 && p[n] == '=') {
                        _cleanup_free_ char *value = strndup(p + n + 1, length - n - 1);
                        char *decoded = value ? decode(value) : NULL;
                        if (!decoded)
                                return -ENOMEM;
                        *ret = decoded;
                        return 0;
                }
                p += length;
        }
        return -ENOENT;
}
