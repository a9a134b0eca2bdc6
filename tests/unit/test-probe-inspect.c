/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at paths of all kinds, as root and as nobody, and at one that hangs. */

#include "probe-fixture.h"

#include "tierprobe/cleanup.h"

#include "tierprobe/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "folder.h"

#define TIMEOUT (60 * NS_PER_S) /* a bound for the broken case; nothing here takes long */

static PathFacts inspect(const char *path)
{
        PathFacts facts;

        assert_int_equal(path_inspect(path, TIMEOUT, &facts), 0);
        return facts;
}

static void test_directory(void **state)
{
        Fixture *fixture = *state;
        char resolved[PATH_MAX];
        struct statvfs vfs;
        struct stat st;

        assert_int_equal(stat(fixture->directory, &st), 0);
        assert_int_equal(statvfs(fixture->directory, &vfs), 0);
        assert_non_null(realpath(fixture->directory, resolved));
        static const char *const tails[] = { "", "/", "//", "/." };
        for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
                char path[300];

                (void) snprintf(path, sizeof path, "%s%s", fixture->directory, tails[i]);
                PathFacts facts = inspect(path);
                assert_int_equal(facts.error, 0);
                assert_string_equal(facts.resolved, resolved);
                assert_true(facts.dev == st.st_dev);
                assert_true(facts.total_bytes == (uint64_t) vfs.f_blocks * vfs.f_frsize);
                assert_true(facts.free_bytes > 0 && facts.free_bytes <= facts.total_bytes);
                assert_true(facts.fs_type != 0);
                assert_int_equal(facts.write_error, 0);
                assert_false(facts.read_only);
        }
        expect_no_children();
}

static void test_missing(void **state)
{
        Fixture *fixture = *state;

        assert_int_equal(inspect(fixture_path(fixture, "none")).error, ENOENT);
        assert_int_equal(inspect(fixture_path(fixture, "none/below")).error, ENOENT);
        assert_int_equal(inspect("/proc/version/below").error, ENOTDIR);

        PathFacts facts = { .error = 7 };
        char longer[PATH_MAX + 2];
        memset(longer, '/', sizeof longer - 1);
        longer[sizeof longer - 1] = '\0';
        assert_int_equal(path_inspect(longer, TIMEOUT, &facts), -ENAMETOOLONG);
        assert_int_equal(path_inspect("", TIMEOUT, &facts), -EINVAL);
        assert_int_equal(path_inspect("relative", TIMEOUT, &facts), -EINVAL);
        assert_int_equal(facts.error, 7); /* untouched */
}

static void test_file(void **state)
{
        Fixture *fixture = *state;
        const char *path = fixture_path(fixture, "file");
        int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

        assert_true(fd >= 0);
        (void) close(fd);
        PathFacts facts = inspect(path);
        assert_int_equal(facts.error, ENOTDIR);
        assert_int_equal(unlink(path), 0);
}

static void test_symlink(void **state)
{
        Fixture *fixture = *state;
        char resolved[PATH_MAX], slash[600];
        const char *path = fixture_path(fixture, "link");

        assert_int_equal(symlink(fixture->directory, path), 0);
        assert_non_null(realpath(fixture->directory, resolved));
        (void) snprintf(slash, sizeof slash, "%s/", path);
        PathFacts facts = inspect(path);
        assert_int_equal(facts.error, 0);
        assert_true(facts.is_link);
        assert_string_equal(facts.resolved, resolved);
        facts = inspect(slash);
        assert_int_equal(facts.error, 0);
        assert_true(facts.is_link);
        assert_int_equal(unlink(path), 0);

        static const struct {
                const char *to;
                int error;
        } nowhere[] = { { "nowhere", ENOENT }, { "link", ELOOP } };
        for (size_t i = 0; i < ELEMENTSOF(nowhere); i++) {
                assert_int_equal(symlink(nowhere[i].to, path), 0);
                facts = inspect(path);
                assert_int_equal(facts.error, nowhere[i].error);
                assert_string_equal(facts.resolved, "");
                assert_int_equal(unlink(path), 0);
        }

        /* Only the last part counts. */
        assert_int_equal(mkdir(fixture_path(fixture, "real"), 0700), 0);
        assert_int_equal(symlink(".", fixture_path(fixture, "link")), 0);
        assert_int_equal(inspect(fixture_path(fixture, "link/real")).error, 0);
        assert_false(inspect(fixture_path(fixture, "link/real")).is_link);
        assert_int_equal(unlink(fixture_path(fixture, "link")), 0);
        assert_int_equal(rmdir(fixture_path(fixture, "real")), 0);
}

/* The effective user decides, as it will when the file is made. */
static void test_effective_user(void **state)
{
        (void) state;
        if (geteuid() != 0)
                skip();
        PathFacts root = inspect("/");
        assert_int_equal(seteuid(65534), 0);
        PathFacts nobody = inspect("/");
        assert_int_equal(seteuid(0), 0);
        assert_int_equal(root.error, 0);
        assert_int_equal(nobody.error, 0);
        assert_int_equal(root.write_error, root.read_only ? EROFS : 0);
        assert_int_equal(nobody.write_error, root.read_only ? EROFS : EACCES);
}

static PathFacts inspect_as_nobody(const char *path)
{
        assert_int_equal(seteuid(65534), 0);
        PathFacts facts = inspect(path);
        assert_int_equal(seteuid(0), 0);
        return facts;
}

/* Who may not do what, and where. */
static void test_denied(void **state)
{
        char above[64], below[80];

        (void) state;
        if (geteuid() != 0)
                skip();
        /* Not below the build: root's own folder may be above that, and lets nobody through. */
        assert_int_equal(test_folder_make("denied", above, sizeof above), 0);
        assert_int_equal(chmod(above, 0755), 0);
        (void) snprintf(above + strlen(above), sizeof above - strlen(above), "/above");
        (void) snprintf(below, sizeof below, "%s/below", above);
        assert_int_equal(mkdir(above, 0700), 0);
        assert_int_equal(mkdir(below, 0755), 0);

        PathFacts facts = inspect_as_nobody(below);
        assert_int_equal(facts.error, EACCES);
        assert_string_equal(facts.denial.user, "nobody");
        assert_string_equal(facts.denial.directory, above);
        assert_string_equal(facts.denial.owner, "root");
        assert_string_equal(facts.denial.group, "root");
        assert_int_equal(facts.denial.mode, 0700);
        assert_true(facts.denial.enter);

        assert_int_equal(chmod(above, 0711), 0);
        facts = inspect_as_nobody(below);
        assert_int_equal(facts.error, 0);
        assert_int_equal(facts.write_error, EACCES);
        assert_string_equal(facts.denial.directory, below);
        assert_int_equal(facts.denial.mode, 0755);
        assert_false(facts.denial.enter);

        assert_int_equal(chmod(below, 0777), 0);
        assert_int_equal(inspect_as_nobody(below).write_error, 0);
        *strrchr(above, '/') = '\0';
        assert_int_equal(test_folder_remove(above), 0);
}

static void test_abandoned(void **state)
{
        Fixture *fixture = *state;
        PathInspection *inspection = NULL;
        PathFacts facts;

        assert_int_equal(path_inspection_new(fixture->directory, false, &inspection), 0);
        assert_null(path_inspection_free(inspection));
        expect_no_children();

        /* An answer is given once. */
        assert_int_equal(path_inspection_new(fixture->directory, false, &inspection), 0);
        int r;
        while ((r = path_inspection_collect(inspection, &facts)) == -EAGAIN)
                ;
        assert_int_equal(r, 0);
        assert_int_equal(path_inspection_collect(inspection, &facts), -EIO);
        assert_null(path_inspection_free(inspection));
        expect_no_children();
}

/* A child that dies has no answer. */
static void test_killed(void **state)
{
        Fixture *fixture = *state;
        PathInspection *inspection = NULL;
        PathFacts facts;
        int fd, r;
        pid_t pid;

        if (!hang_path(fixture->directory, &fd))
                skip();
        assert_int_equal(path_inspection_new(fixture->directory, false, &inspection), 0);
        while (find_children("tierprobe-look", &pid, 1) != 1)
                ;
        assert_int_equal(kill(pid, SIGKILL), 0);
        while ((r = path_inspection_collect(inspection, &facts)) == -EAGAIN)
                ;
        assert_int_equal(r, -EIO);
        assert_null(path_inspection_free(inspection));
        expect_no_children();
        unhang_path(fixture->directory, fd);
}

static void test_hanging(void **state)
{
        Fixture *fixture = *state;
        PathFacts facts;
        int fd;

        if (!hang_path(fixture->directory, &fd))
                skip();
        assert_int_equal(path_inspect(fixture->directory, 50 * NS_PER_MS, &facts), 0);
        assert_int_equal(facts.error, ETIMEDOUT);
        expect_no_children();
        unhang_path(fixture->directory, fd);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_directory), TEST(test_missing),        TEST(test_file),
                TEST(test_symlink),   TEST(test_effective_user), TEST(test_denied),
                TEST(test_abandoned), TEST(test_killed),         TEST(test_hanging),
        };

        if (!fixture_possible())
                return EXIT_SUCCESS;
        return cmocka_run_group_tests_name("probe-inspect", tests, NULL, NULL);
}
