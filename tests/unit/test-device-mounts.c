/* SPDX-License-Identifier: Apache-2.0 */
/* The mount that holds a path, against a model of the kernel's own walk over thousands of random trees. */

#include "mounts.h"

#include "tierprobe/cleanup.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* ---- a model: mounts stacked on (mount, path) pairs, as the kernel keeps them ---- */

enum { MOUNTS = 24 };

typedef struct Model {
        int parent[MOUNTS];
        char point[MOUNTS][64];
        int n;
} Model;

/* Goes component by component and steps into whatever is mounted there, like path lookup. */
static int model_walk(const Model *m, const char *path)
{
        int at = 0;

        for (size_t length = 1;; length += length > 1, length += strcspn(path + length, "/")) {
                char prefix[64];
                snprintf(prefix, sizeof prefix, "%.*s", (int) length, path);
                for (int i = 1; i < m->n; i++)
                        if (m->parent[i] == at && strcmp(m->point[i], prefix) == 0) {
                                at = i;
                                i = 0; /* something may be mounted on it in turn */
                        }
                if (path[length] == '\0')
                        return at;
        }
}

static void random_path(char path[64])
{
        static const char *const names[] = { "/a", "/b", "/ab", "/a b", "/b\\", "/c,d", "/#" };
        int depth = (int) (random() % 4);

        size_t used = (size_t) snprintf(path, 64, "%s", depth ? "" : "/");
        while (depth-- > 0)
                used += (size_t) snprintf(path + used, 64 - used, "%s",
                                          names[random() % (long) ELEMENTSOF(names)]);
}

static void print_encoded(FILE *f, const char *text)
{
        for (; *text; text++)
                if (strchr(" \t\n\\#", *text))
                        fprintf(f, "\\%03o", (unsigned) *text);
                else
                        fputc(*text, f);
}

static void print_mount(FILE *f, const Model *m, int i)
{
        fprintf(f, "%d %d 8:%d / ", 100 + i, i ? 100 + m->parent[i] : 1, i);
        print_encoded(f, m->point[i]);
        fprintf(f, " rw,relatime%s - xfs /dev/sd%d rw\n", i % 3 ? " shared:1 master:2" : "", i);
}

static void test_walk(void **state)
{
        static const char *const junk[] = {
                "",          "\n",          "1 2 3",           "100 1 8:0 / / rw - xfs",
                "x\n",       "9 9 9:9 /\n", "- - - - -\n",     "100 1 8:0 / /a rw shared:1 xfs a rw\n",
                "100 1 /\n", " \t \n",      "7 7 7:7 / /a\\\n"
        };

        static const char with_nul[] = "1 2 8:9 / /a\0 rw - xfs x rw\n";

        (void) state;
        srandom(20261201);
        for (int round = 0; round < 3000; round++) {
                Model m = { .point[0] = "/", .n = 1 };
                _cleanup_free_ char *text = NULL;
                size_t size = 0;
                int order[MOUNTS] = {};

                int wanted = 1 + (int) (random() % MOUNTS);
                while (m.n < wanted) {
                        random_path(m.point[m.n]);
                        m.parent[m.n] = model_walk(&m, m.point[m.n]);
                        m.n++;
                }
                /* The kernel promises no order. */
                for (int i = 0; i < m.n; i++) {
                        int j = (int) (random() % (i + 1));
                        order[i] = order[j];
                        order[j] = i;
                }
                FILE *f = open_memstream(&text, &size);
                assert_non_null(f);
                for (int i = 0; i < m.n; i++) {
                        if (random() % 4 == 0) {
                                fputs(junk[random() % (long) ELEMENTSOF(junk)], f);
                                fputc('\n', f);
                        }
                        if (random() % 8 == 0)
                                fwrite(with_nul, 1, sizeof with_nul - 1, f);
                        print_mount(f, &m, order[i]);
                }
                fclose(f);

                for (int i = 0; i < 20; i++) {
                        Mount mount = {};
                        char path[64];
                        random_path(path);
                        int expected = model_walk(&m, path);
                        assert_int_equal(mounts_find(text, size, path, &mount), 0);
                        if (mount.id != 100 + expected) {
                                for (size_t k = 0; k < size; k++)
                                        text[k] = text[k] ? text[k] : '@';
                                print_error("round %d, %s: %d, not %d, in\n%s", round, path, mount.id,
                                            100 + expected, text);
                        }
                        assert_int_equal(mount.id, 100 + expected);
                        assert_int_equal(mount.minor, expected);
                        assert_string_equal(mount.mount_point, m.point[expected]);
                        mount_done(&mount);
                }
        }
}

static void test_hostile(void **state)
{
        Mount mount = {};
        _cleanup_free_ char *text = NULL;
        size_t size = 0;

        (void) state;
        assert_int_equal(mounts_find("", 0, "/a", &mount), -ENOENT);
        assert_int_equal(mounts_find("\0\0\n", 3, "/a", &mount), -ENOENT);

        /* A line of a megabyte, of either kind, and a last line without newline. */
        FILE *f = open_memstream(&text, &size);
        assert_non_null(f);
        fprintf(f, "10 1 8:1 / / rw - xfs /dev/sda %01048576d\n", 0);
        fprintf(f, "11 10 8:2 / /%01048576d rw - xfs /dev/sda rw\n", 0);
        fprintf(f, "12 10 8:3 / /b rw - overlay overlay rw,upperdir=/x");
        fclose(f);
        assert_int_equal(mounts_find(text, size, "/a", &mount), 0);
        assert_int_equal(mount.id, 10);
        assert_int_equal(strlen(mount.super_options), 1048576);
        mount_done(&mount);
        assert_int_equal(mounts_find(text, size, "/b/c", &mount), 0);
        assert_int_equal(mount.id, 12);
        mount_done(&mount);

        /* Every cut of a line is survived: it is found as soon as it is whole, and not before. */
        const char whole[] = "12 10 8:3 / /b rw - xfs /dev/sdb rw";
        for (size_t n = 0; n < sizeof whole; n++) {
                int r = mounts_find(whole, n, "/b", &mount);
                assert_true(r == 0 || r == -ENOENT);
                if (n < strlen("12 10 8:3 / /b rw - xfs /"))
                        assert_int_equal(r, -ENOENT);
                if (n >= strlen("12 10 8:3 / /b rw - xfs /dev/sdb r"))
                        assert_int_equal(r, 0);
                if (r == 0)
                        mount_done(&mount);
        }
}

/* What the kernel escapes comes back, options stay apart, a source may be empty, and tags come in any number.
 */
static void test_fields(void **state)
{
        static const char text[] =
                "12 10 8:3 /a\\040b /c\\011d rw,noatime shared:1 master:2 propagate_from:3 - "
                "overlay over\\134lay rw,lowerdir=/x\\054y,upperdir=/u\\040p\n"
                "13 10 0:40 / /empty rw -  tmpfs  rw,size=4k\n"
                "14 10 4294967296:0 / /large rw - xfs x rw\n"
                "15 10 8:-1 / /negative rw - xfs x rw\n"
                "99999999999 10 8:1 / /number rw - xfs x rw\n";
        Mount mount = {};
        char *value = NULL;

        (void) state;
        assert_int_equal(mounts_find(text, sizeof text - 1, "/c\td/e", &mount), 0);
        assert_int_equal(mount.id, 12);
        assert_string_equal(mount.root, "/a b");
        assert_string_equal(mount.mount_point, "/c\td");
        assert_string_equal(mount.options, "rw,noatime");
        assert_string_equal(mount.filesystem, "overlay");
        assert_string_equal(mount.source, "over\\lay");
        assert_string_equal(mount.super_options, "rw,lowerdir=/x,y,upperdir=/u p");
        assert_int_equal(mount_option(mount.super_options_encoded, "lowerdir", &value), 0);
        assert_string_equal(value, "/x,y");
        free(value);
        mount_done(&mount);

        assert_int_equal(mounts_find(text, sizeof text - 1, "/empty", &mount), 0);
        assert_string_equal(mount.filesystem, "tmpfs");
        assert_string_equal(mount.source, "");
        assert_string_equal(mount.super_options, "rw,size=4k");
        mount_done(&mount);
        assert_int_equal(mounts_find(text, sizeof text - 1, "/large", &mount), -ENOENT);
        assert_int_equal(mounts_find(text, sizeof text - 1, "/negative", &mount), -ENOENT);
        assert_int_equal(mounts_find(text, sizeof text - 1, "/number", &mount), -ENOENT);
}

static void test_many(void **state)
{
        Mount mount = {};
        _cleanup_free_ char *text = NULL;
        size_t size = 0;

        (void) state;
        FILE *f = open_memstream(&text, &size);
        assert_non_null(f);
        fprintf(f, "1 0 8:0 / / rw - xfs x rw\n");
        for (int i = 1; i < 200000; i++)
                fprintf(f, "%d 1 8:0 / /m%d rw - xfs x rw\n", i + 1, i);
        size_t many = (size_t) ftell(f);
        for (int i = 0; i < 4200; i++)
                fprintf(f, "%d %d 8:1 / /over rw - xfs x rw\n", 300001 + i, i ? 300000 + i : 1);
        fclose(f);
        assert_int_equal(mounts_find(text, many, "/m199999/x", &mount), 0);
        assert_int_equal(mount.id, 200000);
        mount_done(&mount);
        assert_int_equal(mounts_find(text, size, "/over", &mount), -E2BIG);
        assert_int_equal(mounts_find(text, size, "/m7", &mount), 0);
        mount_done(&mount);
}

static void test_option(void **state)
{
        char *value = NULL;

        (void) state;
        assert_int_equal(mount_option("", "upperdir", &value), -ENOENT);
        assert_int_equal(mount_option(",,rw,upperdir,xupperdir=/a,upperdirs=/b", "upperdir", &value),
                         -ENOENT);
        assert_null(value);
        assert_int_equal(mount_option("rw,upperdir=/a\\054b\\040c,workdir=/w", "upperdir", &value), 0);
        assert_string_equal(value, "/a,b c");
        free(value);
        assert_int_equal(mount_option("upperdir=", "upperdir", &value), 0);
        assert_string_equal(value, "");
        free(value);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_walk), cmocka_unit_test(test_hostile), cmocka_unit_test(test_fields),
                cmocka_unit_test(test_many), cmocka_unit_test(test_option),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
