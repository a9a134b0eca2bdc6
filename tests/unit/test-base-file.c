/* SPDX-License-Identifier: Apache-2.0 */
/* Reading from pipes, in pieces of any size, with an end, too much, or none. */

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/file.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define MAX_BYTES 100000

/* A child that writes SIZE bytes in pieces, and yields between them; its pipe's other end as a path. */
static pid_t write_in_pieces(size_t size, size_t piece, int *ret_fd, char path[64])
{
        int ends[2];

        assert_int_equal(pipe(ends), 0);
        pid_t pid = fork();
        if (pid == 0) {
                (void) close(ends[0]);
                for (size_t at = 0; at < size; at += piece) {
                        char buf[4096];
                        size_t n = size - at < piece ? size - at : piece;

                        memset(buf, 'a' + (int) (at % 26), n);
                        if (write(ends[1], buf, n) != (ssize_t) n)
                                break;
                        (void) usleep(0);
                }
                _exit(0);
        }
        (void) close(ends[1]);
        *ret_fd = ends[0];
        (void) snprintf(path, 64, "/proc/self/fd/%d", ends[0]);
        return pid;
}

static void test_pieces(void **state)
{
        (void) state;
        for (unsigned i = 0; i < 200; i++) {
                _cleanup_free_ char *text = NULL;
                size_t size = (size_t) random() % (MAX_BYTES + 1), got = 0;
                size_t piece = 1 + (size_t) random() % 4096;
                char path[64];
                int fd = -1;
                pid_t pid =
                        write_in_pieces(size, piece > size / 50 ? piece : size / 50 % 4096 + 1, &fd, path);

                assert_int_equal(read_file_waiting(path, MAX_BYTES, 60 * NS_PER_S, &text, &got), 0);
                assert_int_equal(got, size);
                assert_int_equal(strlen(text), size);
                (void) close(fd);
                assert_int_equal(waitpid(pid, NULL, 0), pid);
        }
}

static void test_too_much(void **state)
{
        _cleanup_free_ char *text = NULL;
        size_t got = 0;
        char path[64];
        int fd = -1;
        pid_t pid = write_in_pieces(2 * MAX_BYTES, 4096, &fd, path);

        (void) state;
        assert_int_equal(read_file_waiting(path, MAX_BYTES, 60 * NS_PER_S, &text, &got), -EFBIG);
        assert_null(text);
        (void) close(fd);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_no_end(void **state)
{
        _cleanup_free_ char *text = NULL;
        char path[64];
        int ends[2];

        (void) state;
        assert_int_equal(pipe(ends), 0);
        assert_int_equal(write(ends[1], "[target", 7), 7);
        (void) snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
        assert_int_equal(read_file_waiting(path, MAX_BYTES, 10 * NS_PER_MS, &text, NULL), -ETIMEDOUT);
        assert_null(text);
        (void) close(ends[0]);
        (void) close(ends[1]);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_pieces),
                cmocka_unit_test(test_too_much),
                cmocka_unit_test(test_no_end),
        };

        (void) signal(SIGPIPE, SIG_IGN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
