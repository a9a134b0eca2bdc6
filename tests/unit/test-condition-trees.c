/* SPDX-License-Identifier: Apache-2.0 */
/* Every recorded machine: limits, states, heat and waiting hold every expected line. One test a file. */

#include "condition-text.h"
#include "device-tree.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/file.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static char *answer(const Tree *tree, const Question *q)
{
        DeviceRoots roots = { .procfs = tree->proc, .sysfs = tree->sys };
        _cleanup_(device_freep) Device *device = NULL;
        char *text = NULL;
        size_t size = 0;

        assert_int_equal(device_resolve(&roots, q->path, q->dev, q->device, &device), 0);
        FILE *to = open_memstream(&text, &size);
        assert_non_null(to);
        fputc('\n', to);
        condition_print(&roots, device, to);
        assert_int_equal(fclose(to), 0);
        return text;
}

static void test_tree(void **state)
{
        const char *path = *state;
        unsigned line = 0, missing = 0, n = 0;
        Tree tree;
        Question q;

        tree_unpack(&tree, path);
        _cleanup_fclose_ FILE *file = fopen(path, "re");
        assert_non_null(file);
        for (; tree_question(file, &line, &q); n++) {
                _cleanup_free_ char *expected = q.expected, *text = answer(&tree, &q);

                for (char *rest = expected, *wanted; (wanted = strsep(&rest, "\n"));) {
                        _cleanup_free_ char *needle = path_format("\n%s\n", wanted);
                        assert_non_null(needle);
                        if (wanted[0] && !strstr(text, needle)) {
                                print_error("%s:%u: missing \"%s\" in%s\n", path, q.line, wanted, text);
                                missing++;
                        }
                }
        }
        tree_remove(&tree);
        assert_true(n > 0);
        assert_int_equal(missing, 0);
}

int main(void)
{
        const char *data = getenv("TIERPROBE_TEST_DATA");
        _cleanup_free_ char *pattern = path_format("%s/condition/*.tree", data ? data : "tests/data");
        struct CMUnitTest tests[64] = { 0 };
        glob_t found;

        if (!pattern || glob(pattern, 0, NULL, &found) != 0 || found.gl_pathc > ELEMENTSOF(tests))
                return 1;
        for (size_t i = 0; i < found.gl_pathc; i++)
                tests[i] = (struct CMUnitTest){ .name = strrchr(found.gl_pathv[i], '/') + 1,
                                                .test_func = test_tree,
                                                .initial_state = found.gl_pathv[i] };
        int r = _cmocka_run_group_tests("condition-trees", tests, found.gl_pathc, NULL, NULL);
        globfree(&found);
        return r;
}
