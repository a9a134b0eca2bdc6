/* SPDX-License-Identifier: Apache-2.0 */
/* Which physical disks a device stands on, by names that last. Pure. */

#include "device-internal.h"

#include <stdio.h>
#include <string.h>

/* Whether the whole disk of partition PARTITION is in the stack: of several on it, it names one as its
 * parent. */
static bool disk_is_there(const Device *device, const DeviceNode *partition)
{
        for (size_t i = 0; i < device->n_nodes; i++) {
                const DeviceNode *node = &device->nodes[i];
                if (node->kind != DEVICE_PARTITION &&
                    strncmp(partition->name, node->name, strlen(node->name)) == 0)
                        return true;
        }
        return false;
}

bool device_node_is_leaf(const Device *device, size_t index)
{
        const DeviceNode *node = &device->nodes[index];

        if (node->kind == DEVICE_NVME_PATH || (node->kind == DEVICE_PARTITION && disk_is_there(device, node)))
                return false;
        for (size_t i = 0; i < device->n_nodes; i++)
                if (device->nodes[i].parent == (int) index && device->nodes[i].kind != DEVICE_NVME_PATH)
                        return false;
        return true;
}

/* A long one is known by its end: paths differ there. */
static void make_key(DiskKey key, const char *kind, const char *name)
{
        size_t room = DISK_KEY_SIZE - strlen(kind) - 1, length = strlen(name);

        (void) snprintf(key, DISK_KEY_SIZE, "%s%s", kind, length > room ? name + length - room : name);
}

static void describe(const Device *device, size_t index, DiskKey key)
{
        const DeviceNode *node = &device->nodes[index];
        const DeviceNode *above = node->parent >= 0 && (size_t) node->parent < device->n_nodes
                                          ? &device->nodes[node->parent]
                                          : NULL;
        char model_and_serial[sizeof node->model + sizeof node->serial];

        if (*node->wwid) {
                make_key(key, "wwid:", node->wwid);
        } else if (*node->serial) {
                (void) snprintf(model_and_serial, sizeof model_and_serial, "%s/%s", node->model,
                                node->serial);
                make_key(key, "serial:", model_and_serial);
        } else if (*node->part_uuid) {
                make_key(key, "partuuid:", node->part_uuid);
        } else if (above && *above->part_uuid) {
                make_key(key, "partuuid:", above->part_uuid);
        } else if (*node->backing_file) {
                make_key(key, "file:", node->backing_file);
        } else if (*node->dm_uuid) {
                make_key(key, "dm:", node->dm_uuid);
        } else {
                make_key(key, "name:", node->name);
        }
}

static bool has_key(const DiskKey *keys, size_t n, const char *key)
{
        for (size_t i = 0; i < n; i++)
                if (strcmp(keys[i], key) == 0)
                        return true;
        return false;
}

size_t device_disks(const Device *device, DiskKey *keys, size_t max)
{
        size_t n = 0;

        for (size_t i = 0; i < device->n_nodes && n < max; i++) {
                if (!device_node_is_leaf(device, i))
                        continue;
                describe(device, i, keys[n]);
                n += !has_key(keys, n, keys[n]);
        }
        return n;
}
