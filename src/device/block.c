/* SPDX-License-Identifier: Apache-2.0 */
/* Block devices by number and by name below the given roots: /sys first, /proc/diskstats where it is
 * missing (a chroot). */

#include "block.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/file.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define PATH_SIZE 512
#define NAMES_MAX 100000
#define LINKS_MAX 8 /* absolute ones below /dev, one after another */

void blocks_open(Blocks *blocks, const DeviceRoots *roots)
{
        *blocks = (Blocks){
                .procfs = roots->procfs,
                .sys_fd = open(roots->sysfs, O_PATH | O_DIRECTORY | O_CLOEXEC),
        };
}

void blocks_done(Blocks *blocks)
{
        close_fdp(&blocks->sys_fd);
        free(blocks->diskstats);
        *blocks = (Blocks){ .sys_fd = -1 };
}

/* Takes NAME as a kernel name, with "!" for "/". No driver uses more than printable ASCII. */
static int set_name(BlockId *id, const char *name)
{
        size_t length = strlen(name);

        if (length == 0 || length >= sizeof id->name || name[0] == '.')
                return -ENOENT;
        for (size_t i = 0; i < length; i++)
                if (name[i] <= ' ' || name[i] > '~')
                        return -ENOENT;
        memcpy(id->name, name, length + 1);
        name_to_sysfs(id->name);
        return 0;
}

/* ---- /proc/diskstats ---- */

static int load_diskstats(Blocks *blocks)
{
        if (!blocks->diskstats_read) {
                int r = diskstats_read(blocks->procfs, &blocks->diskstats, &blocks->diskstats_size);
                if (r == -ENOMEM)
                        return r;
                blocks->diskstats_read = true; /* unreadable is empty */
        }
        return 0;
}

/* The first row for which TAKES says true; RET_COUNTERS may be NULL. */
static bool diskstats_find(const Blocks *blocks, bool (*takes)(const BlockId *id, const void *data),
                           const void *data, BlockId *ret, Counters *ret_counters)
{
        Diskstats rest = { .text = blocks->diskstats, .size = blocks->diskstats_size };
        DiskstatsRow row;

        while (diskstats_next(&rest, &row)) {
                BlockId id = { .major = row.major, .minor = row.minor };
                if (set_name(&id, row.name) < 0 || !takes(&id, data))
                        continue;
                *ret = id;
                if (ret_counters)
                        *ret_counters = row.counters;
                return true;
        }
        return false;
}

static bool row_has_number(const BlockId *row, const void *data)
{
        const BlockId *wanted = data;

        return row->major == wanted->major && row->minor == wanted->minor;
}

static bool row_has_name(const BlockId *row, const void *data)
{
        const BlockId *wanted = data;

        return strcmp(row->name, wanted->name) == 0;
}

/* Whether PARTITION is a partition of DISK by the kernel's naming: "sda1", "nvme0n1p1". */
static bool names_partition(const char *disk, const char *partition)
{
        size_t n = strlen(disk);

        if (n == 0 || strncmp(disk, partition, n) != 0)
                return false;
        const char *rest = partition + n;
        if (isdigit((unsigned char) disk[n - 1]) && *rest++ != 'p')
                return false;
        return *rest != '\0' && rest[strspn(rest, "0123456789")] == '\0';
}

static bool row_is_disk_of(const BlockId *row, const void *data)
{
        const BlockId *partition = data;

        return names_partition(row->name, partition->name);
}

bool blocks_row(Blocks *blocks, const BlockId *id, Counters *ret)
{
        BlockId row;

        return load_diskstats(blocks) == 0 && diskstats_find(blocks, row_has_name, id, &row, ret);
}

/* ---- /sys ---- */

static bool read_number(int dir_fd, const char *path, uint32_t *ret_major, uint32_t *ret_minor)
{
        char text[32], rest;
        unsigned int ma, mi;

        if (read_attribute_at(dir_fd, path, text, sizeof text) < 0 ||
            sscanf(text, "%9u:%9u%c", &ma, &mi, &rest) != 2)
                return false;
        *ret_major = ma;
        *ret_minor = mi;
        return true;
}

static bool any_name(const char *name)
{
        return name[0] != '.';
}

static int compare_names(const void *a, const void *b)
{
        return strverscmp(*(char *const *) a, *(char *const *) b);
}

void names_done(Names *names)
{
        for (size_t i = 0; i < names->n; i++)
                free(names->list[i]);
        free(names->list);
        *names = (Names){};
}

static int names_add(Names *names, const char *name)
{
        char **grown = reallocarray(names->list, names->n + 1, sizeof *grown);
        if (!grown)
                return -ENOMEM;
        names->list = grown;
        grown[names->n] = strdup(name);
        if (!grown[names->n])
                return -ENOMEM;
        names->n++;
        return 0;
}

int names_read(int dir_fd, const char *path, bool (*filter)(const char *name), Names *ret)
{
        _cleanup_(names_done) Names names = {};

        int fd = openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        _cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        if (!dir)
                close_fdp(&fd);
        for (struct dirent *entry; dir && names.n < NAMES_MAX && (entry = readdir(dir));)
                if ((filter ? filter : any_name)(entry->d_name) && names_add(&names, entry->d_name) < 0)
                        return -ENOMEM;
        if (names.n > 0)
                qsort(names.list, names.n, sizeof *names.list, compare_names);
        *ret = names;
        names = (Names){};
        return 0;
}

static const char *const directories[] = { "class/block", "block" };

int blocks_open_directory(const Blocks *blocks, const BlockId *id)
{
        char path[PATH_SIZE];
        int fd = -1;

        for (size_t i = 0; blocks->sys_fd >= 0 && fd < 0 && i < ELEMENTSOF(directories); i++) {
                (void) snprintf(path, sizeof path, "%s/%s", directories[i], id->name);
                fd = openat(blocks->sys_fd, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        }
        if (fd < 0 && blocks->sys_fd >= 0 && id->major != 0) {
                (void) snprintf(path, sizeof path, "dev/block/%u:%u", id->major, id->minor);
                fd = openat(blocks->sys_fd, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        }
        return fd < 0 ? -ENOENT : fd;
}

/* Looks through all names: only for trees without dev/block. */
static int scan_for_number(const Blocks *blocks, BlockId *id)
{
        for (size_t i = 0; i < ELEMENTSOF(directories); i++) {
                _cleanup_(names_done) Names names = {};
                if (names_read(blocks->sys_fd, directories[i], NULL, &names) < 0)
                        return -ENOMEM;
                for (size_t j = 0; j < names.n; j++) {
                        char path[PATH_SIZE];
                        uint32_t ma, mi;
                        (void) snprintf(path, sizeof path, "%s/%s/dev", directories[i], names.list[j]);
                        if (read_number(blocks->sys_fd, path, &ma, &mi) && ma == id->major &&
                            mi == id->minor && set_name(id, names.list[j]) == 0)
                                return 0;
                }
        }
        return -ENOENT;
}

int blocks_find_number(Blocks *blocks, uint32_t major, uint32_t minor, BlockId *ret)
{
        BlockId id = { .major = major, .minor = minor };
        char path[64], target[4096];
        int r = -ENOENT;

        if (blocks->sys_fd >= 0) {
                (void) snprintf(path, sizeof path, "dev/block/%u:%u", major, minor);
                ssize_t n = readlinkat(blocks->sys_fd, path, target, sizeof target - 1);
                if (n > 0) {
                        target[n] = '\0';
                        const char *slash = strrchr(target, '/');
                        const char *name = slash ? slash + 1 : target;
                        r = set_name(&id, name);
                } else
                        r = scan_for_number(blocks, &id);
        }
        if (r == -ENOENT) {
                r = load_diskstats(blocks);
                if (r == 0 && !diskstats_find(blocks, row_has_number, &id, &id, NULL))
                        r = -ENOENT;
        }
        if (r == 0)
                *ret = id;
        return r;
}

int blocks_find_name(Blocks *blocks, const char *name, BlockId *ret)
{
        BlockId id = {};

        int r = set_name(&id, name);
        if (r < 0)
                return r;
        _cleanup_close_ int fd = blocks_open_directory(blocks, &id);
        if (fd >= 0)
                (void) read_number(fd, "dev", &id.major, &id.minor);
        else {
                r = load_diskstats(blocks);
                if (r < 0)
                        return r;
                if (!diskstats_find(blocks, row_has_name, &id, &id, NULL))
                        return -ENOENT;
        }
        *ret = id;
        return 0;
}

int blocks_find_disk(Blocks *blocks, const BlockId *id, BlockId *ret)
{
        uint32_t ma, mi;

        _cleanup_close_ int fd = blocks_open_directory(blocks, id);
        if (fd < 0) {
                int r = load_diskstats(blocks);
                return r < 0 ? r : diskstats_find(blocks, row_is_disk_of, id, ret, NULL) ? 0 : -ENOENT;
        }
        if (faccessat(fd, "partition", F_OK, 0) < 0)
                return -ENOENT;
        if (read_number(fd, "../dev", &ma, &mi))
                return blocks_find_number(blocks, ma, mi, ret);

        /* A tree of copied directories instead of links: by name. */
        BlockId disk = *id;
        size_t n = strlen(disk.name);
        while (n > 0 && isdigit((unsigned char) disk.name[n - 1]))
                n--;
        if (n > 1 && disk.name[n - 1] == 'p' && isdigit((unsigned char) disk.name[n - 2]))
                n--;
        disk.name[n] = '\0';
        return blocks_find_name(blocks, disk.name, ret);
}

/* ---- as it is written ---- */

static bool is_dm(const char *name)
{
        return strncmp(name, "dm-", 3) == 0;
}

/* The device that device-mapper calls NAME. */
static int find_mapped(Blocks *blocks, const char *name, BlockId *ret)
{
        for (size_t i = 0; i < ELEMENTSOF(directories); i++) {
                _cleanup_(names_done) Names names = {};
                if (names_read(blocks->sys_fd, directories[i], is_dm, &names) < 0)
                        return -ENOMEM;
                for (size_t j = 0; j < names.n; j++) {
                        char path[PATH_SIZE], mapped[256];
                        (void) snprintf(path, sizeof path, "%s/%s/dm/name", directories[i], names.list[j]);
                        if (read_attribute_at(blocks->sys_fd, path, mapped, sizeof mapped) >= 0 &&
                            strcmp(mapped, name) == 0)
                                return blocks_find_name(blocks, names.list[j], ret);
                }
        }
        return -ENOENT;
}

/* "vg/lv" is mapped as "vg-lv", hyphens within a name doubled. */
static int find_volume(Blocks *blocks, const char *text, BlockId *ret)
{
        char name[256];
        size_t used = 0;
        bool slash = false;

        for (const char *p = text; *p != '\0'; p++) {
                if (used + 3 > sizeof name || (*p == '/' && slash))
                        return -ENOENT;
                if (*p == '/')
                        slash = true;
                if (*p == '-')
                        name[used++] = '-';
                name[used++] = (char) (*p == '/' ? '-' : *p);
        }
        name[used] = '\0';
        return slash ? find_mapped(blocks, name, ret) : -ENOENT;
}

/* What NAME below /dev is, on the very file system of /dev, which is memory: what is mounted below it
 * (/dev/shm/image may lie on a file system that hangs) is not entered. Follows at most DEPTH absolute links.
 */
static int stat_in_dev(const char *name, unsigned depth, struct stat *ret)
{
        struct open_how how = { .flags = O_PATH | O_CLOEXEC,
                                .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS };

        _cleanup_close_ int dev_fd = open("/dev", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (dev_fd < 0)
                return -errno;
        _cleanup_close_ int fd = (int) syscall(SYS_openat2, dev_fd, name, &how, sizeof how);
        if (fd >= 0)
                return fstat(fd, ret) < 0 ? -errno : 0;
        if (errno != EXDEV || depth == 0)
                return -errno;

        /* A link by its whole path leads out of /dev before it leads in again. */
        char target[PATH_SIZE];
        how.flags |= O_NOFOLLOW;
        fd = (int) syscall(SYS_openat2, dev_fd, name, &how, sizeof how);
        ssize_t length = fd < 0 ? -1 : readlinkat(fd, "", target, sizeof target - 1);
        if (length < 0)
                return -errno;
        target[length] = '\0';
        return strncmp(target, "/dev/", 5) == 0 ? stat_in_dev(target + 5, depth - 1, ret) : -EXDEV;
}

int blocks_find_written(Blocks *blocks, const char *text, BlockId *ret)
{
        const char *name = strncmp(text, "/dev/", 5) == 0 ? text + 5 : text;
        struct stat st = {};

        if (name[0] == '\0' || name[0] == '/')
                return -ENOENT;
        if (strncmp(name, "mapper/", 7) == 0) {
                int r = find_mapped(blocks, name + 7, ret);
                if (r != -ENOENT)
                        return r;
        } else {
                int r = blocks_find_name(blocks, name, ret);
                if (r == -ENOENT)
                        r = find_volume(blocks, name, ret);
                if (r == -ENOENT)
                        r = find_mapped(blocks, name, ret);
                if (r != -ENOENT)
                        return r;
        }

        /* /dev/disk/by-id/... and the like. */
        if (name == text || stat_in_dev(name, LINKS_MAX, &st) < 0 || !S_ISBLK(st.st_mode))
                return -ENOENT;
        return blocks_find_number(blocks, major(st.st_rdev), minor(st.st_rdev), ret);
}

int device_node_open(const DeviceRoots *roots, const DeviceNode *node)
{
        Blocks blocks;
        BlockId id = { .major = node->major, .minor = node->minor };

        memcpy(id.name, node->name, sizeof id.name);
        blocks_open(&blocks, roots);
        int fd = blocks_open_directory(&blocks, &id);
        blocks_done(&blocks);
        return fd;
}
