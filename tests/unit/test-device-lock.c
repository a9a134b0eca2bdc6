/* SPDX-License-Identifier: Apache-2.0 */
/* One test a disk: who holds it, and when it is free again. */

#include "tierprobe/cleanup.h"
#include "tierprobe/device.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define FOLDER_NAME "device-lock"
#include "folder.h"

/* A disk as sysfs shows it. */
static DeviceNode node = { .name = "sda", .major = 8, .parent = -1 };
static const Device device = { .nodes = &node, .n_nodes = 1 };
static DeviceRoots roots = { .procfs = "/proc" };

static int open_tree(void **state)
{
        int r = open_folder(state);

        roots.sysfs = folder;
        if (r == 0 && mkdirat(dir_fd, "block", 0755) == 0 && mkdirat(dir_fd, "block/sda", 0755) == 0)
                r = openat(dir_fd, "block/sda/dev", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        return r < 0 ? -1 : 0;
}

static void test_one_at_a_time(void **state)
{
        char holder[DISK_HOLDER_SIZE] = "", wanted[32];
        DiskLock *lock = NULL, *another = NULL;

        (void) state;
        assert_false(disk_is_locked(&roots, &device));
        assert_int_equal(disk_lock_new(&lock, &roots, &device, NULL), 0);
        assert_true(disk_is_locked(&roots, &device));
        assert_int_equal(disk_lock_new(&another, &roots, &device, holder), -EBUSY);
        snprintf(wanted, sizeof wanted, "(process %d)", (int) getpid());
        assert_non_null(strstr(holder, wanted));
        disk_lock_free(lock);
        assert_false(disk_is_locked(&roots, &device));
}

/* A child that was forked while the disk was locked, and had no processor since, has a copy of the
 * descriptor. */
static void test_a_child_keeps_nothing(void **state)
{
        DiskLock *lock = NULL;
        int hold[2];

        (void) state;
        assert_int_equal(disk_lock_new(&lock, &roots, &device, NULL), 0);
        assert_int_equal(pipe(hold), 0);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                (void) close(hold[1]);
                (void) read(hold[0], &(char){ 0 }, 1);
                _exit(0);
        }
        disk_lock_free(lock);
        bool is_locked = disk_is_locked(&roots, &device);
        (void) close(hold[1]);
        (void) close(hold[0]);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        assert_false(is_locked);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_one_at_a_time),
                cmocka_unit_test(test_a_child_keeps_nothing),
        };

        return cmocka_run_group_tests(tests, open_tree, close_folder);
}
