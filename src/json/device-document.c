/* SPDX-License-Identifier: Apache-2.0 */
/* The device under a path, with the whole stack of block devices below it. */

#include "json-internal.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/json.h"

static const char *device_status_name(DeviceStatus status)
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

static json_t *flag_or_null(int flag)
{
        return flag < 0 ? json_null() : json_boolean(flag);
}

static json_t *integer_or_null(int64_t value)
{
        return value < 0 ? json_null() : json_integer(value);
}

static json_t *size_or_null(uint64_t value)
{
        return value == 0 ? json_null() : json_u64(value);
}

static json_t *stack_node(const Device *device, const DeviceNode *node)
{
        const char *parent = node->parent >= 0 && (size_t) node->parent < device->n_nodes
                                     ? device->nodes[node->parent].name
                                     : NULL;

        return OBJECT(
                { "name", json_text(node->name) },
                { "major_minor", json_major_minor(node->major, node->minor) },
                { "kind", json_text(device_kind_to_string(node->kind)) }, { "parent", json_text(parent) },
                { "size_bytes", size_or_null(node->size_bytes) }, { "model", json_text_or_null(node->model) },
                { "vendor", json_text_or_null(node->vendor) },
                { "firmware", json_text_or_null(node->firmware) },
                { "serial", json_text_or_null(node->serial) }, { "wwid", json_text_or_null(node->wwid) },
                { "dm_name", json_text_or_null(node->dm_name) },
                { "dm_uuid", json_text_or_null(node->dm_uuid) },
                { "part_uuid", json_text_or_null(node->part_uuid) },
                { "backing_file", json_text_or_null(node->backing_file) }, { "dio", flag_or_null(node->dio) },
                { "rotational", flag_or_null(node->rotational) },
                { "read_only", flag_or_null(node->read_only) }, { "iostats", flag_or_null(node->iostats) },
                { "fua", flag_or_null(node->fua) }, { "scheduler", json_text_or_null(node->scheduler) },
                { "write_cache", json_text_or_null(node->write_cache) },
                { "max_sectors_kb", integer_or_null(node->max_sectors_kb) },
                { "nr_requests", integer_or_null(node->nr_requests) },
                { "logical_block_size", integer_or_null(node->logical_block_size) },
                { "physical_block_size", integer_or_null(node->physical_block_size) },
                { "diskseq", size_or_null(node->diskseq) });
}

static json_t *stack(const Device *device)
{
        json_auto_t *array = json_array();

        if (!array)
                return NULL;
        for (size_t i = 0; i < device->n_nodes; i++)
                if (json_array_append_new(array, stack_node(device, &device->nodes[i])) < 0)
                        return NULL;
        return TAKE_PTR(array);
}

/* The judged rows by name. */
static json_t *rows(const Device *device)
{
        json_auto_t *array = json_array();

        if (!array)
                return NULL;
        for (size_t i = 0; i < device->n_rows; i++)
                if (json_array_append_new(array, json_text(device->nodes[device->rows[i]].name)) < 0)
                        return NULL;
        return TAKE_PTR(array);
}

json_t *json_device(const Device *device)
{
        if (!device)
                return json_null();
        return OBJECT({ "name", json_text_or_null(device->name) },
                      { "major_minor",
                        *device->name ? json_major_minor(device->major, device->minor) : json_null() },
                      { "filesystem", json_text(device->filesystem) },
                      { "mount_point", json_text(device->mount_point) }, { "stack", stack(device) },
                      { "status", json_text(device_status_name(device->status)) },
                      { "detail", json_text(device->detail) }, { "rows", rows(device) },
                      { "leaves_serve", json_boolean(device->leaves_serve) },
                      { "mount_source", json_text(device->mount_source) },
                      { "mount_root", json_text(device->mount_root) },
                      { "mount_options", json_text(device->mount_options) },
                      { "super_options", json_text(device->super_options) },
                      { "fs_uuid", json_text_or_null(device->fs_uuid) });
}
