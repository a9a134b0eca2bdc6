/* SPDX-License-Identifier: Apache-2.0 */
/* The words for an errno at a path: true ones, with advice that fits. */

#include "tierprobe/cleanup.h"
#include "tierprobe/path-error.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void expect(int error, const PathDenial *denial, const char *wanted)
{
        char text[PATH_ERROR_SIZE];

        path_error_describe(text, sizeof text, "/db2/cache", error, denial);
        if (!strstr(text, wanted))
                fail_msg("\"%s\" does not say \"%s\"", text, wanted);
}

static void test_codes(void **state)
{
        static const struct {
                int error;
                ReasonCode code;
                const char *says;
        } cases[] = {
                { ENOENT, REASON_PATH_MISSING, "no such directory" },
                { ENOTDIR, REASON_PATH_MISSING, "not a directory" },
                { ENAMETOOLONG, REASON_PATH_MISSING, "too long" },
                { ELOOP, REASON_WRONG_DEVICE, "symbolic link" },
                { EACCES, REASON_NOT_PERMITTED, "no permission" },
                { EPERM, REASON_NOT_PERMITTED, "not permitted" },
                { EROFS, REASON_WRITE_ERROR, "read-only" },
                { EIO, REASON_WRITE_ERROR, "input/output error" },
                { ENODEV, REASON_WRITE_ERROR, "gone" },
                { ESTALE, REASON_WRITE_ERROR, "Mount it anew" },
                { ENOTCONN, REASON_WRITE_ERROR, "gone" },
                { EUCLEAN, REASON_WRITE_ERROR, "damaged" },
                { ETIMEDOUT, REASON_STALLED, "no answer in time" },
                { ENOSPC, REASON_NO_SPACE, "no space" },
                { EDQUOT, REASON_THROTTLED, "quota" },
                { EFBIG, REASON_THROTTLED, "file size limit" },
                { ENOMEM, REASON_ABORTED, "out of memory" },
        };

        (void) state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                assert_int_equal(path_error_find(cases[i].error).code, cases[i].code);
                expect(cases[i].error, NULL, cases[i].says);
        }
}

/* Every number there is, and others, gives a whole sentence that begins with the path and ends as one does.
 */
static void test_every_number(void **state)
{
        char path[4096], text[PATH_ERROR_SIZE];

        (void) state;
        memset(path, 'x', sizeof path);
        path[0] = '/';
        path[sizeof path - 1] = '\0';
        for (int error = -2; error < 600; error++) {
                PathError found = path_error_find(error);

                assert_true(found.name[0] && found.says[0] && found.mend[0]);
                path_error_describe(text, sizeof text, "/db2/cache", error, NULL);
                assert_int_equal(strncmp(text, "/db2/cache: ", 12), 0);
                assert_non_null(strstr(text, found.name));
                assert_null(strstr(text, "existing directory"));
                assert_int_equal(text[strlen(text) - 1], '.');
                /* A path of any length leaves room for the advice. */
                path_error_describe(text, sizeof text, path, error, NULL);
                assert_int_equal(text[strlen(text) - 1], '.');
        }
}

static void test_denials(void **state)
{
        PathDenial denial = { .user = "tierprobe",
                              .directory = "/db2",
                              .owner = "db2inst1",
                              .group = "db2iadm1",
                              .mode = 0750,
                              .enter = true };

        (void) state;
        expect(EACCES, &denial,
               "User tierprobe may not enter /db2 (owner db2inst1, group db2iadm1, mode 0750)");
        expect(EACCES, &denial, "setfacl -m u:tierprobe:x /db2");
        denial.enter = false;
        (void) snprintf(denial.directory, sizeof denial.directory, "/db2/cache");
        expect(EACCES, &denial, "may not make files in /db2/cache");
        expect(EACCES, &denial, "setfacl -m u:tierprobe:rwx /db2/cache");
        (void) snprintf(denial.user, sizeof denial.user, "uid 1234");
        expect(EACCES, &denial, "setfacl -m u:1234:rwx /db2/cache");

        /* What a shell would take for something else makes no command. */
        (void) snprintf(denial.directory, sizeof denial.directory, "/db2/$(reboot)");
        expect(EACCES, &denial, "may not make files in /db2/$(reboot)");
        expect(EACCES, &denial, "Give it the right (rwx).");

        /* Owners and modes do not explain it. */
        denial = (PathDenial){ .user = "root" };
        expect(EACCES, &denial, "SELinux");
        expect(EPERM, &denial, "lsattr");
}

/* The longest of everything fits, or is cut as a whole. */
static void test_long_denial(void **state)
{
        PathDenial denial = { .mode = 07777, .enter = true };
        char text[PATH_ERROR_SIZE];

        (void) state;
        memset(denial.user, 'u', sizeof denial.user - 1);
        memset(denial.owner, 'o', sizeof denial.owner - 1);
        memset(denial.group, 'g', sizeof denial.group - 1);
        for (size_t n = 1; n < sizeof denial.directory; n++) {
                memset(denial.directory, 0, sizeof denial.directory);
                memset(denial.directory, 'd', n);
                path_error_describe(text, sizeof text, "/x", EACCES, &denial);
                assert_int_equal(text[strlen(text) - 1], '.');
        }
        for (size_t size = 1; size < 40; size++) {
                memset(text, 'x', sizeof text);
                path_error_describe(text, size, "/x", EACCES, &denial);
                assert_int_equal(strlen(text), size - 1);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_codes),
                cmocka_unit_test(test_every_number),
                cmocka_unit_test(test_denials),
                cmocka_unit_test(test_long_denial),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
