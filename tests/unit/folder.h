/* SPDX-License-Identifier: Apache-2.0 */
/* A test's own folder for files of all kinds: in memory where there is any, since a real disk with other
 * things to do makes a test of thousands of small files take minutes. Touches nothing else. */
#pragma once

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Makes a folder named after NAME and writes its path to RET_PATH of SIZE bytes. Returns 0, or -1 for cmocka.
 */
static inline int test_folder_make(const char *name, char *ret_path, size_t size)
{
        const char *where = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";

        if ((size_t) snprintf(ret_path, size, "%s/tierprobe-%s-XXXXXX", where, name) >= size)
                return -1;
        return mkdtemp(ret_path) ? 0 : -1;
}

/* Removes what test_folder_make() made, with all that is in it. */
static inline int test_folder_remove(const char *path)
{
        char command[128];

        if ((size_t) snprintf(command, sizeof command, "rm -rf '%s'", path) >= sizeof command)
                return -1;
        return system(command); /* NOLINT(concurrency-mt-unsafe,cert-env33-c): a test's own folder */
}

/* The folder of a program's own whole group of tests: for cmocka_run_group_tests(tests, open_folder,
 * close_folder), whose state at the start is nothing. The program says by FOLDER_NAME what it is called. */
#ifdef FOLDER_NAME
static char folder[64];
static int dir_fd = -1;

static int open_folder(void **state)
{
        (void) state;
        if (test_folder_make(FOLDER_NAME, folder, sizeof folder) < 0)
                return -1;
        dir_fd = open(folder, O_DIRECTORY | O_CLOEXEC);
        return dir_fd < 0;
}

static int close_folder(void **state)
{
        (void) state;
        (void) close(dir_fd);
        dir_fd = -1;
        return test_folder_remove(folder);
}
#endif
