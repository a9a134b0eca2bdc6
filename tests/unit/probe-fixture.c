/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the probe share. */

#include "probe-fixture.h"

#include "tierprobe/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

bool fixture_possible(void)
{
        if (getenv("TIERPROBE_TEST_WRAPPER")) { /* NOLINT(concurrency-mt-unsafe): one thread */
                (void) puts(
                        "1..0 # SKIP writers and children that hang do not come to an end under valgrind");
                return false;
        }
        int fd = pidfd_open(getpid(), 0);

        if (fd < 0 && errno == ENOSYS) {
                (void) puts("1..0 # SKIP there is no pidfd_open() here");
                return false;
        }
        if (fd >= 0)
                (void) close(fd);
        return true;
}

int fixture_setup(void **state)
{
        char here[200];
        Fixture *fixture = calloc(1, sizeof *fixture);
        const char *where = getenv("TIERPROBE_TEST_DIRECTORY");

        if (!fixture)
                return -1;
        if (!where)
                where = getcwd(here, sizeof here) ? here : "/tmp";
        (void) snprintf(fixture->directory, sizeof fixture->directory, "%s/probe-XXXXXX", where);
        if (!mkdtemp(fixture->directory)) {
                free(fixture);
                return -1;
        }
        *state = fixture;
        return 0;
}

int fixture_teardown(void **state)
{
        Fixture *fixture = *state;
        int r = rmdir(fixture->directory);

        if (r < 0)
                print_error("%s: %s\n", fixture->directory, strerror(errno));
        free(fixture);
        return r;
}

const char *fixture_path(Fixture *fixture, const char *name)
{
        (void) snprintf(fixture->path, sizeof fixture->path, "%s/%s", fixture->directory, name);
        return fixture->path;
}

size_t fixture_entries(const Fixture *fixture)
{
        _cleanup_closedir_ DIR *dir = opendir(fixture->directory);
        size_t n = 0;

        assert_non_null(dir);
        while (readdir(dir))
                n++;
        return n - 2;
}

static bool is_child(pid_t pid, const char *name)
{
        char path[64], line[256], comm[32];
        int parent;

        (void) snprintf(path, sizeof path, "/proc/%d/stat", pid);
        _cleanup_fclose_ FILE *f = fopen(path, "re");
        return f && fgets(line, sizeof line, f) && sscanf(line, "%*d (%31[^)]) %*c %d", comm, &parent) == 2 &&
               parent == getpid() && strcmp(comm, name) == 0;
}

static int compare_pids(const void *a, const void *b)
{
        return *(const pid_t *) a - *(const pid_t *) b;
}

size_t find_children(const char *name, pid_t *ret, size_t max)
{
        _cleanup_closedir_ DIR *dir = opendir("/proc");
        const struct dirent *entry;
        size_t n = 0;

        assert_non_null(dir);
        while ((entry = readdir(dir)) && n < max) {
                pid_t pid = (pid_t) strtol(entry->d_name, NULL, 10);
                if (pid > 0 && is_child(pid, name))
                        ret[n++] = pid;
        }
        qsort(ret, n, sizeof *ret, compare_pids);
        return n;
}

void expect_no_children(void)
{
        while (probe_reap_abandoned() > 0)
                (void) sched_yield();
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
        assert_int_equal(errno, ECHILD);
}

bool hang_path(const char *path, int *ret_fd)
{
        char options[96];

        _cleanup_close_ int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
        if (fd < 0 || unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
                return false;
        (void) snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
        if (mount("hang", path, "fuse", 0, options) < 0)
                return false;
        *ret_fd = TAKE_FD(fd);
        return true;
}

void unhang_path(const char *path, int fd)
{
        assert_int_equal(umount2(path, MNT_DETACH), 0);
        (void) close(fd);
}
