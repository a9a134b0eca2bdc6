/* SPDX-License-Identifier: Apache-2.0 */
/* The folder that holds all that is kept: made, opened and locked. */

#include "state-directory.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

/* A daemon that was killed a moment ago may have left a child that has not begun, and holds what its parent
 * held until it does or ends. */
#define LOCK_PATIENCE_NS (3 * NS_PER_S)
#define LOCK_RETRY_NS (20 * NS_PER_MS)

static int lock(int fd)
{
        uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + LOCK_PATIENCE_NS;

        while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
                if (errno != EWOULDBLOCK || clock_ns(CLOCK_MONOTONIC) > end_ns)
                        return -errno;
                (void) nanosleep(&(struct timespec){ .tv_nsec = LOCK_RETRY_NS }, NULL);
        }
        return 0;
}

int state_directory_open(const char *path, int *ret_fd)
{
        if (mkdir(path, 0750) < 0 && errno != EEXIST) {
                int r = -errno;
                log_error(
                        "%s: cannot make the state directory: %s; make it, or name another with --state-dir",
                        path, strerror(-r));
                return r;
        }
        _cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 || faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) < 0) {
                int r = -errno;
                log_error("%s: the state directory cannot be written: %s", path, strerror(-r));
                return r;
        }
        int r = lock(fd);
        if (r < 0) {
                log_error("%s: another tierprobed uses this state directory; stop it, or name another with "
                          "--state-dir",
                          path);
                return r;
        }
        *ret_fd = TAKE_FD(fd);
        return 0;
}
