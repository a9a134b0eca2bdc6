/* SPDX-License-Identifier: Apache-2.0 */
/* A resolved device as lines of "key: value". */

#include "device-text.h"

#include "tierprobe/cleanup.h"

#include <inttypes.h>
#include <stddef.h>

static void print_text(FILE *to, const char *prefix, const char *key, const char *value)
{
        fprintf(to, "%s%s:%s%s\n", prefix, key, value && value[0] ? " " : "", value ? value : "");
}

static const char *status_name(DeviceStatus status)
{
        switch (status) {
        case DEVICE_OK:
                return "ok";
        case DEVICE_NO_BLOCK:
                return "no_block_device";
        case DEVICE_NOT_MOUNTED:
                return "not_mounted";
        case DEVICE_UNRESOLVABLE:
                return "unresolvable";
        }
        return NULL;
}

static void print_node(FILE *to, const DeviceNode *n)
{
        char prefix[DEVICE_NAME_SIZE + 2];

        snprintf(prefix, sizeof prefix, "%s.", n->name);
        fprintf(to, "%snumber: %u:%u\n", prefix, n->major, n->minor);
        print_text(to, prefix, "kind", device_kind_to_string(n->kind));
        print_text(to, prefix, "dm_name", n->dm_name);
        print_text(to, prefix, "dm_uuid", n->dm_uuid);
        print_text(to, prefix, "model", n->model);
        print_text(to, prefix, "serial", n->serial);
        print_text(to, prefix, "wwid", n->wwid);
        print_text(to, prefix, "vendor", n->vendor);
        print_text(to, prefix, "firmware", n->firmware);
        print_text(to, prefix, "scheduler", n->scheduler);
        print_text(to, prefix, "write_cache", n->write_cache);
        print_text(to, prefix, "part_uuid", n->part_uuid);
        print_text(to, prefix, "backing_file", n->backing_file);
        fprintf(to, "%sdio: %d\n", prefix, n->dio);
        fprintf(to, "%siostats: %d\n", prefix, n->iostats);
        fprintf(to, "%sfua: %d\n", prefix, n->fua);
        fprintf(to, "%srotational: %d\n", prefix, n->rotational);
        fprintf(to, "%sread_only: %d\n", prefix, n->read_only);
        fprintf(to, "%smax_sectors_kb: %" PRId64 "\n", prefix, n->max_sectors_kb);
        fprintf(to, "%snr_requests: %" PRId64 "\n", prefix, n->nr_requests);
        fprintf(to, "%slogical_block_size: %" PRId64 "\n", prefix, n->logical_block_size);
        fprintf(to, "%sphysical_block_size: %" PRId64 "\n", prefix, n->physical_block_size);
        fprintf(to, "%ssize_bytes: %" PRIu64 "\n", prefix, n->size_bytes);
        fprintf(to, "%sdiskseq: %" PRIu64 "\n", prefix, n->diskseq);
}

void device_print(const Device *device, FILE *to)
{
        print_text(to, "", "status", status_name(device->status));
        print_text(to, "", "detail", device->detail);
        print_text(to, "", "mount_point", device->mount_point);
        print_text(to, "", "filesystem", device->filesystem);
        print_text(to, "", "mount_source", device->mount_source);
        print_text(to, "", "mount_root", device->mount_root);
        print_text(to, "", "mount_options", device->mount_options);
        print_text(to, "", "super_options", device->super_options);
        print_text(to, "", "fs_uuid", device->fs_uuid);
        DiskKey disks[16];
        size_t n_disks = device_disks(device, disks, ELEMENTSOF(disks));
        fputs("disks:", to);
        for (size_t i = 0; i < n_disks; i++)
                fprintf(to, " %s", disks[i]);
        fputc('\n', to);
        fprintf(to, "journals_data: %s\n", device->journals_data ? "yes" : "no");
        print_text(to, "", "name", device->name);
        fprintf(to, "number: %u:%u\n", device->major, device->minor);
        fputs("rows:", to);
        for (size_t i = 0; i < device->n_rows; i++)
                fprintf(to, " %s", device->nodes[device->rows[i]].name);
        fprintf(to, "\nleaves_serve: %s\n", device->leaves_serve ? "yes" : "no");
        fprintf(to, "cache_in_front: %s\n", device->cache_in_front ? "yes" : "no");
        fputs("stack:", to);
        for (size_t i = 0; i < device->n_nodes; i++) {
                const DeviceNode *n = &device->nodes[i];
                if (n->parent >= 0)
                        fprintf(to, " %s>%s", device->nodes[n->parent].name, n->name);
                else
                        fprintf(to, " %s", n->name);
        }
        fputc('\n', to);
        for (size_t i = 0; i < device->n_nodes; i++)
                print_node(to, &device->nodes[i]);
}
