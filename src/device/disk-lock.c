/* SPDX-License-Identifier: Apache-2.0 */
/* One test a disk, over all programs of a host: an flock() on the kernel's own name of the disk, the
 * attribute `dev` that anybody may read. It needs no file and no permission, and ends with whoever holds it.
 * Touches the disks' folders in sysfs, and PROCFS/locks. */

#include "device-internal.h"

#include "tierprobe/file.h"
#include "tierprobe/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define MAX_DISKS 64
#define MAX_LINES 100000 /* of PROCFS/locks: a database has thousands */

struct DiskLock {
        size_t n_fds;
        int fds[MAX_DISKS];
};

static int open_leaf(const DeviceRoots *roots, const DeviceNode *node)
{
        _cleanup_close_ int folder_fd = device_node_open(roots, node);

        if (folder_fd < 0)
                return folder_fd;
        int fd = openat(folder_fd, "dev", O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        return fd < 0 ? -errno : fd;
}

/* "tierprobe (process 4711)" for whoever holds the lock of FD. */
static void name_holder(const DeviceRoots *roots, int fd, char holder[DISK_HOLDER_SIZE])
{
        _cleanup_free_ char *path = path_format("%s/locks", roots->procfs);
        _cleanup_fclose_ FILE *locks = path ? fopen(path, "re") : NULL;
        char line[256];
        struct stat st;

        (void) snprintf(holder, DISK_HOLDER_SIZE, "another program");
        if (!locks || fstat(fd, &st) < 0)
                return;
        for (size_t i = 0; i < MAX_LINES && fgets(line, sizeof line, locks); i++) {
                unsigned long long inode = 0;
                unsigned major = 0, minor = 0;
                int pid = 0;

                if (sscanf(line, "%*[0-9]: FLOCK ADVISORY %*[A-Z] %d %x:%x:%llu", &pid, &major, &minor,
                           &inode) != 4 ||
                    pid <= 0 || inode != st.st_ino || makedev(major, minor) != st.st_dev)
                        continue;
                _cleanup_free_ char *comm_path = path_format("%s/%d/comm", roots->procfs, pid);
                _cleanup_fclose_ FILE *comm = comm_path ? fopen(comm_path, "re") : NULL;
                char name[32] = "", clean[32];

                if (comm && fgets(name, sizeof name, comm))
                        name[strcspn(name, "\n")] = '\0';
                text_copy_clean(clean, sizeof clean, name);
                (void) snprintf(holder, DISK_HOLDER_SIZE, "%s (process %d)",
                                *clean ? clean : "another program", pid);
                return;
        }
}

/* Takes the lock HOW (LOCK_EX or LOCK_SH) of each disk. */
static int lock_all(DiskLock **ret, const DeviceRoots *roots, const Device *device, int how, char *ret_holder)
{
        _cleanup_(disk_lock_freep) DiskLock *lock = calloc(1, sizeof *lock);

        if (!lock)
                return -ENOMEM;
        for (size_t i = 0; i < device->n_nodes && lock->n_fds < ELEMENTSOF(lock->fds); i++) {
                int fd = device_node_is_leaf(device, i) ? open_leaf(roots, &device->nodes[i]) : -ENOENT;

                if (fd < 0)
                        continue; /* what the kernel does not show cannot be held by anybody */
                lock->fds[lock->n_fds++] = fd;
                if (flock(fd, how | LOCK_NB) == 0 || errno != EWOULDBLOCK)
                        continue;
                if (ret_holder)
                        name_holder(roots, fd, ret_holder);
                return -EBUSY;
        }
        *ret = TAKE_PTR(lock);
        return 0;
}

int disk_lock_new(DiskLock **ret, const DeviceRoots *roots, const Device *device, char *ret_holder)
{
        return lock_all(ret, roots, device, LOCK_EX, ret_holder);
}

bool disk_is_locked(const DeviceRoots *roots, const Device *device)
{
        _cleanup_(disk_lock_freep) DiskLock *lock = NULL;

        return lock_all(&lock, roots, device, LOCK_SH, NULL) == -EBUSY;
}

DiskLock *disk_lock_free(DiskLock *lock)
{
        if (!lock)
                return NULL;
        for (size_t i = 0; i < lock->n_fds; i++) {
                /* A child that has not come to close what it was forked with would keep it. */
                (void) flock(lock->fds[i], LOCK_UN);
                (void) close(lock->fds[i]);
        }
        free(lock);
        return NULL;
}

void disk_lock_freep(DiskLock **lock)
{
        disk_lock_free(*lock);
}
