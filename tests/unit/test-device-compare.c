/* SPDX-License-Identifier: Apache-2.0 */
/* Sharing a disk, same rows, row names, and the names of NVMe paths. */

#include "block.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { NODES = 4 };

/* A device of the given nodes, the first of which is the row. */
typedef struct Made {
        DeviceNode nodes[NODES];
        size_t rows[NODES];
        Device device;
} Made;

static Device *make(Made *made, const char *source, const char *const *names, size_t n)
{
        memset(made, 0, sizeof *made);
        for (size_t i = 0; i < n; i++) {
                snprintf(made->nodes[i].name, sizeof made->nodes[i].name, "%s", names[i]);
                made->nodes[i].minor = (uint32_t) names[i][strlen(names[i]) - 1];
                made->rows[i] = n - 1 - i;
        }
        made->device = (Device){
                .mount_source = (char *) source,
                .nodes = made->nodes,
                .n_nodes = n,
                .rows = made->rows,
                .n_rows = n,
        };
        return &made->device;
}

static void test_shares_disk(void **state)
{
        Made x, y;
        Device *a, *b;

        (void) state;
        /* Two volumes on one disk do, two disks do not. */
        a = make(&x, "/dev/mapper/a", (const char *const[]){ "dm-0", "sda1", "sda" }, 3);
        b = make(&y, "/dev/mapper/b", (const char *const[]){ "dm-1", "sdb1", "sda" }, 3);
        assert_true(device_shares_disk(a, b));
        assert_true(device_shares_disk(b, a));
        assert_true(device_shares_disk(a, a));
        b = make(&y, "/dev/mapper/a", (const char *const[]){ "dm-1", "sdb" }, 2);
        assert_false(device_shares_disk(a, b));

        /* Unknown ones by their source. */
        b = make(&y, "/dev/mapper/a", NULL, 0);
        assert_true(device_shares_disk(a, b));
        assert_true(device_shares_disk(b, a));
        b = make(&y, "server:/x", NULL, 0);
        assert_false(device_shares_disk(a, b));
        assert_true(device_shares_disk(b, b));
        b = make(&y, NULL, NULL, 0);
        assert_false(device_shares_disk(b, b));

        /* Hidden NVMe paths are all 0:0. */
        a = make(&x, "a", (const char *const[]){ "nvme0c0n1" }, 1);
        b = make(&y, "b", (const char *const[]){ "nvme0c1n1" }, 1);
        assert_int_equal(x.nodes[0].minor, y.nodes[0].minor);
        assert_false(device_shares_disk(a, b));
}

static void test_same_rows(void **state)
{
        Made x, y;

        (void) state;
        Device *a = make(&x, "a", (const char *const[]){ "sda", "sdb" }, 2);
        Device *b = make(&y, "b", (const char *const[]){ "sda", "sdb" }, 2);
        assert_true(device_same_rows(a, b));
        y.rows[0] = 0; /* another order */
        y.rows[1] = 1;
        assert_false(device_same_rows(a, b));
        b = make(&y, "b", (const char *const[]){ "sda", "sdb" }, 2);
        y.nodes[1].major = 8; /* another number */
        assert_false(device_same_rows(a, b));
        b = make(&y, "b", (const char *const[]){ "sda" }, 1);
        assert_false(device_same_rows(a, b));
}

static void test_row_names(void **state)
{
        const char *names[NODES] = {};
        Made x;

        (void) state;
        Device *a = make(&x, "a", (const char *const[]){ "sda", "sdb" }, 2);
        assert_int_equal(device_row_names(a, names, NODES), 2);
        assert_string_equal(names[0], "sdb");
        assert_string_equal(names[1], "sda");
        names[1] = NULL;
        assert_int_equal(device_row_names(a, names, 1), 1);
        assert_null(names[1]);
        assert_int_equal(device_row_names(a, names, 0), 0);
}

static void test_nvme_names(void **state)
{
        (void) state;
        assert_true(block_is_nvme_path("nvme0c1n2", NULL));
        assert_true(block_is_nvme_path("nvme0c1n2", "nvme0n2"));
        assert_false(block_is_nvme_path("nvme0c1n2", "nvme0n1"));
        assert_false(block_is_nvme_path("nvme0c1n2", "nvme1n2"));
        assert_false(block_is_nvme_path("nvme10c1n2", "nvme1n2"));
        assert_false(block_is_nvme_path("nvme1c1n22", "nvme1n2"));
        assert_false(block_is_nvme_path("nvme0n2", NULL));
        assert_false(block_is_nvme_path("nvme0c1n2p1", NULL));
        assert_false(block_is_nvme_path("nvmec1n2", NULL));
        assert_false(block_is_nvme_path("", NULL));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_shares_disk),
                cmocka_unit_test(test_same_rows),
                cmocka_unit_test(test_row_names),
                cmocka_unit_test(test_nvme_names),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
