/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's own words on a stack of devices: one row of a table for each. Plain reads of attributes that
 * the kernel answers from memory (condition.h lists those that it does not). */

#include "tierprobe/condition.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/file.h"
#include "tierprobe/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define MEMBERS_MAX 64 /* of a btrfs that are looked at */

#define KIND(kind) (1U << (kind))
#define KINDS_DM (KIND(DEVICE_LVM) | KIND(DEVICE_CRYPT) | KIND(DEVICE_MULTIPATH) | KIND(DEVICE_DM))
#define KINDS_NVME (KIND(DEVICE_NVME) | KIND(DEVICE_NVME_PATH))

typedef struct StateRow {
        unsigned kinds; /* of the nodes that may have it */
        const char *name, *file;
        const char *fine; /* the values that are as they should be, with a "|" before and behind each; NULL:
                             any */
        const char *meaning, *if_changed;
} StateRow;

static const StateRow node_rows[] = {
        { KIND(DEVICE_RAID), "md.level", "md/level", NULL, NULL, NULL },
        { KIND(DEVICE_RAID), "md.state", "md/array_state",
          "|clean|active|active-idle|write-pending|read-auto|", "the array does not take writes as it should",
          "the array changed its state meanwhile" },
        { KIND(DEVICE_RAID), "md.sync_action", "md/sync_action", "|idle|frozen|",
          "the array is being rebuilt, checked or reshaped, which takes a part of its throughput",
          "the array began or ended to be rebuilt, checked or reshaped meanwhile" },
        { KIND(DEVICE_RAID), "md.sync_completed", "md/sync_completed", NULL, NULL, NULL },
        { KIND(DEVICE_RAID), "md.degraded", "md/degraded", "|0|", "members of the array are missing",
          "the array lost or regained members meanwhile" },
        { KIND(DEVICE_RAID), "md.consistency_policy", "md/consistency_policy", NULL, NULL, NULL },
        { KINDS_DM, "dm.suspended", "dm/suspended", "|0|", "the mapping is suspended, writes to it wait",
          NULL },
        { KIND(DEVICE_DISK), "disk.state", "device/state", "|running|",
          "the kernel does not send the device commands as usual", "the device's state changed meanwhile" },
        { KIND(DEVICE_DISK), "scsi.timeouts", "device/iotmo_cnt", NULL, NULL,
          "commands to the device timed out meanwhile" },
        { KIND(DEVICE_DISK), "scsi.errors", "device/ioerr_cnt", NULL, NULL,
          "commands to the device ended with an error meanwhile" },
        { KIND(DEVICE_DISK), "scsi.queue_depth", "device/queue_depth", NULL, NULL, NULL },
        { KIND(DEVICE_DISK), "mmc.life_time", "device/life_time", NULL, NULL, NULL },
        { KIND(DEVICE_DISK), "mmc.pre_eol_info", "device/pre_eol_info", "|0x00|0x01|",
          "the device is near the end of its life", NULL },
        { KINDS_NVME, "nvme.state", "device/state", "|live|", "the controller is not at work as usual",
          "the controller's state changed meanwhile" },
        { KINDS_NVME, "nvme.transport", "device/transport", NULL, NULL, NULL },
        { KINDS_NVME | KIND(DEVICE_DISK), "disk.write_cache", "queue/write_cache", NULL, NULL,
          "the device's write cache was turned on or off meanwhile" },
};

/* A drive that a hypervisor or a cloud makes up: what lies behind it cannot be seen from here. */
static const struct {
        const char *prefix; /* of vendor and model, joined with a blank */
} virtual_disks[] = {
        { "QEMU" },
        { "VMware" },
        { "Msft Virtual" },
        { "VBOX" },
        { "Google PersistentDisk" },
        { "Xen" },
        { "Amazon Elastic" },
        { "ORACLE BlockVolume" },
        { "Nutanix" },
        { "DO Volume" },
        { " QEMU" },
        { " VMware" },
        { " VBOX" },
        { " Amazon Elastic" },
        { " nvme_card-pd" },
        { "Microsoft NVMe" },
        { " MSFT NVMe" },
        { "Virtio" },
        { " Virtio" },
};

/* ---- keeping facts ---- */

static StateFact *add_fact(States *states, const char *device, const char *name, const char *value)
{
        if (states->n == MAX_STATE_FACTS) {
                states->cut = true;
                return NULL;
        }
        StateFact *fact = &states->items[states->n++];
        *fact = (StateFact){ .name = name };
        text_copy_clean(fact->device, sizeof fact->device, device);
        text_copy_clean(fact->value, sizeof fact->value, value);
        return fact;
}

static bool is_fine(const char *fine, const char *value)
{
        char wanted[80];

        if (!fine)
                return true;
        (void) snprintf(wanted, sizeof wanted, "|%.70s|", value);
        return strstr(fine, wanted) != NULL;
}

/* The attribute below FD that ROW names, if it is there. Controllers say "deleting (no IO)": one line. */
static void read_row(int fd, const char *device, const StateRow *row, States *states)
{
        char value[256];

        ssize_t n = read_attribute_at(fd, row->file, value, sizeof value);
        if (n <= 0)
                return;
        StateFact *fact = add_fact(states, device, row->name, value);
        if (!fact)
                return;
        fact->if_changed = row->if_changed;
        if (!is_fine(row->fine, value))
                fact->meaning = row->meaning;
}

/* ---- devices ---- */

static void note_virtual(const DeviceNode *node, States *states)
{
        char model[200];

        (void) snprintf(model, sizeof model, "%s %s", node->vendor, node->model);
        if (strncmp(node->name, "vd", 2) == 0 && node->kind == DEVICE_DISK)
                (void) add_fact(states, node->name, "disk.virtual", "virtio");
        else if (strncmp(node->name, "xvd", 3) == 0 && node->kind == DEVICE_DISK)
                (void) add_fact(states, node->name, "disk.virtual", "xen");
        else
                for (size_t i = 0; i < ELEMENTSOF(virtual_disks); i++)
                        if (strncmp(model, virtual_disks[i].prefix, strlen(virtual_disks[i].prefix)) == 0) {
                                (void) add_fact(states, node->name, "disk.virtual",
                                                model + strspn(model, " "));
                                break;
                        }
}

static void read_node(const DeviceRoots *roots, const DeviceNode *node, States *states)
{
        _cleanup_close_ int fd = device_node_open(roots, node);

        for (size_t i = 0; fd >= 0 && i < ELEMENTSOF(node_rows); i++)
                if (node_rows[i].kinds & KIND(node->kind))
                        read_row(fd, node->name, &node_rows[i], states);
        note_virtual(node, states);
}

/* ---- file systems ---- */

static const StateRow btrfs_operation = {
        0,
        "btrfs.exclusive_operation",
        "exclusive_operation",
        "|none|",
        "the file system is being balanced, resized or rebuilt, which takes a part of its throughput",
        "the file system began or ended to be balanced, resized or rebuilt meanwhile",
};
static const StateRow btrfs_missing = {
        0, "btrfs.missing", "missing", "|0|", "a device of the file system is missing", NULL
};

/* "write_errs 0\nread_errs 0\n...": the first is what counts for a write test. */
static void read_btrfs_errors(int fd, const char *device, States *states)
{
        static const char wanted[] = "write_errs ";
        _cleanup_free_ char *text = NULL;

        if (read_file_at(fd, "error_stats", 4096, &text, NULL) < 0 ||
            strncmp(text, wanted, sizeof wanted - 1) != 0)
                return;
        char *value = text + sizeof wanted - 1;
        value[strcspn(value, "\n")] = '\0';
        StateFact *fact = add_fact(states, device, "btrfs.write_errors", value);
        if (!fact)
                return;
        fact->if_changed = "writes to a device of the file system failed meanwhile";
        if (strcmp(value, "0") != 0)
                fact->meaning = "writes to a device of the file system have failed before";
}

static void read_btrfs(int sys_fd, const char *uuid, States *states)
{
        char path[256];
        unsigned n = 0;

        (void) snprintf(path, sizeof path, "fs/btrfs/%s", uuid);
        _cleanup_close_ int fd = openat(sys_fd, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return;
        read_row(fd, uuid, &btrfs_operation, states);
        int list_fd = openat(fd, "devinfo", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        _cleanup_closedir_ DIR *dir = list_fd < 0 ? NULL : fdopendir(list_fd);
        if (!dir) {
                close_fdp(&list_fd);
                return;
        }
        for (struct dirent *entry; n < MEMBERS_MAX && (entry = readdir(dir));) {
                if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
                        continue;
                n++;
                _cleanup_close_ int member = openat(list_fd, entry->d_name, O_PATH | O_DIRECTORY | O_CLOEXEC);
                if (member < 0)
                        continue;
                char name[DEVICE_NAME_SIZE];
                (void) snprintf(name, sizeof name, "%.36s/%.20s", uuid, entry->d_name);
                read_row(member, name, &btrfs_missing, states);
                read_btrfs_errors(member, name, states);
        }
}

static const StateRow ext4_rows[] = {
        { 0, "ext4.errors", "errors_count", "|0|",
          "the file system has recorded errors: check it with e2fsck",
          "the file system recorded errors meanwhile" },
        { 0, "ext4.lifetime_write_kbytes", "lifetime_write_kbytes", NULL, NULL, NULL },
};
static const StateRow f2fs_rows[] = {
        { 0, "f2fs.lifetime_write_kbytes", "lifetime_write_kbytes", NULL, NULL, NULL },
};

static void read_filesystem(const DeviceRoots *roots, const Device *device, States *states)
{
        const char *type = device->filesystem ? device->filesystem : "";
        bool ext4 = strncmp(type, "ext", 3) == 0, f2fs = strcmp(type, "f2fs") == 0;
        _cleanup_close_ int sys_fd = open(roots->sysfs, O_PATH | O_DIRECTORY | O_CLOEXEC);

        if (sys_fd < 0)
                return;
        if (device->fs_uuid[0] && !strchr(device->fs_uuid, '/'))
                read_btrfs(sys_fd, device->fs_uuid, states);
        for (size_t i = 0; i < device->n_nodes && (ext4 || f2fs); i++) {
                const DeviceNode *node = &device->nodes[i];
                char path[256];

                if (node->parent >= 0)
                        continue;
                (void) snprintf(path, sizeof path, "fs/%s/%s", ext4 ? "ext4" : "f2fs", node->name);
                _cleanup_close_ int fd = openat(sys_fd, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
                const StateRow *rows = ext4 ? ext4_rows : f2fs_rows;
                size_t n = ext4 ? ELEMENTSOF(ext4_rows) : ELEMENTSOF(f2fs_rows);
                for (size_t j = 0; fd >= 0 && j < n; j++)
                        read_row(fd, node->name, &rows[j], states);
        }
}

/* ---- all of it ---- */

void states_read(const DeviceRoots *roots, const Device *device, States *ret)
{
        ret->n = 0;
        ret->cut = false;
        read_filesystem(roots, device, ret); /* first: of a thousand nodes it must not be what is cut */
        for (size_t i = 0; i < device->n_nodes; i++)
                read_node(roots, &device->nodes[i], ret);
}

void states_compare(const States *before, States *after)
{
        for (size_t i = 0; i < after->n; i++) {
                StateFact *fact = &after->items[i];

                for (size_t j = 0; j < before->n; j++) {
                        const StateFact *then = &before->items[j];
                        if (strcmp(then->name, fact->name) != 0 || strcmp(then->device, fact->device) != 0)
                                continue;
                        if (strcmp(then->value, fact->value) != 0) {
                                memcpy(fact->was, then->value, sizeof fact->was);
                                if (fact->if_changed)
                                        fact->meaning = fact->if_changed;
                        }
                        break;
                }
        }
}

const StateFact *states_worst(const States *states)
{
        for (size_t i = 0; i < states->n; i++)
                if (states->items[i].meaning)
                        return &states->items[i];
        return NULL;
}
