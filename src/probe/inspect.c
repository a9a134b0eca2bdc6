/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at a path in a child: stat of a dying disk or a lost server may not return. */

#include "denial.h"
#include "test-file.h"

#include "tierprobe/child.h"
#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

struct PathInspection {
        Child *child;
        bool collected;
};

/* Whether files are made in a folder of our own in there. */
static bool has_work_dir(const char *path, dev_t dev)
{
        _cleanup_close_ int dir_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        _cleanup_close_ int fd = dir_fd >= 0 ? test_file_open_work_dir(dir_fd, dev) : -1;

        return fd >= 0 && faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) == 0;
}

static void look(const char *path, PathFacts *facts)
{
        char stripped[PATH_MAX], resolved[PATH_MAX];
        struct statvfs vfs;
        struct statfs fs;
        struct stat st;

        /* With a final slash lstat() would look through a link. */
        size_t size = strlen(path);
        while (size > 1 && path[size - 1] == '/')
                size--;
        memcpy(stripped, path, size);
        stripped[size] = '\0';

        if (lstat(stripped, &st) < 0) {
                facts->error = errno;
                path_denial_find(stripped, &facts->denial);
                return;
        }
        facts->is_link = S_ISLNK(st.st_mode);
        if (facts->is_link && stat(stripped, &st) < 0) {
                facts->error = errno;
                path_denial_find(stripped, &facts->denial);
                return;
        }
        if (realpath(stripped, resolved))
                memcpy(facts->resolved, resolved, strlen(resolved) + 1);
        facts->error = S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
        facts->dev = st.st_dev;
        if (statvfs(stripped, &vfs) == 0) {
                uint64_t unit = vfs.f_frsize ? vfs.f_frsize : vfs.f_bsize;
                if (__builtin_mul_overflow((uint64_t) vfs.f_bavail, unit, &facts->free_bytes))
                        facts->free_bytes = UINT64_MAX;
                if (__builtin_mul_overflow((uint64_t) vfs.f_blocks, unit, &facts->total_bytes))
                        facts->total_bytes = UINT64_MAX;
                facts->read_only = (vfs.f_flag & ST_RDONLY) != 0;
        }
        if (statfs(stripped, &fs) == 0)
                facts->fs_type = (uint64_t) (unsigned long) fs.f_type;
        if (facts->error == 0 && !has_work_dir(stripped, st.st_dev) &&
            faccessat(AT_FDCWD, stripped, W_OK | X_OK, AT_EACCESS) < 0) {
                facts->write_error = errno;
                path_denial_find(stripped, &facts->denial);
        }
}

/* Only where the look has been: a name on the way may lead elsewhere by now. */
static void sweep(PathFacts *facts)
{
        _cleanup_close_ int dir_fd = -1;
        dev_t dev;
        int error;

        if (test_file_open(facts->resolved, &dir_fd, &dev, &error) == PROBE_OK && dev == facts->dev)
                facts->swept = test_file_sweep(dir_fd);
}

typedef struct Order {
        char path[PATH_MAX];
        bool sweep;
} Order;

static void __attribute__((noreturn)) inspection_main(int socket, void *userdata)
{
        const Order *order = userdata;
        PathFacts facts;

        memset(&facts, 0, sizeof facts); /* padding included: it goes over a socket */
        look(order->path, &facts);
        if (order->sweep && facts.error == 0)
                sweep(&facts);
        (void) send(socket, &facts, sizeof facts, MSG_NOSIGNAL);
        _exit(EXIT_SUCCESS);
}

int path_inspection_new(const char *path, bool sweep, PathInspection **ret)
{
        Order order = { .sweep = sweep };
        size_t size = strlen(path);

        if (size == 0 || path[0] != '/')
                return -EINVAL;
        if (size >= sizeof order.path)
                return -ENAMETOOLONG;
        memcpy(order.path, path, size + 1);

        _cleanup_(path_inspection_freep) PathInspection *inspection = calloc(1, sizeof *inspection);
        if (!inspection)
                return -ENOMEM;
        int r = child_spawn("tierprobe-look", inspection_main, &order, &inspection->child);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(inspection);
        return 0;
}

PathInspection *path_inspection_free(PathInspection *inspection)
{
        if (!inspection)
                return NULL;
        (void) child_abandon(inspection->child);
        free(inspection);
        return NULL;
}

void path_inspection_freep(PathInspection **inspection)
{
        (void) path_inspection_free(*inspection);
}

int path_inspection_get_fd(const PathInspection *inspection)
{
        /* Readable when the child has ended, with its answer in the socket: nothing is left to reap later. */
        return inspection->child->pidfd;
}

int path_inspection_collect(PathInspection *inspection, PathFacts *ret)
{
        PathFacts facts;
        siginfo_t info;

        if (inspection->collected)
                return -EIO;
        if (!child_reap(inspection->child, &info))
                return -EAGAIN;
        ssize_t n = recv(inspection->child->socket, &facts, sizeof facts, MSG_DONTWAIT);
        /* The descriptor stays open for as long as the inspection lives: the caller may still poll it, and
         * one that is closed while polled is reported on for as long as a child forked meanwhile has a copy.
         */
        inspection->collected = true;
        if (n != (ssize_t) sizeof facts)
                return -EIO;
        facts.resolved[sizeof facts.resolved - 1] = '\0';
        *ret = facts;
        return 0;
}

int path_inspect(const char *path, uint64_t timeout_ns, PathFacts *ret)
{
        _cleanup_(path_inspection_freep) PathInspection *inspection = NULL;
        uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), end_ns;

        if (__builtin_add_overflow(now_ns, timeout_ns, &end_ns))
                end_ns = UINT64_MAX;
        int r = path_inspection_new(path, false, &inspection);
        if (r < 0)
                return r;
        for (;;) {
                struct pollfd poll_fd = { .fd = path_inspection_get_fd(inspection), .events = POLLIN };

                r = path_inspection_collect(inspection, ret);
                if (r != -EAGAIN)
                        return r;
                now_ns = clock_ns(CLOCK_MONOTONIC);
                if (now_ns >= end_ns)
                        break;
                uint64_t rest_ns = end_ns - now_ns;
                struct timespec rest = { .tv_sec = (time_t) (rest_ns / NS_PER_S),
                                         .tv_nsec = (long) (rest_ns % NS_PER_S) };
                if (ppoll(&poll_fd, 1, &rest, NULL) < 0 && errno != EINTR)
                        return -errno;
        }
        *ret = (PathFacts){ .error = ETIMEDOUT };
        return 0;
}
