/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded machines for tests: unpacked as the kernel would show them. */

#include "device-tree.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/file.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* Creates the directories above the last component of PATH. */
static void make_parents(int root_fd, const char *path)
{
        char part[512];

        for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
                snprintf(part, sizeof part, "%.*s", (int) (slash - path), path);
                if (mkdirat(root_fd, part, 0755) < 0 && errno != EEXIST)
                        err(1, "%s", part);
        }
}

static void write_line(int root_fd, const char *path, const char *text, bool append)
{
        make_parents(root_fd, path);
        int fd = openat(root_fd, path, O_WRONLY | O_CREAT | (append ? O_APPEND : O_TRUNC) | O_CLOEXEC, 0644);
        if (fd < 0 || dprintf(fd, "%s\n", text) < 0)
                err(1, "%s", path);
        close(fd);
}

static void make_link(int root_fd, const char *path, const char *target)
{
        make_parents(root_fd, path);
        if (symlinkat(target, root_fd, path) < 0)
                err(1, "%s", path);
}

/* A device at DIR with what the kernel always has. KIND is 'b', 'p' or 'h', see README. */
static void make_device(int root_fd, char kind, const char *dir, const char *number)
{
        const char *name = strrchr(dir, '/') + 1;
        char path[512], target[512];

        snprintf(path, sizeof path, "sys/%s/uevent", dir);
        write_line(root_fd, path, "", false);
        snprintf(target, sizeof target, "../../%s", dir);
        snprintf(path, sizeof path, "sys/class/block/%s", name);
        make_link(root_fd, path, target);
        if (kind != 'p') {
                snprintf(target, sizeof target, "../%s", dir);
                snprintf(path, sizeof path, "sys/block/%s", name);
                make_link(root_fd, path, target);
        } else {
                snprintf(path, sizeof path, "sys/%s/partition", dir);
                write_line(root_fd, path, "1", false);
        }
        if (kind != 'h') {
                snprintf(path, sizeof path, "sys/%s/dev", dir);
                write_line(root_fd, path, number, false);
                snprintf(target, sizeof target, "../../%s", dir);
                snprintf(path, sizeof path, "sys/dev/block/%s", number);
                make_link(root_fd, path, target);
        }
}

typedef struct Unpacking {
        int root_fd;
        char dir[300];  /* where indented lines go as "NAME = VALUE" */
        char text[300]; /* or the file they are lines of */
} Unpacking;

static void unpack_indented(Unpacking *u, char *line)
{
        char path[700], *split;

        if (u->text[0] != '\0')
                write_line(u->root_fd, u->text, line, true);
        else if ((split = strstr(line, " = "))) {
                *split = '\0';
                snprintf(path, sizeof path, "%s/%s", u->dir, line);
                write_line(u->root_fd, path, split + 3, false);
        } else if ((split = strstr(line, " -> "))) {
                *split = '\0';
                snprintf(path, sizeof path, "%s/%s", u->dir, line);
                make_link(u->root_fd, path, split + 4);
        } else if (line[strlen(line) - 1] == '/') {
                snprintf(path, sizeof path, "%s/%s", u->dir, line);
                make_parents(u->root_fd, path);
        } else
                errx(1, "what is this line? %s", line);
}

/* Returns false when the line is no directive. */
static bool unpack_directive(Unpacking *u, char *line)
{
        char dir[256], number[32] = "";
        char *end = strstr(line, " <<");

        u->dir[0] = u->text[0] = '\0';
        if (sscanf(line, "block %255s %31s", dir, number) == 2)
                make_device(u->root_fd, 'b', dir, number);
        else if (sscanf(line, "part %255s %31s", dir, number) == 2)
                make_device(u->root_fd, 'p', dir, number);
        else if (sscanf(line, "hidden %255s", dir) == 1)
                make_device(u->root_fd, 'h', dir, number);
        else if (line[0] == '@') {
                snprintf(u->dir, sizeof u->dir, "%s", line + 1);
                return true;
        } else if (end) {
                snprintf(u->text, sizeof u->text, "%.*s", (int) (end - line), line);
                return true;
        } else
                return false;
        snprintf(u->dir, sizeof u->dir, "sys/%s", dir);
        return true;
}

void tree_unpack(Tree *tree, const char *file)
{
        const char *tmp = getenv("TMPDIR");
        _cleanup_free_ char *line = NULL;
        size_t size = 0;
        bool skip = false;

        snprintf(tree->root, sizeof tree->root, "%s/tierprobe-device-XXXXXX", tmp ? tmp : "/tmp");
        if (!mkdtemp(tree->root))
                err(1, "%s", tree->root);
        tree->proc = path_format("%s/proc", tree->root);
        tree->sys = path_format("%s/sys", tree->root);

        _cleanup_close_ int root_fd = open(tree->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
        _cleanup_fclose_ FILE *f = fopen(file, "re");
        if (!tree->proc || !tree->sys || root_fd < 0 || !f)
                err(1, "%s", file);
        Unpacking u = { .root_fd = root_fd };
        for (ssize_t n; (n = getline(&line, &size, f)) > 0;) {
                line[n - 1] = '\0';
                if (line[0] == '#')
                        continue;
                if (strncmp(line, "  ", 2) == 0) {
                        if (!skip)
                                unpack_indented(&u, line + 2);
                } else {
                        skip = line[0] == '?';
                        if (!skip && !unpack_directive(&u, line))
                                errx(1, "%s: what is this line? %s", file, line);
                }
        }
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
        (void) st;
        (void) type;
        (void) ftw;
        return remove(path);
}

void tree_remove(Tree *tree)
{
        if (nftw(tree->root, remove_one, 16, FTW_DEPTH | FTW_PHYS) < 0)
                err(1, "%s", tree->root);
        free(tree->proc);
        free(tree->sys);
}

static void parse_question(const char *line, Question *q)
{
        const char *device = strstr(line, " device="), *dev = strstr(line, " dev=");
        const char *end = device ? device : dev ? dev : line + strlen(line);
        unsigned int ma, mi;

        snprintf(q->path, sizeof q->path, "%.*s", (int) (end - line - 2), line + 2);
        if (device && sscanf(device, " device=%127s", q->device) != 1)
                errx(1, "what is this question? %s", line);
        if (dev && sscanf(dev, " dev=%9u:%9u", &ma, &mi) != 2)
                errx(1, "what is this question? %s", line);
        if (dev)
                q->dev = makedev(ma, mi);
}

bool tree_question(FILE *file, unsigned *line_number, Question *ret)
{
        _cleanup_free_ char *line = NULL, *expected = NULL;
        size_t size = 0, expected_size = 0;
        Question q = {};
        long before = ftell(file);

        FILE *lines = open_memstream(&expected, &expected_size);
        if (!lines)
                err(1, "open_memstream");
        while (getline(&line, &size, file) > 0) {
                if (line[0] == '?' && q.line > 0) {
                        (void) fseek(file, before, SEEK_SET);
                        break;
                }
                before = ftell(file);
                ++*line_number;
                if (line[0] == '?') {
                        q.line = *line_number;
                        line[strcspn(line, "\n")] = '\0';
                        parse_question(line, &q);
                } else if (q.line > 0 && strncmp(line, "  ", 2) == 0)
                        fputs(line + 2, lines);
        }
        fclose(lines);
        if (q.line == 0)
                return false;
        q.expected = TAKE_PTR(expected);
        *ret = q;
        return true;
}
