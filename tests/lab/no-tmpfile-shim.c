/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into the programs: a file system that cannot make a file without a name, and takes LAB_CREATE_MS
 * to make one with it. The file that LAB_CREATING names is there from then on. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef int OpenAt(int, const char *, int, ...);

static int answer(int dir_fd, const char *path, int flags, mode_t mode)
{
        OpenAt *real = (OpenAt *) dlsym(RTLD_NEXT, "openat");
        const char *ms = getenv("LAB_CREATE_MS"), *creating = getenv("LAB_CREATING");

        if ((flags & O_TMPFILE) == O_TMPFILE) {
                errno = EOPNOTSUPP;
                return -1;
        }
        int fd = real(dir_fd, path, flags, mode);
        if (ms && flags & O_CREAT && strncmp(path, ".tierprobe-", 11) == 0) {
                long left_ms = atol(ms);

                if (creating)
                        (void) close(real(AT_FDCWD, creating, O_WRONLY | O_CREAT, 0600));
                for (; left_ms > 0; left_ms -= 10) /* a disk that is slow takes no notice of signals */
                        (void) nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
        }
        return fd;
}

int openat(int dir_fd, const char *path, int flags, ...)
{
        va_list ap;

        va_start(ap, flags);
        mode_t mode = va_arg(ap, mode_t);
        va_end(ap);
        return answer(dir_fd, path, flags, mode);
}

int openat64(int dir_fd, const char *path, int flags, ...)
{
        va_list ap;

        va_start(ap, flags);
        mode_t mode = va_arg(ap, mode_t);
        va_end(ap);
        return answer(dir_fd, path, flags, mode);
}
