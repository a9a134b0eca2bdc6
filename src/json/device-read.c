/* SPDX-License-Identifier: Apache-2.0 */
/* Reads back the device of a kept run. */

#include "json-reader.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/json.h"
#include "tierprobe/units.h"

#include <errno.h>
#include <string.h>

/* More than any real stack: a file system over a few hundred disks. */
#define MAX_NODES 4096

static void read_status(Reader *reader, const json_t *object, DeviceStatus *ret)
{
        static const char *const names[] = {
                [DEVICE_OK] = "ok",
                [DEVICE_NO_BLOCK] = "no_block_device",
                [DEVICE_NOT_MOUNTED] = "not_mounted",
                [DEVICE_UNRESOLVABLE] = "unresolvable",
        };
        const char *text = read_string(reader, object, "status", false);

        if (!text)
                return;
        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                if (strcmp(text, names[i]) == 0) {
                        *ret = (DeviceStatus) i;
                        return;
                }
        reader_fail(reader, "the device's \"status\" is unknown");
}

static void read_major_minor(Reader *reader, const json_t *object, uint32_t *ret_major, uint32_t *ret_minor)
{
        const char *text = read_string(reader, object, "major_minor", true);
        uint64_t major = 0, minor = 0;
        char first[16];

        if (!text)
                return;
        size_t length = strcspn(text, ":");
        if (length < sizeof first && text[length] == ':') {
                memcpy(first, text, length);
                first[length] = '\0';
                if (parse_u64(first, &major) == 0 && parse_u64(text + length + 1, &minor) == 0 &&
                    major <= UINT32_MAX && minor <= UINT32_MAX) {
                        *ret_major = (uint32_t) major;
                        *ret_minor = (uint32_t) minor;
                        return;
                }
        }
        reader_fail(reader, "\"major_minor\" is not like 259:0");
}

static void read_integer_or_unknown(Reader *reader, const json_t *object, const char *key, int64_t *ret)
{
        const json_t *value = json_object_get(object, key);
        uint64_t number = 0;

        *ret = -1;
        if (!value || json_is_null(value))
                return;
        read_u64(reader, object, key, INT64_MAX, &number);
        *ret = (int64_t) number;
}

static void read_size_or_unknown(Reader *reader, const json_t *object, const char *key, uint64_t *ret)
{
        int64_t value = 0;

        read_integer_or_unknown(reader, object, key, &value);
        *ret = value < 0 ? 0 : (uint64_t) value;
}

static void read_kind(Reader *reader, const json_t *object, DeviceKind *ret)
{
        const char *text = read_string(reader, object, "kind", false);

        if (!text)
                return;
        for (int i = 0; i < _DEVICE_KIND_MAX; i++)
                if (strcmp(text, device_kind_to_string((DeviceKind) i)) == 0) {
                        *ret = (DeviceKind) i;
                        return;
                }
        reader_fail(reader, "the \"kind\" of a device is unknown");
}

/* The node called NAME before index BEFORE, -1 when there is none: a node follows its parent. */
static int node_before(const Device *device, size_t before, const char *name)
{
        for (size_t i = before; i > 0; i--)
                if (strcmp(device->nodes[i - 1].name, name) == 0)
                        return (int) (i - 1);
        return -1;
}

static void read_node(Reader *reader, const json_t *object, Device *device, size_t index)
{
        DeviceNode *node = &device->nodes[index];
        const char *parent = read_string(reader, object, "parent", true);

        read_text(reader, object, "name", node->name, sizeof node->name);
        read_major_minor(reader, object, &node->major, &node->minor);
        read_kind(reader, object, &node->kind);
        node->parent = parent ? node_before(device, index, parent) : -1;
        if (parent && node->parent < 0)
                reader_fail(reader, "the parent of a device does not stand before it");
        read_size_or_unknown(reader, object, "size_bytes", &node->size_bytes);
        read_size_or_unknown(reader, object, "diskseq", &node->diskseq);
        read_text(reader, object, "model", node->model, sizeof node->model);
        read_text(reader, object, "vendor", node->vendor, sizeof node->vendor);
        read_text(reader, object, "firmware", node->firmware, sizeof node->firmware);
        read_text(reader, object, "serial", node->serial, sizeof node->serial);
        read_text(reader, object, "wwid", node->wwid, sizeof node->wwid);
        read_text(reader, object, "dm_name", node->dm_name, sizeof node->dm_name);
        read_text(reader, object, "dm_uuid", node->dm_uuid, sizeof node->dm_uuid);
        read_text(reader, object, "backing_file", node->backing_file, sizeof node->backing_file);
        read_text(reader, object, "scheduler", node->scheduler, sizeof node->scheduler);
        read_text(reader, object, "write_cache", node->write_cache, sizeof node->write_cache);
        node->dio = read_flag(reader, object, "dio");
        node->rotational = read_flag(reader, object, "rotational");
        node->read_only = read_flag(reader, object, "read_only");
        node->iostats = read_flag(reader, object, "iostats");
        node->fua = read_flag(reader, object, "fua");
        read_integer_or_unknown(reader, object, "max_sectors_kb", &node->max_sectors_kb);
        read_integer_or_unknown(reader, object, "nr_requests", &node->nr_requests);
        read_integer_or_unknown(reader, object, "logical_block_size", &node->logical_block_size);
        read_integer_or_unknown(reader, object, "physical_block_size", &node->physical_block_size);
}

static void read_stack(Reader *reader, const json_t *object, Device *device)
{
        const json_t *array = read_array(reader, object, "stack", MAX_NODES);
        const json_t *item = NULL;
        size_t i = 0;

        if (!array || json_array_size(array) == 0)
                return;
        device->nodes = calloc(json_array_size(array), sizeof *device->nodes);
        if (!device->nodes) {
                reader->error = -ENOMEM;
                return;
        }
        device->n_nodes = json_array_size(array);
        json_array_foreach(array, i, item) read_node(reader, item, device, i);
}

static void read_rows(Reader *reader, const json_t *object, Device *device)
{
        const json_t *array = json_object_get(object, "rows");
        const json_t *item = NULL;
        size_t i = 0;

        if (reader->error)
                return;
        if (!json_is_array(array) || json_array_size(array) > device->n_nodes) {
                reader_fail(reader, "\"rows\" is not a list of devices of the stack");
                return;
        }
        if (json_array_size(array) == 0)
                return;
        device->rows = calloc(json_array_size(array), sizeof *device->rows);
        if (!device->rows) {
                reader->error = -ENOMEM;
                return;
        }
        json_array_foreach(array, i, item)
        {
                int node = json_is_string(item)
                                   ? node_before(device, device->n_nodes, json_string_value(item))
                                   : -1;

                if (node < 0) {
                        reader_fail(reader, "\"rows\" names a device that is not in the stack");
                        return;
                }
                device->rows[device->n_rows++] = (size_t) node;
        }
}

void read_device(Reader *reader, const json_t *object, Device **ret)
{
        const json_t *member = read_object(reader, object, "device", true);

        if (!member)
                return;
        _cleanup_(device_freep) Device *device = calloc(1, sizeof *device);
        if (!device) {
                reader->error = -ENOMEM;
                return;
        }
        read_status(reader, member, &device->status);
        read_text(reader, member, "name", device->name, sizeof device->name);
        read_major_minor(reader, member, &device->major, &device->minor);
        device->filesystem = read_text_or_null(reader, member, "filesystem");
        device->mount_point = read_text_or_null(reader, member, "mount_point");
        device->detail = read_text_or_null(reader, member, "detail");
        device->mount_source = read_text_or_null(reader, member, "mount_source");
        device->mount_root = read_text_or_null(reader, member, "mount_root");
        device->mount_options = read_text_or_null(reader, member, "mount_options");
        device->super_options = read_text_or_null(reader, member, "super_options");
        read_text(reader, member, "fs_uuid", device->fs_uuid, sizeof device->fs_uuid);
        read_stack(reader, member, device);
        read_rows(reader, member, device);
        device->leaves_serve = read_flag(reader, member, "leaves_serve") > 0;
        if (!reader->error)
                *ret = TAKE_PTR(device);
}
