/* SPDX-License-Identifier: Apache-2.0 */
/* Making the file where kernels and file systems refuse one flag or another: openat() is answered here. */

#include "../../src/probe/test-file.h"

#include "probe-fixture.h"

#include "tierprobe/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Which errno a call with the flag gets; 0: the kernel decides. */
static struct {
        int nameless, direct, always;
        bool end_when_made;     /* somebody ends this process as soon as the file has its name */
        bool made_all_the_same; /* a refused O_DIRECT leaves the created file behind, as Linux does */
} refuse;

int __real_openat(int dir_fd, const char *path, int flags, ...);
int __wrap_openat(int dir_fd, const char *path, int flags, ...);
int __wrap_openat64(int dir_fd, const char *path, int flags, ...);

int __wrap_openat(int dir_fd, const char *path, int flags, ...)
{
        int error = refuse.always;

        if (!error && (flags & O_TMPFILE) == O_TMPFILE)
                error = refuse.nameless;
        if (!error && flags & O_DIRECT) {
                error = refuse.direct;
                if (error && flags & O_CREAT && refuse.made_all_the_same)
                        (void) close(__real_openat(dir_fd, path, flags & ~O_DIRECT, 0600));
        }
        if (!error) {
                /* What the machine's own file system says to O_DIRECT is not the question here. */
                int fd = __real_openat(dir_fd, path, flags & ~O_DIRECT, 0600);
                if (fd >= 0 && flags & O_DIRECT)
                        (void) fcntl(fd, F_SETFL, O_DIRECT);
                if (fd >= 0 && flags & O_CREAT && refuse.end_when_made)
                        (void) kill(getpid(), SIGTERM);
                return fd;
        }
        errno = error;
        return -1;
}

int __wrap_openat64(int dir_fd, const char *path, int flags, ...)
{
        return __wrap_openat(dir_fd, path, flags);
}

static int open_directory(const Fixture *fixture)
{
        int fd = -1, error = 0;
        dev_t dev = 0;

        memset(&refuse, 0, sizeof refuse);
        assert_int_equal(test_file_open(fixture->directory, &fd, &dev, &error), PROBE_OK);
        return fd;
}

static void expect_file(const Fixture *fixture, int dir_fd)
{
        int fd = -1, error = 0;
        struct stat st;

        assert_int_equal(test_file_create(dir_fd, &fd, NULL, &error), PROBE_OK);
        assert_int_equal(fixture_entries(fixture), 0);
        assert_int_equal(fstat(fd, &st), 0);
        assert_int_equal(st.st_nlink, 0);
        assert_int_equal(st.st_size, 0);
        assert_int_equal(st.st_mode & 07777, 0600);
        int flags = fcntl(fd, F_GETFL);
        assert_int_equal(flags & O_ACCMODE, O_WRONLY);
        assert_int_equal(flags & O_DSYNC, O_DSYNC);
        assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
        (void) close(fd);
}

static void expect_refusal(const Fixture *fixture, int dir_fd, ProbeOutcome outcome, int error)
{
        int fd = -7, got = 0;

        assert_int_equal(test_file_create(dir_fd, &fd, NULL, &got), outcome);
        assert_int_equal(got, error);
        assert_int_equal(fd, -7);
        assert_int_equal(fixture_entries(fixture), 0);
}

static void test_without_tmpfile(void **state)
{
        _cleanup_close_ int dir_fd = open_directory(*state);
        static const int errors[] = { 0, EOPNOTSUPP, EISDIR, ENOENT };

        for (size_t i = 0; i < ELEMENTSOF(errors); i++) {
                refuse.nameless = errors[i];
                expect_file(*state, dir_fd);
        }
}

/* It ends, but not before the name is gone. */
static void test_ended_while_it_has_a_name(void **state)
{
        _cleanup_close_ int dir_fd = open_directory(*state);
        int status = 0;

        refuse.nameless = EOPNOTSUPP;
        refuse.end_when_made = true;
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                int fd = -1, error = 0;

                (void) signal(SIGTERM, SIG_DFL);
                (void) test_file_create(dir_fd, &fd, NULL, &error);
                _exit(0); /* not reached */
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGTERM);
        assert_int_equal(fixture_entries(*state), 0);
}

static void make(const Fixture *fixture, const char *name, const char *content)
{
        char path[600];

        (void) snprintf(path, sizeof path, "%s/%s", fixture->directory, name);
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, content, strlen(content)), strlen(content));
}

/* Empty files of that kind of name, of this user, that nobody holds: nothing else goes. */
static void test_sweep(void **state)
{
        static const char *const kept[] = {
                ".tierprobe-0123456789abcdef0123456789abcde",  ".tierprobe-0123456789abcdef0123456789abcdeff",
                ".tierprobe-0123456789ABCDEF0123456789ABCDEF", ".tierprobe-0123456789abcdef0123456789abcdeg",
                "tierprobe-0123456789abcdef0123456789abcdef",  ".tierprobe-00000000000000000000000000000001",
                ".tierprobe-00000000000000000000000000000002", ".tierprobe-00000000000000000000000000000003",
                ".tierprobe-00000000000000000000000000000004",
        };
        _cleanup_close_ int dir_fd = open_directory(*state);
        const char *leftover = ".tierprobe-0123456789abcdef0123456789abcdef";

        for (size_t i = 0; i < 5; i++)
                make(*state, kept[i], "");
        make(*state, kept[5], "somebody's");
        assert_int_equal(symlinkat(kept[5], dir_fd, kept[6]), 0);
        assert_int_equal(mkdirat(dir_fd, kept[7], 0700), 0);
        make(*state, kept[8], "");
        _cleanup_close_ int held = openat(dir_fd, kept[8], O_RDONLY | O_CLOEXEC);
        assert_int_equal(flock(held, LOCK_EX), 0);
        assert_int_equal(test_file_sweep(dir_fd), 0);
        make(*state, leftover, "");
        assert_int_equal(test_file_sweep(dir_fd), 1);
        assert_int_equal(faccessat(dir_fd, leftover, F_OK, 0), -1);
        for (size_t i = 0; i < ELEMENTSOF(kept); i++)
                assert_int_equal(unlinkat(dir_fd, kept[i], i == 7 ? AT_REMOVEDIR : 0), 0);
}

static void test_direct_refused(void **state)
{
        _cleanup_close_ int dir_fd = open_directory(*state);

        refuse.direct = EINVAL;
        expect_refusal(*state, dir_fd, PROBE_DIRECT_REFUSED, EINVAL);
        refuse.nameless = EOPNOTSUPP;
        expect_refusal(*state, dir_fd, PROBE_DIRECT_REFUSED, EINVAL);
        refuse.made_all_the_same = true;
        expect_refusal(*state, dir_fd, PROBE_DIRECT_REFUSED, EINVAL);
}

/* EINVAL alone does not say that it was O_DIRECT. */
static void test_other_refusals(void **state)
{
        _cleanup_close_ int dir_fd = open_directory(*state);
        static const struct {
                int error;
                ProbeOutcome outcome;
        } cases[] = {
                { EINVAL, PROBE_WRITE_ERROR }, { EIO, PROBE_WRITE_ERROR },     { ESTALE, PROBE_WRITE_ERROR },
                { EROFS, PROBE_NOT_WRITABLE }, { EACCES, PROBE_NOT_WRITABLE }, { EPERM, PROBE_NOT_WRITABLE },
                { ENOSPC, PROBE_NO_SPACE },    { EDQUOT, PROBE_NO_SPACE },     { EMFILE, PROBE_INTERNAL },
                { ENOMEM, PROBE_INTERNAL },    { ENOENT, PROBE_PATH_MISSING },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                refuse.always = cases[i].error;
                expect_refusal(*state, dir_fd, cases[i].outcome, cases[i].error);
        }
}

static void test_failed_writes(void **state)
{
        _cleanup_close_ int dir_fd = open_directory(*state);

        assert_int_equal(test_file_judge_write(dir_fd, EIO, true, false, 4096), PROBE_WRITE_ERROR);
        assert_int_equal(test_file_judge_write(dir_fd, EROFS, false, false, 4096), PROBE_WRITE_ERROR);
        assert_int_equal(test_file_judge_write(dir_fd, ENOSPC, true, false, 4096), PROBE_NO_SPACE);
        assert_int_equal(test_file_judge_write(dir_fd, EDQUOT, false, true, 4096), PROBE_NO_SPACE);
        assert_int_equal(test_file_judge_write(dir_fd, EFBIG, false, false, 4096), PROBE_NO_SPACE);
        assert_int_equal(test_file_judge_write(dir_fd, ENOMEM, false, false, 4096), PROBE_INTERNAL);
        /* The first write is refused: direct writing is. Later it is an error. */
        assert_int_equal(test_file_judge_write(dir_fd, EINVAL, true, false, 4096), PROBE_DIRECT_REFUSED);
        assert_int_equal(test_file_judge_write(dir_fd, EINVAL, false, false, 4096), PROBE_WRITE_ERROR);
        /* The rest of a short write: a full disk, or not. */
        assert_int_equal(test_file_judge_write(dir_fd, EINVAL, true, true, 512), PROBE_WRITE_ERROR);
        assert_int_equal(test_file_judge_write(dir_fd, EINVAL, true, true, SIZE_MAX), PROBE_NO_SPACE);
}

static void test_space(void **state)
{
        _cleanup_close_ int dir_fd = open_directory(*state);
        uint64_t free_bytes = 7, needed = 7;
        int error = 0;

        assert_int_equal(test_file_check_space(dir_fd, 4096, 4096, 0, &free_bytes, &needed, &error),
                         PROBE_OK);
        assert_int_equal(needed, 8192);
        assert_true(free_bytes >= needed);
        /* The larger reserve counts, and sums do not wrap around. */
        assert_int_equal(test_file_check_space(dir_fd, 1, 4096, 1, &free_bytes, &needed, &error),
                         PROBE_NO_SPACE);
        assert_int_equal(error, ENOSPC);
        assert_true(needed > free_bytes);
        assert_int_equal(test_file_check_space(dir_fd, UINT64_MAX, 1, 0, &free_bytes, &needed, &error),
                         PROBE_NO_SPACE);
        assert_true(needed == UINT64_MAX);
        assert_int_equal(test_file_check_space(dir_fd, 1, UINT64_MAX, 0, &free_bytes, &needed, &error),
                         PROBE_NO_SPACE);
        assert_true(needed == UINT64_MAX);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_without_tmpfile), TEST(test_ended_while_it_has_a_name),
                TEST(test_sweep),           TEST(test_direct_refused),
                TEST(test_other_refusals),  TEST(test_failed_writes),
                TEST(test_space),
        };

        return cmocka_run_group_tests_name("probe-target", tests, NULL, NULL);
}
