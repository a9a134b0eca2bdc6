/* SPDX-License-Identifier: Apache-2.0 */
/* From a path to the row to judge: mount, file system, block device stack, identity.
 *
 * Knows base, iostat, and plain reads below the given roots. Never opens or stats the path itself: a hung
 * disk would hang the caller; who needs that asks a child (probe.h, path_inspect()). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tierprobe/iostat.h"

typedef struct DeviceRoots {
        const char *procfs; /* "/proc": mountinfo is read from PROCFS/self/mountinfo, rows from
                               PROCFS/diskstats */
        const char *sysfs;  /* "/sys" */
} DeviceRoots;

typedef enum DeviceKind {
        DEVICE_DISK,
        DEVICE_PARTITION,
        DEVICE_LOOP,
        DEVICE_LVM,
        DEVICE_CRYPT,
        DEVICE_MULTIPATH, /* device-mapper multipath */
        DEVICE_DM,        /* any other device-mapper target */
        DEVICE_RAID,      /* md */
        DEVICE_NVME,      /* a namespace, or the head of native multipath */
        DEVICE_NVME_PATH, /* one path below such a head (hidden) */
        DEVICE_ZRAM,
        _DEVICE_KIND_MAX,
} DeviceKind;

/* "disk", "partition", "loop", "lvm", "crypt", "multipath", "dm", "raid", "nvme", "nvme_path", "zram". */
const char *device_kind_to_string(DeviceKind kind);

/* One block device of the stack, as /sys describes it. Empty text, negative numbers and size or diskseq 0:
 * not known. A partition shows its disk's queue and diskseq. */
typedef struct DeviceNode {
        char name[DEVICE_NAME_SIZE]; /* kernel name as /sys has it ("cciss!c0d0"), for sampler_new() */
        uint32_t major, minor;       /* 0:0 for a hidden NVMe path */
        DeviceKind kind;
        int parent; /* index of the node above it, -1 for a top one; the first, where several lie on it */
        char dm_name[128], dm_uuid[160];
        char model[128], serial[128], wwid[128], vendor[64], firmware[64];
        char scheduler[32], write_cache[32];
        char backing_file[512]; /* loop */
        char part_uuid[48];     /* of a partition: as the kernel says it (newer ones do), or udev's link */
        int dio;                /* loop: 1 direct I/O to the backing file, 0 through the page cache */
        int iostats; /* queue/iostats: 0 means the row stands still; -1 for zram, which does not heed it */
        int fua, rotational, read_only;
        int64_t max_sectors_kb, nr_requests, logical_block_size, physical_block_size;
        uint64_t size_bytes, diskseq;
} DeviceNode;

/* Whether there is a row to judge. */
typedef enum DeviceStatus {
        DEVICE_OK,
        DEVICE_NO_BLOCK,     /* tmpfs, NFS, FUSE, ...: no row; reason no_block_device */
        DEVICE_NOT_MOUNTED,  /* no mount holds the path */
        DEVICE_UNRESOLVABLE, /* there may be one, but the way to it is not visible from here */
} DeviceStatus;

/* All text is UTF-8 without control characters ("?" stands for what is not). */
typedef struct Device {
        DeviceStatus status;
        char *detail; /* why the status is not DEVICE_OK, or what the reader must know: which rows serve and
                       * why, "loop0 writes through the page cache"; NULL when there is nothing to say */
        char *mount_point, *filesystem, *mount_source, *mount_root, *mount_options,
                *super_options; /* NULL when no mount holds the path */
        char fs_uuid[64];       /* of btrfs; empty for others */
        bool journals_data;     /* ext3, ext4: data=journal, i.e. what is written is written twice */
        DeviceNode *nodes;      /* the whole stack, tops first, each after its parent, each once */
        size_t n_nodes;

        /* The judged row: usually one name. Several: a file system on several devices, or the leaves that
         * serve in place of an untimed, disabled or blind top. */
        char name[DEVICE_NAME_SIZE]; /* its name for people and JSON: the row's name, or the first of several
                                      * joined with "+" as far as they fit */
        uint32_t major, minor;
        size_t *rows; /* indexes into nodes */
        size_t n_rows;
        bool leaves_serve;   /* the rows are leaves, not the top; those of a mirror each see every byte */
        bool cache_in_front; /* a loop device on the way goes through the page cache: unless the leaves serve,
                              * the row shows that cache */
} Device;

/* Finds the device of PATH, which must be absolute and resolved (no symbolic links), in
 * ROOTS->procfs/self/mountinfo as the kernel would walk it: the longest, last-mounted match that nothing
 * mounted over hides. PATH_DEV is what stat() of the path said (0 when not known); it serves only where no
 * mount matches, as in a chroot whose root is not a mount. OVERRIDE names the device instead ("sdb",
 * "/dev/sdb", "dm-3", "mapper/x", "/dev/vg/lv"); NULL, "" or "auto" finds it.
 *
 * The judged row is the top device's, for a partition its whole disk's (unless OVERRIDE names the
 * partition). When that row is disabled (queue/iostats is 0), untimed (it has counted writes but not a
 * millisecond) or blind (an NVMe head of older kernels, zero while its paths move), and the rows of the
 * leaves below are not, the leaves serve and detail says so. A loop device is judged on its own row, unless
 * it writes through the page cache and the disk below it can be judged.
 *
 * Always gives a Device, honest about what it could not find (status, detail). Returns 0, -EINVAL (PATH is
 * not absolute), -ENOMEM, or the error of reading mountinfo (-EFBIG above 16 MiB). Touches nothing but
 * ROOTS and, for names below /dev that ROOTS do not know, /dev. Owned by the caller, device_free(). */
int device_resolve(const DeviceRoots *roots, const char *path, dev_t path_dev, const char *override,
                   Device **ret);
Device *device_free(Device *device);
void device_freep(Device **device);

/* A deep copy, for what outlives its target (a run's evidence). 0 or -ENOMEM. */
int device_copy(const Device *device, Device **ret);

/* Whether two devices meet on a disk, anywhere in their stacks: runs on them must not overlap. When either is
 * unknown, whether their mounts' sources are the same. */
bool device_shares_disk(const Device *a, const Device *b);

/* Whether the same rows would be judged: the same names and numbers in the same order. */
bool device_same_rows(const Device *a, const Device *b);

/* The name of a physical disk that it keeps over reboots and renamings, where it has one: "wwid:eui.0025...",
 * else "serial:MODEL/...", "partuuid:..." of its partition in use, "file:/path" of a loop device, "dm:..."
 * or, as the last resort, "name:vda". */
#define DISK_KEY_SIZE 320
typedef char DiskKey[DISK_KEY_SIZE];

/* The physical disks at the bottom of the stack of DEVICE, each once: fills KEYS, returns how many (at most
 * MAX). Paths to one disk are one. */
size_t device_disks(const Device *device, DiskKey *keys, size_t max);

/* ---- one test a disk ---- */

typedef struct DiskLock DiskLock;

#define DISK_HOLDER_SIZE 64

/* After so many refusals in a row there is a test: whoever only looks holds a disk for an instant. */
#define DISK_LOCK_REFUSALS 3

/* Locks the physical disks below DEVICE for one test, against every program on this host that does the same;
 * released by disk_lock_free() or the end of the process. Children do not have it. -EBUSY when somebody has
 * one of them, with "tierprobed (process 4711)" for a sentence in RET_HOLDER (DISK_HOLDER_SIZE bytes; NULL:
 * not asked, which spares going through all locks of the host); -ENOMEM. Never blocks. A disk that sysfs does
 * not show is not locked; nor does a container with a sysfs of its own network namespace see the host's
 * locks. */
int disk_lock_new(DiskLock **ret, const DeviceRoots *roots, const Device *device, char *ret_holder);

/* Whether a test has one of them. Any number may look at once, and none takes another for a test. */
bool disk_is_locked(const DeviceRoots *roots, const Device *device);
DiskLock *disk_lock_free(DiskLock *lock);
void disk_lock_freep(DiskLock **lock);

/* The names of the judged rows, for sampler_new(): fills NAMES with pointers into DEVICE, returns how many
 * (at most MAX). */
size_t device_row_names(const Device *device, const char **names, size_t max);

/* Opens the directory of NODE in SYSFS (O_PATH), the caller's to close. -ENOENT when there is none. */
int device_node_open(const DeviceRoots *roots, const DeviceNode *node);
