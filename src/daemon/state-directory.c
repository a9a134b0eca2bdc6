/* SPDX-License-Identifier: Apache-2.0 */
/* The folder that holds all that is kept: made, opened and locked. */

#include "state-directory.h"

#include "tierprobe/background.h"
#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

/* A daemon that was killed a moment ago may have left a child that has not begun, and holds what its parent
 * held until it does or ends. */
#define LOCK_PATIENCE_NS (3 * NS_PER_S)
#define LOCK_RETRY_NS (20 * NS_PER_MS)

/* How long a disk may take before it is said that it does not answer, and between two looks for a signal. */
#define ANSWER_NS (5 * NS_PER_S)
#define LOOK_MS 200

/* ---- a disk that does not answer ---- */

/* Reads the beginning of each file below the folder NAME: what hangs hangs here. */
static void read_folder(int dir_fd, const char *name)
{
        const struct dirent *entry = NULL;
        char page[4096];
        int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        _cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        if (!dir)
                return;
        while ((entry = readdir(dir))) { /* NOLINT(concurrency-mt-unsafe): one thread */
                _cleanup_close_ int file =
                        openat(fd, entry->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
                if (file >= 0)
                        (void) !pread(file, page, sizeof page, 0);
        }
}

static int look(int root_fd, void *userdata)
{
        _cleanup_close_ int fd = openat(root_fd, (const char *) userdata, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0)
                return 0; /* whoever opens it says why */
        read_folder(fd, ".");
        read_folder(fd, "runs");
        return 0;
}

/* The signals that end the daemon are blocked while it starts. */
static bool is_to_end(void)
{
        sigset_t pending;

        return sigpending(&pending) == 0 && (sigismember(&pending, SIGTERM) || sigismember(&pending, SIGINT));
}

/* A child looks first: this process would hang in the kernel, where nothing ends it. -EINTR: a signal did. */
static int wait_for_answer(const char *path)
{
        uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
        bool said = false;
        Background *child = NULL;

        _cleanup_close_ int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
        int r = here < 0 ? -errno : background_new(&child, "tierprobe-look", here, look, (void *) path);
        if (r < 0)
                return 0; /* without a look */
        while (r >= 0 && background_result(child) == -EAGAIN) {
                struct pollfd end = { .fd = background_get_fd(child), .events = POLLIN };

                (void) poll(&end, 1, LOOK_MS);
                if (is_to_end())
                        r = -EINTR;
                if (clock_ns(CLOCK_MONOTONIC) - begin_ns < ANSWER_NS)
                        continue;
                if (!said)
                        log_warning("%s: the disk of the state directory does not answer; the start waits "
                                    "for it",
                                    path);
                said = true;
                (void) sd_notify(0, "EXTEND_TIMEOUT_USEC=30000000\n"
                                    "STATUS=waiting for the disk of the state directory");
        }
        (void) background_free(child);
        return r;
}

/* ---- opening ---- */

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
        int r = wait_for_answer(path);

        if (r < 0)
                return r;
        if (mkdir(path, 0750) < 0 && errno != EEXIST) {
                r = -errno;
                log_error(
                        "%s: cannot make the state directory: %s; make it, or name another with --state-dir",
                        path, strerror(-r));
                return r;
        }
        _cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 || faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) < 0) {
                r = -errno;
                log_error("%s: the state directory cannot be written: %s", path, strerror(-r));
                return r;
        }
        r = lock(fd);
        if (r < 0) {
                log_error("%s: another tierprobed uses this state directory; stop it, or name another with "
                          "--state-dir",
                          path);
                return r;
        }
        *ret_fd = TAKE_FD(fd);
        return 0;
}
