/* SPDX-License-Identifier: Apache-2.0 */
/* Whether children can be waited for by descriptor here: valgrind before 3.21 knows no pidfd_open(). Touches
 * nothing. */
#pragma once

#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline bool pidfd_is_possible(void)
{
        int fd = (int) syscall(SYS_pidfd_open, getpid(), 0);

        if (fd >= 0)
                (void) close(fd);
        return fd >= 0;
}

/* At the beginning of a test of cmocka. */
#define NEEDS_PIDFD()             \
        if (!pidfd_is_possible()) \
        skip()
