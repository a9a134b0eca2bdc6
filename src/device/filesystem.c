/* SPDX-License-Identifier: Apache-2.0 */
/* From a path to the devices that own its file system: by number where the mount has one, by what each kind
 * of file system tells where it has not. */

#include "device-internal.h"

#include "tierprobe/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#define IDS_MAX 1024

void found_done(Found *found)
{
        free(found->why);
        free(found->ids);
        mount_done(&found->mount);
        *found = (Found){};
}

static bool is_one_of(const char *text, const char *const *list, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (strcmp(text, list[i]) == 0)
                        return true;
        return false;
}

/* ---- answers ---- */

static int answer(Found *found, DeviceStatus status, const char *format, ...) _printf_(3, 4);

static int answer(Found *found, DeviceStatus status, const char *format, ...)
{
        char *why = NULL;
        va_list ap;

        va_start(ap, format);
        int n = vasprintf(&why, format, ap);
        va_end(ap);
        if (n < 0)
                return -ENOMEM;
        free(found->why);
        found->why = why;
        found->status = status;
        return 0;
}

static int add_id(Found *found, const BlockId *id)
{
        if (found->n_ids >= IDS_MAX)
                return -E2BIG;
        BlockId *grown = reallocarray(found->ids, found->n_ids + 1, sizeof *grown);
        if (!grown)
                return -ENOMEM;
        found->ids = grown;
        found->ids[found->n_ids++] = *id;
        return 0;
}

static int answer_number(Resolver *resolver, uint32_t major, uint32_t minor, Found *found)
{
        BlockId id;

        int r = blocks_find_number(&resolver->blocks, major, minor, &id);
        if (r == -ENOENT)
                return answer(found, DEVICE_UNRESOLVABLE,
                              "block device %u:%u is not visible here, neither in sysfs nor in diskstats",
                              major, minor);
        found->status = DEVICE_OK;
        return r < 0 ? r : add_id(found, &id);
}

/* ---- file systems without a device number ---- */

static int answer_no_block(Found *found)
{
        static const char *const memory[] = { "tmpfs", "ramfs", "devtmpfs", "hugetlbfs", "rootfs" };
        static const char *const network[] = { "nfs",  "nfs4",   "cifs",     "smb3",     "smbfs", "ceph",
                                               "9p",   "afs",    "lustre",   "virtiofs", "gpfs",  "glusterfs",
                                               "coda", "beegfs", "orangefs", "vboxsf" };
        const char *type = found->mount.filesystem;

        if (is_one_of(type, memory, ELEMENTSOF(memory)))
                return answer(found, DEVICE_NO_BLOCK,
                              "%s keeps its files in memory, no block device is written", type);
        if (is_one_of(type, network, ELEMENTSOF(network)))
                return answer(
                        found, DEVICE_NO_BLOCK,
                        "%s stores its files elsewhere (%s), no block device of this machine is written",
                        type, found->mount.source);
        if (strcmp(type, "fuse") == 0 || strncmp(type, "fuse.", 5) == 0)
                return answer(found, DEVICE_NO_BLOCK,
                              "%s is served by a program, which block device it writes is not known", type);
        if (strcmp(type, "zfs") == 0)
                return answer(
                        found, DEVICE_NO_BLOCK,
                        "ZFS has no row of its own, and its pool %s does not say which devices it writes",
                        found->mount.source);
        return answer(found, DEVICE_NO_BLOCK, "%s has no block device", type);
}

/* The devices that SOURCE names, joined with ":" (bcachefs). */
static int answer_sources(Resolver *resolver, Found *found)
{
        _cleanup_free_ char *sources = strdup(found->mount.source);
        if (!sources)
                return -ENOMEM;

        char *rest = sources;
        for (char *source; (source = strsep(&rest, ":"));) {
                BlockId id;
                int r = blocks_find_written(&resolver->blocks, source, &id);
                if (r == -ENOENT) {
                        found->n_ids = 0;
                        return answer(found, DEVICE_UNRESOLVABLE, "%s names %s, which is not visible here",
                                      found->mount.filesystem, source);
                }
                if (r == 0)
                        r = add_id(found, &id);
                if (r < 0)
                        return r;
        }
        found->status = DEVICE_OK;
        return 0;
}

/* ---- btrfs ---- */

/* Takes the file system UUID if one of its devices is called SOURCE (NULL: whatever it has). */
static int btrfs_take(Resolver *resolver, int btrfs_fd, const char *uuid, const BlockId *source, Found *found)
{
        _cleanup_(names_done) Names names = {};
        bool member = !source;
        char path[64];
        BlockId id;

        (void) snprintf(path, sizeof path, "%s/devices", uuid);
        if (names_read(btrfs_fd, path, NULL, &names) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < names.n && !member; i++)
                member = strcmp(names.list[i], source->name) == 0;
        if (!member || names.n == 0)
                return -ENOENT;
        text_copy_clean(found->fs_uuid, sizeof found->fs_uuid, uuid);
        for (size_t i = 0; i < names.n; i++) {
                int r = blocks_find_name(&resolver->blocks, names.list[i], &id);
                if (r == -ENOENT) {
                        found->n_ids = 0;
                        return answer(found, DEVICE_UNRESOLVABLE,
                                      "btrfs %s lies on %s, which is not visible here", uuid, names.list[i]);
                }
                if (r == 0)
                        r = add_id(found, &id);
                if (r < 0)
                        return r;
        }
        return 0;
}

static bool is_uuid(const char *name)
{
        return strlen(name) == 36 && strspn(name, "0123456789abcdef-") == 36;
}

/* The mount names one of its devices; /sys/fs/btrfs knows them all. */
static int answer_btrfs(Resolver *resolver, Found *found)
{
        _cleanup_(names_done) Names uuids = {};
        BlockId source;

        int known = blocks_find_written(&resolver->blocks, found->mount.source, &source);
        if (known == -ENOMEM)
                return known;
        found->status = DEVICE_OK;
        _cleanup_close_ int fd =
                openat(resolver->blocks.sys_fd, "fs/btrfs", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (names_read(fd, ".", is_uuid, &uuids) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < uuids.n; i++) {
                /* When the source is "/dev/root" or the like: the only one there is. */
                if (known < 0 && uuids.n > 1)
                        break;
                int r = btrfs_take(resolver, fd, uuids.list[i], known == 0 ? &source : NULL, found);
                if (r != -ENOENT)
                        return r;
        }
        if (known < 0)
                return answer(found, DEVICE_UNRESOLVABLE, "btrfs names %s, which is not visible here",
                              found->mount.source);
        int r = answer(
                found, DEVICE_OK,
                "sysfs does not say which devices this btrfs has: only %s, which the mount names, is judged",
                source.name);
        return r < 0 ? r : add_id(found, &source);
}

/* ---- overlay, and all of it ---- */

static int find_at_depth(Resolver *resolver, const char *path, dev_t path_dev, unsigned depth, Found *ret);

/* The kernel prints the directory as it was given, with overlay's own escapes in it ("\\," for a comma). */
static void overlay_unescape(char *path)
{
        char *to = path;

        for (const char *from = path; *from != '\0'; from++) {
                if (from[0] == '\\' && from[1] != '\0')
                        from++;
                *to++ = *from;
        }
        *to = '\0';
}

/* Writes go to the file system of upperdir. */
static int answer_overlay(Resolver *resolver, unsigned depth, Found *found)
{
        _cleanup_free_ char *upper = NULL;
        Found below = {};

        int r = mount_option(found->mount.super_options_encoded, "upperdir", &upper);
        if (r == -ENOENT)
                return answer(found, DEVICE_NO_BLOCK, "this overlay has no upperdir, nothing can be written");
        if (r < 0)
                return r;
        overlay_unescape(upper);
        if (upper[0] != '/')
                return answer(
                        found, DEVICE_UNRESOLVABLE,
                        "the overlay's upperdir %s is relative to where it was mounted from, which nobody "
                        "knows any more",
                        upper);
        if (depth >= DEPTH_MAX)
                return answer(found, DEVICE_UNRESOLVABLE, "overlays lie in overlays more than %d deep",
                              DEPTH_MAX);
        r = find_at_depth(resolver, upper, 0, depth + 1, &below);
        if (r < 0)
                return r;

        bool itself = below.mount.mount_point && below.mount.id == found->mount.id;
        if (itself || below.status == DEVICE_NOT_MOUNTED)
                r = answer(found, DEVICE_UNRESOLVABLE,
                           "the overlay's upperdir %s is outside of what is visible here, as in a container",
                           upper);
        else if (below.status != DEVICE_OK)
                r = answer(found, below.status, "the overlay's upperdir %s: %s", upper, below.why);
        else
                r = answer(found, DEVICE_OK, "the overlay writes to its upperdir %s (%s)%s%s", upper,
                           below.mount.filesystem ? below.mount.filesystem : "?", below.why ? ", " : "",
                           below.why ? below.why : "");
        if (r == 0 && found->status == DEVICE_OK) {
                found->ids = TAKE_PTR(below.ids);
                found->n_ids = below.n_ids;
                memcpy(found->fs_uuid, below.fs_uuid, sizeof found->fs_uuid);
        }
        found_done(&below);
        return r;
}

static int answer_mounted(Resolver *resolver, unsigned depth, Found *found)
{
        const Mount *mount = &found->mount;

        if (mount->major != 0)
                return answer_number(resolver, mount->major, mount->minor, found);
        if (strcmp(mount->filesystem, "btrfs") == 0)
                return answer_btrfs(resolver, found);
        if (strcmp(mount->filesystem, "overlay") == 0)
                return answer_overlay(resolver, depth, found);
        if (strcmp(mount->filesystem, "bcachefs") == 0)
                return answer_sources(resolver, found);
        return answer_no_block(found);
}

static int find_at_depth(Resolver *resolver, const char *path, dev_t path_dev, unsigned depth, Found *ret)
{
        Found found = {};

        int r = mounts_find(resolver->mountinfo, resolver->mountinfo_size, path, &found.mount);
        if (r == 0)
                r = answer_mounted(resolver, depth, &found);
        else if (r == -ENOENT && major(path_dev) != 0)
                r = answer_number(resolver, major(path_dev), minor(path_dev), &found);
        else if (r == -ENOENT && path_dev != 0)
                r = answer(&found, DEVICE_UNRESOLVABLE,
                           "no visible mount holds %s, and its file system has no block device number", path);
        else if (r == -ENOENT)
                r = answer(&found, DEVICE_NOT_MOUNTED, "no mount holds %s", path);

        if (r == -E2BIG) {
                found.n_ids = 0;
                r = answer(&found, DEVICE_UNRESOLVABLE, "too many mounts or devices lie on the way to %s",
                           path);
        }
        if (r < 0) {
                found_done(&found);
                return r;
        }
        *ret = found;
        return 0;
}

int filesystem_find(Resolver *resolver, const char *path, dev_t path_dev, Found *ret)
{
        return find_at_depth(resolver, path, path_dev, 0, ret);
}
