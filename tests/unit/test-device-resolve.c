/* SPDX-License-Identifier: Apache-2.0 */
/* Every recorded machine: each question's answer holds every expected line. One test a file. */

#include "device-text.h"
#include "device-tree.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/device.h"
#include "tierprobe/file.h"

#include <errno.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* The expected lines that are not in the answer are reported all at once. Returns their number. */
static unsigned missing_lines(const char *file, const Question *q, const char *answer)
{
        _cleanup_free_ char *wanted = strdup(q->expected);
        unsigned missing = 0;

        assert_non_null(wanted);
        for (char *rest = wanted, *line; (line = strsep(&rest, "\n"));) {
                if (line[0] == '\0')
                        continue;
                _cleanup_free_ char *needle = path_format("\n%s\n", line);
                assert_non_null(needle);
                if (!strstr(answer, needle)) {
                        print_error("%s:%u: ? %s: missing \"%s\"\n", file, q->line, q->path, line);
                        missing++;
                }
        }
        if (missing > 0)
                print_error("in the answer%s\n", answer);
        return missing;
}

/* What holds of every device, whatever the tree says. */
static void check_invariants(const Device *d)
{
        assert_in_range(d->status, DEVICE_OK, DEVICE_UNRESOLVABLE);
        assert_true(d->status == DEVICE_OK ? d->n_rows > 0 : d->n_rows == 0 && d->n_nodes == 0 && d->detail);
        for (size_t i = 0; i < d->n_nodes; i++) {
                assert_true(d->nodes[i].parent < (int) i);
                assert_in_range(d->nodes[i].kind, 0, _DEVICE_KIND_MAX - 1);
                if (i > 0 && d->nodes[i].parent < 0)
                        assert_true(d->nodes[i - 1].parent < 0); /* tops first */
        }
        for (size_t i = 0; i < d->n_rows; i++)
                assert_true(d->rows[i] < d->n_nodes);
}

static unsigned ask(const Tree *tree, const char *file, const Question *q)
{
        DeviceRoots roots = { .procfs = tree->proc, .sysfs = tree->sys };
        _cleanup_(device_freep) Device *device = NULL, *copy = NULL;
        _cleanup_free_ char *answer = NULL, *again = NULL;
        size_t size = 0;

        assert_int_equal(device_resolve(&roots, q->path, q->dev, q->device, &device), 0);
        check_invariants(device);
        assert_int_equal(device_copy(device, &copy), 0);
        assert_true(device_same_rows(device, copy));
        for (int i = 0; i < 2; i++) {
                FILE *f = open_memstream(i ? &again : &answer, &size);
                assert_non_null(f);
                fputc('\n', f);
                device_print(i ? copy : device, f);
                fclose(f);
        }
        assert_string_equal(answer, again);
        return missing_lines(file, q, answer);
}

static void test_tree(void **state)
{
        const char *file = *state;
        unsigned line = 0, questions = 0, missing = 0;
        Question q;
        Tree tree;

        tree_unpack(&tree, file);
        _cleanup_fclose_ FILE *f = fopen(file, "re");
        assert_non_null(f);
        for (; tree_question(f, &line, &q); questions++) {
                missing += ask(&tree, file, &q);
                free(q.expected);
        }
        tree_remove(&tree);
        assert_int_equal(missing, 0);
        assert_true(questions > 0);
}

static void test_errors(void **state)
{
        const char *data = *state;
        _cleanup_free_ char *file = path_format("%s/device/disk.tree", data);
        Device *untouched = (Device *) &data, *device = untouched;
        Tree tree;

        tree_unpack(&tree, file);
        DeviceRoots roots = { .procfs = tree.proc, .sysfs = tree.sys };
        assert_int_equal(device_resolve(&roots, "db2", 0, NULL, &device), -EINVAL);
        roots.procfs = "/nonexistent";
        assert_int_equal(device_resolve(&roots, "/db2", 0, NULL, &device), -ENOENT);

        /* A mount table of more than 16 MiB is refused, however it goes on. */
        _cleanup_free_ char *path = path_format("%s/self/mountinfo", tree.proc);
        _cleanup_fclose_ FILE *f = fopen(path, "ae");
        assert_non_null(f);
        for (int i = 0; i < 17 << 10; i++)
                assert_true(fprintf(f, "%1023d\n", i) == 1024);
        assert_int_equal(fflush(f), 0);
        roots.procfs = tree.proc;
        assert_int_equal(device_resolve(&roots, "/db2", 0, NULL, &device), -EFBIG);
        assert_ptr_equal(device, untouched);
        tree_remove(&tree);
}

static void test_names(void **state)
{
        (void) state;
        assert_string_equal(device_kind_to_string(DEVICE_NVME_PATH), "nvme_path");
        for (int i = 0; i < _DEVICE_KIND_MAX; i++)
                assert_non_null(device_kind_to_string((DeviceKind) i));
        assert_null(device_kind_to_string(_DEVICE_KIND_MAX));
        assert_null(device_free(NULL));
}

int main(void)
{
        const char *data = getenv("TIERPROBE_TEST_DATA");
        _cleanup_free_ char *pattern = path_format("%s/device/*.tree", data ? data : "tests/data");
        glob_t files;

        if (!pattern || glob(pattern, 0, NULL, &files) != 0)
                return 1;
        _cleanup_free_ struct CMUnitTest *tests = calloc(files.gl_pathc + 2, sizeof *tests);
        if (!tests)
                return 1;
        for (size_t i = 0; i < files.gl_pathc; i++)
                tests[i] = (struct CMUnitTest){
                        .name = strrchr(files.gl_pathv[i], '/') + 1,
                        .test_func = test_tree,
                        .initial_state = files.gl_pathv[i],
                };
        tests[files.gl_pathc] = (struct CMUnitTest){
                .name = "errors",
                .test_func = test_errors,
                .initial_state = (void *) (data ? data : "tests/data"),
        };
        tests[files.gl_pathc + 1] = (struct CMUnitTest) cmocka_unit_test(test_names);
        int r = _cmocka_run_group_tests("device-resolve", tests, files.gl_pathc + 2, NULL, NULL);
        globfree(&files);
        return r;
}
