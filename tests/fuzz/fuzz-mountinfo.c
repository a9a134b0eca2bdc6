/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves against any bytes as mountinfo and as diskstats. The first byte chooses whether there is a /sys,
 * the rest of the first line is the path, what follows both files. Seeds: -dict is not needed, the parts that
 * matter are few. */

#include "tierprobe/cleanup.h"
#include "tierprobe/device.h"

#include <err.h>
#include <ftw.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char root[] = "/tmp/tierprobe-fuzz-mountinfo-XXXXXX";
static int memory_fd = -1;
static DeviceRoots with_sys, without_sys;

static void check(int r, const char *what)
{
        if (r < 0)
                err(1, "%s", what);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
        (void) st;
        (void) type;
        (void) ftw;
        return remove(path);
}

static void remove_tree(void)
{
        (void) nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* A tree whose mountinfo and diskstats are one memory file, and a /sys of two disks, one of them in a btrfs.
 */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
        static char procfs[64], sysfs[64], link[64];

        (void) argc;
        (void) argv;
        memory_fd = memfd_create("mountinfo", MFD_CLOEXEC);
        check(memory_fd, "memfd");
        if (!mkdtemp(root))
                err(1, "%s", root);
        check(atexit(remove_tree), "atexit");
        check(chdir(root), root);
        snprintf(link, sizeof link, "/proc/self/fd/%d", memory_fd);
        check(mkdir("proc", 0755), "proc");
        check(mkdir("proc/self", 0755), "self");
        check(symlink(link, "proc/self/mountinfo"), "mountinfo");
        check(symlink(link, "proc/diskstats"), "diskstats");
        static const char *const directories[] = {
                "sys",
                "sys/class",
                "sys/class/block",
                "sys/class/block/sda",
                "sys/class/block/dm-0",
                "sys/dev",
                "sys/dev/block",
                "sys/fs",
                "sys/fs/btrfs",
                "sys/fs/btrfs/11111111-aaaa-4bbb-8ccc-000000000001",
                "sys/fs/btrfs/11111111-aaaa-4bbb-8ccc-000000000001/devices",
                "sys/fs/btrfs/11111111-aaaa-4bbb-8ccc-000000000001/devices/sda",
        };
        for (size_t i = 0; i < ELEMENTSOF(directories); i++)
                check(mkdir(directories[i], 0755), directories[i]);
        check(symlink("../../class/block/sda", "sys/dev/block/8:0"), "8:0");
        check(symlink("../../class/block/dm-0", "sys/dev/block/253:0"), "253:0");
        snprintf(procfs, sizeof procfs, "%s/proc", root);
        snprintf(sysfs, sizeof sysfs, "%s/sys", root);
        with_sys = (DeviceRoots){ .procfs = procfs, .sysfs = sysfs };
        without_sys = (DeviceRoots){ .procfs = procfs, .sysfs = "/nonexistent" };
        return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_(device_freep) Device *device = NULL, *copy = NULL;
        const uint8_t *newline = size > 0 ? memchr(data, '\n', size) : NULL;
        char path[512] = "/";

        if (!newline || (size_t) (newline - data) >= sizeof path)
                return -1;
        if (newline > data + 1)
                memcpy(path + 1, data + 1, (size_t) (newline - data - 1));
        size -= (size_t) (newline + 1 - data);
        check(ftruncate(memory_fd, 0), "truncate");
        if (pwrite(memory_fd, newline + 1, size, 0) != (ssize_t) size)
                err(1, "write");

        if (device_resolve(data[0] & 1 ? &with_sys : &without_sys, path, 0, NULL, &device) < 0)
                return 0;
        if ((device->status == DEVICE_OK) != (device->n_rows > 0))
                abort();
        if (device_copy(device, &copy) < 0 || !device_same_rows(device, copy))
                abort();
        return 0;
}
