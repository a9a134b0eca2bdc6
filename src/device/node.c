/* SPDX-License-Identifier: Apache-2.0 */
/* What /sys says of one block device: kind, identity, queue, and whether its row can be trusted. */

#include "block.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/file.h"
#include "tierprobe/text.h"
#include "tierprobe/units.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>

/* An attribute as clean text without blanks around it; empty when there is none. */
static bool read_text(int fd, const char *path, char *ret, size_t size)
{
        char text[4096];

        if (read_attribute_at(fd, path, text, sizeof text) < 0)
                return false;
        text_copy_clean(ret, size, text + strspn(text, " \t"));
        return ret[0] != '\0';
}

static int64_t read_count(int fd, const char *path)
{
        char text[32];
        uint64_t value;

        if (read_attribute_at(fd, path, text, sizeof text) < 0 || parse_u64(text, &value) < 0 ||
            value > INT64_MAX)
                return -1;
        return (int64_t) value;
}

static int read_flag(int fd, const char *path)
{
        int64_t value = read_count(fd, path);

        return value < 0 ? -1 : value != 0;
}

/* ---- kind ---- */

/* Skips PREFIX and the digits that must follow it; NULL when they do not. */
static const char *skip_numbered(const char *s, const char *prefix)
{
        size_t n = strlen(prefix);

        if (!s || strncmp(s, prefix, n) != 0 || !isdigit((unsigned char) s[n]))
                return NULL;
        return s + n + strspn(s + n, "0123456789");
}

static bool is_numbered(const char *s, const char *prefix)
{
        s = skip_numbered(s, prefix);
        return s && *s == '\0';
}

bool block_is_nvme_path(const char *name, const char *head)
{
        const char *controller = skip_numbered(name, "nvme");
        const char *namespace = skip_numbered(controller, "c");

        if (!namespace || !is_numbered(namespace, "n"))
                return false;
        size_t subsystem = (size_t) (controller - name);
        return !head || (strncmp(name, head, subsystem) == 0 && strcmp(namespace, head + subsystem) == 0);
}

static bool has_prefix(const char *text, const char *prefix)
{
        return strncmp(text, prefix, strlen(prefix)) == 0;
}

static DeviceKind kind_of(int fd, bool partition, const DeviceNode *node)
{
        const char *namespace = skip_numbered(node->name, "nvme");

        if (partition)
                return DEVICE_PARTITION;
        if (node->dm_uuid[0] != '\0' || is_numbered(node->name, "dm-"))
                return has_prefix(node->dm_uuid, "LVM-")     ? DEVICE_LVM
                       : has_prefix(node->dm_uuid, "CRYPT-") ? DEVICE_CRYPT
                       : has_prefix(node->dm_uuid, "mpath-") ? DEVICE_MULTIPATH
                                                             : DEVICE_DM;
        if (is_numbered(node->name, "md") || (fd >= 0 && faccessat(fd, "md", F_OK, 0) == 0))
                return DEVICE_RAID;
        if (is_numbered(node->name, "loop"))
                return DEVICE_LOOP;
        if (is_numbered(node->name, "zram"))
                return DEVICE_ZRAM;
        if (block_is_nvme_path(node->name, NULL))
                return DEVICE_NVME_PATH;
        if (is_numbered(namespace, "n"))
                return DEVICE_NVME;
        return DEVICE_DISK;
}

/* ---- attributes ---- */

/* "mq-deadline" of "none [mq-deadline] kyber". */
static void read_scheduler(int fd, const char *path, char *ret, size_t size)
{
        char text[256];

        if (!read_text(fd, path, text, sizeof text))
                return;
        char *open = strchr(text, '['), *close = open ? strchr(open, ']') : NULL;
        if (close)
                *close = '\0';
        text_copy_clean(ret, size, close ? open + 1 : text);
}

/* SCSI has its serial number only in the raw page 0x80: four bytes of header, the last two its length. */
static void read_vpd_serial(int fd, char *ret, size_t size)
{
        _cleanup_free_ char *page = NULL;
        size_t n = 0;

        if (read_file_at(fd, "device/vpd_pg80", 4096, &page, &n) < 0 || n <= 4)
                return;
        size_t length = (size_t) (unsigned char) page[2] << 8 | (unsigned char) page[3];
        if (length < n - 4)
                page[4 + length] = '\0';
        char *text = page + 4 + strspn(page + 4, " ");
        for (size_t end = strlen(text); end > 0 && text[end - 1] == ' '; end--)
                text[end - 1] = '\0';
        text_copy_clean(ret, size, text);
}

static void read_part_uuid(int fd, DeviceNode *node)
{
        _cleanup_free_ char *text = NULL;
        char *value = NULL;

        if (read_file_at(fd, "uevent", 4096, &text, NULL) < 0 || !(value = strstr(text, "PARTUUID=")))
                return;
        value += strlen("PARTUUID=");
        value[strcspn(value, "\n")] = '\0';
        text_copy_clean(node->part_uuid, sizeof node->part_uuid, value);
}

static void read_identity(int fd, DeviceNode *node)
{
        if (!read_text(fd, "device/model", node->model, sizeof node->model))
                (void) read_text(fd, "device/name", node->model, sizeof node->model); /* mmc */
        if (!read_text(fd, "device/serial", node->serial, sizeof node->serial) &&
            !read_text(fd, "serial", node->serial, sizeof node->serial)) /* virtio */
                read_vpd_serial(fd, node->serial, sizeof node->serial);
        if (!read_text(fd, "wwid", node->wwid, sizeof node->wwid))
                (void) read_text(fd, "device/wwid", node->wwid, sizeof node->wwid);
        (void) read_text(fd, "device/vendor", node->vendor, sizeof node->vendor);
        if (!read_text(fd, "device/firmware_rev", node->firmware, sizeof node->firmware) &&
            !read_text(fd, "device/rev", node->firmware, sizeof node->firmware))
                (void) read_text(fd, "device/fwrev", node->firmware, sizeof node->firmware);
        (void) read_text(fd, "dm/name", node->dm_name, sizeof node->dm_name);
        (void) read_text(fd, "dm/uuid", node->dm_uuid, sizeof node->dm_uuid);
        (void) read_text(fd, "loop/backing_file", node->backing_file, sizeof node->backing_file);
        node->dio = read_flag(fd, "loop/dio");
        read_part_uuid(fd, node);
}

#define LINKS_MAX 4096

/* The link that udev has made to it. Names in this machine's /dev mean nothing in a recorded tree. */
static void find_part_uuid(const Blocks *blocks, DeviceNode *node)
{
        struct statfs fs;

        if (fstatfs(blocks->sys_fd, &fs) < 0 || fs.f_type != SYSFS_MAGIC)
                return;
        _cleanup_closedir_ DIR *dir = opendir("/dev/disk/by-partuuid");
        unsigned n = 0;
        for (struct dirent *entry; dir && n++ < LINKS_MAX && (entry = readdir(dir));) {
                char target[PATH_MAX];
                ssize_t length = readlinkat(dirfd(dir), entry->d_name, target, sizeof target - 1);
                if (length <= 0)
                        continue;
                target[length] = '\0';
                const char *slash = strrchr(target, '/');
                if (strcmp(slash ? slash + 1 : target, node->name) == 0)
                        text_copy_clean(node->part_uuid, sizeof node->part_uuid, entry->d_name);
        }
}

static void read_queue(int fd, DeviceNode *node)
{
        node->iostats = read_flag(fd, "iostats");
        node->fua = read_flag(fd, "fua");
        node->rotational = read_flag(fd, "rotational");
        node->max_sectors_kb = read_count(fd, "max_sectors_kb");
        node->nr_requests = read_count(fd, "nr_requests");
        node->logical_block_size = read_count(fd, "logical_block_size");
        node->physical_block_size = read_count(fd, "physical_block_size");
        read_scheduler(fd, "scheduler", node->scheduler, sizeof node->scheduler);
        (void) read_text(fd, "write_cache", node->write_cache, sizeof node->write_cache);
}

/* ---- the row ---- */

static void judge_row(const Counters *c, RowFacts *facts)
{
        facts->read = true;
        facts->moved = c->r_ios != 0 || c->w_ios != 0;
        facts->untimed = c->w_ios != 0 && c->r_ms == 0 && c->w_ms == 0 && c->io_ms == 0 && c->queue_ms == 0;
}

void block_describe(Blocks *blocks, const BlockId *id, DeviceNode *ret_node, RowFacts *ret_facts)
{
        DeviceNode node = {
                .major = id->major,
                .minor = id->minor,
                .parent = -1,
                .dio = -1,
                .iostats = -1,
                .fua = -1,
                .rotational = -1,
                .read_only = -1,
                .max_sectors_kb = -1,
                .nr_requests = -1,
                .logical_block_size = -1,
                .physical_block_size = -1,
        };
        RowFacts facts = {};
        Counters counters;
        BlockId disk;
        char row[512];

        memcpy(node.name, id->name, sizeof node.name);
        _cleanup_close_ int fd = blocks_open_directory(blocks, id);
        bool partition;
        if (fd >= 0) {
                partition = faccessat(fd, "partition", F_OK, 0) == 0;
                /* A partition has no queue, no identity and no sequence number of its own. */
                _cleanup_close_ int queue =
                        openat(fd, partition ? "../queue" : "queue", O_PATH | O_DIRECTORY | O_CLOEXEC);
                if (queue >= 0)
                        read_queue(queue, &node);
                read_identity(fd, &node);
                if (partition && node.part_uuid[0] == '\0')
                        find_part_uuid(blocks, &node);
                int64_t sectors = read_count(fd, "size");
                int64_t sequence = read_count(fd, partition ? "../diskseq" : "diskseq");
                node.size_bytes = sectors > 0 && sectors <= INT64_MAX / SECTOR_BYTES
                                          ? (uint64_t) sectors * SECTOR_BYTES
                                          : 0;
                node.diskseq = sequence > 0 ? (uint64_t) sequence : 0;
                node.read_only = read_flag(fd, "ro");
                ssize_t n = read_attribute_at(fd, "stat", row, sizeof row);
                if (n >= 0 && counters_parse(row, (size_t) n, &counters) == 0)
                        judge_row(&counters, &facts);
        } else {
                partition = blocks_find_disk(blocks, id, &disk) == 0;
                if (blocks_row(blocks, id, &counters))
                        judge_row(&counters, &facts);
        }
        node.kind = kind_of(fd, partition, &node);
        if (node.kind == DEVICE_ZRAM) /* it counts whatever this says, and says 0 by default */
                node.iostats = -1;
        *ret_node = node;
        *ret_facts = facts;
}
