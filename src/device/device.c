/* SPDX-License-Identifier: Apache-2.0 */
/* The room's face: resolve, copy, compare. */

#include "tierprobe/device.h"

#include "device-internal.h"

#include "tierprobe/file.h"
#include "tierprobe/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define EXT4_OPTIONS_MAX (64U << 10)

const char *device_kind_to_string(DeviceKind kind)
{
        static const char *const names[_DEVICE_KIND_MAX] = {
                [DEVICE_DISK] = "disk",   [DEVICE_PARTITION] = "partition",
                [DEVICE_LOOP] = "loop",   [DEVICE_LVM] = "lvm",
                [DEVICE_CRYPT] = "crypt", [DEVICE_MULTIPATH] = "multipath",
                [DEVICE_DM] = "dm",       [DEVICE_RAID] = "raid",
                [DEVICE_NVME] = "nvme",   [DEVICE_NVME_PATH] = "nvme_path",
                [DEVICE_ZRAM] = "zram",
        };

        return (unsigned) kind < _DEVICE_KIND_MAX ? names[kind] : NULL;
}

/* A clean copy of TEXT, NULL when out of memory. */
static char *clean_text(const char *text)
{
        size_t size = strlen(text) + 1;
        char *copy = malloc(size);

        if (copy)
                text_copy_clean(copy, size, text);
        return copy;
}

static int take_mount(const Mount *mount, Device *device)
{
        const struct {
                char **to;
                const char *from;
        } texts[] = {
                { &device->mount_point, mount->mount_point },
                { &device->filesystem, mount->filesystem },
                { &device->mount_source, mount->source },
                { &device->mount_root, mount->root },
                { &device->mount_options, mount->options },
                { &device->super_options, mount->super_options },
        };

        for (size_t i = 0; i < ELEMENTSOF(texts); i++)
                if (texts[i].from) {
                        *texts[i].to = clean_text(texts[i].from);
                        if (!*texts[i].to)
                                return -ENOMEM;
                }
        return 0;
}

/* Turns the device to one without nodes, for what NOTES say already. */
static void give_up(Device *device, DeviceStatus status)
{
        free(device->nodes);
        free(device->rows);
        device->nodes = NULL;
        device->rows = NULL;
        device->n_nodes = device->n_rows = 0;
        device->leaves_serve = false;
        device->status = status;
}

static int resolve_below(Resolver *resolver, const BlockId *ids, size_t n_ids, bool as_named, Device *device)
{
        int r = stack_build(resolver, ids, n_ids, as_named, device);
        if (r == 0 && device->n_rows > 1 && !device->leaves_serve)
                r = resolver_note(resolver, "its file system lies on %zu devices, judged as one", n_ids);
        if (r == -E2BIG) {
                r = resolver_note(resolver, "its file system lies on more devices than can be judged as one");
                give_up(device, DEVICE_UNRESOLVABLE);
        }
        return r;
}

static int resolve_named(Resolver *resolver, const char *name, Device *device)
{
        BlockId id;

        int r = blocks_find_written(&resolver->blocks, name, &id);
        if (r == -ENOENT) {
                give_up(device, DEVICE_UNRESOLVABLE);
                return resolver_note(resolver, "there is no block device %s", name);
        }
        device->status = DEVICE_OK;
        return r < 0 ? r : resolve_below(resolver, &id, 1, true, device);
}

/* Whether the comma-separated OPTIONS have OPTION. */
static bool has_option(const char *options, const char *option)
{
        size_t n = strlen(option);

        for (const char *p = options; p && *p; p += strcspn(p, ","), p += *p == ',')
                if (strncmp(p, option, n) == 0 && (p[n] == ',' || p[n] == '\0'))
                        return true;
        return false;
}

/* An option that is the file system's own default (tune2fs -o journal_data) is not in the mount table, but in
 * PROCFS/fs/ext4/NAME/options, one a line. */
static bool journals_data(const Resolver *resolver, const Device *device)
{
        static const char option[] = "data=journal";

        if (!device->filesystem || strncmp(device->filesystem, "ext", 3) != 0)
                return false;
        if (has_option(device->super_options, option))
                return true;
        for (size_t i = 0; i < device->n_nodes; i++) {
                _cleanup_free_ char *path = NULL, *text = NULL;

                if (device->nodes[i].parent >= 0)
                        continue;
                path = path_format("%s/fs/%s/%s/options", resolver->blocks.procfs, device->filesystem,
                                   device->nodes[i].name);
                if (!path || read_file_at(AT_FDCWD, path, EXT4_OPTIONS_MAX, &text, NULL) < 0)
                        continue;
                for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
                        if (strcmp(line, option) == 0)
                                return true;
        }
        return false;
}

static int resolve(Resolver *resolver, const char *path, dev_t path_dev, const char *override, Device *device)
{
        bool named = override && override[0] != '\0' && strcmp(override, "auto") != 0;
        Found found = {};

        int r = filesystem_find(resolver, path, path_dev, &found);
        if (r < 0)
                return r;
        device->status = found.status;
        r = take_mount(&found.mount, device);
        if (r == 0 && named)
                r = resolve_named(resolver, override, device);
        else if (r == 0) {
                memcpy(device->fs_uuid, found.fs_uuid, sizeof device->fs_uuid);
                if (found.why)
                        r = resolver_note(resolver, "%s", found.why);
                if (r == 0 && found.status == DEVICE_OK)
                        r = resolve_below(resolver, found.ids, found.n_ids, false, device);
        }
        found_done(&found);
        if (r == 0)
                device->journals_data = journals_data(resolver, device);
        if (r == 0 && resolver->notes) {
                device->detail = clean_text(resolver->notes);
                r = device->detail ? 0 : -ENOMEM;
        }
        return r;
}

int device_resolve(const DeviceRoots *roots, const char *path, dev_t path_dev, const char *override,
                   Device **ret)
{
        _cleanup_(resolver_done) Resolver resolver = {};

        if (path[0] != '/')
                return -EINVAL;
        int r = resolver_open(&resolver, roots);
        if (r < 0)
                return r;
        _cleanup_(device_freep) Device *device = calloc(1, sizeof *device);
        if (!device)
                return -ENOMEM;
        r = resolve(&resolver, path, path_dev, override, device);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(device);
        return 0;
}

Device *device_free(Device *device)
{
        if (!device)
                return NULL;
        free(device->detail);
        free(device->mount_point);
        free(device->filesystem);
        free(device->mount_source);
        free(device->mount_root);
        free(device->mount_options);
        free(device->super_options);
        free(device->nodes);
        free(device->rows);
        free(device);
        return NULL;
}

void device_freep(Device **device)
{
        *device = device_free(*device);
}

static bool copy_text(char **to, const char *from)
{
        *to = from ? strdup(from) : NULL;
        return !from || *to;
}

static bool copy_array(void *to_pointer, const void *from, size_t n, size_t size)
{
        void *copy = NULL;

        if (n > 0) {
                copy = calloc(n, size);
                if (!copy)
                        return false;
                memcpy(copy, from, n * size);
        }
        memcpy(to_pointer, &copy, sizeof copy);
        return true;
}

int device_copy(const Device *device, Device **ret)
{
        _cleanup_(device_freep) Device *copy = calloc(1, sizeof *copy);
        if (!copy)
                return -ENOMEM;

        *copy = *device;
        copy->detail = copy->mount_point = copy->filesystem = copy->mount_source = NULL;
        copy->mount_root = copy->mount_options = copy->super_options = NULL;
        copy->nodes = NULL;
        copy->rows = NULL;
        if (!copy_text(&copy->detail, device->detail) ||
            !copy_text(&copy->mount_point, device->mount_point) ||
            !copy_text(&copy->filesystem, device->filesystem) ||
            !copy_text(&copy->mount_source, device->mount_source) ||
            !copy_text(&copy->mount_root, device->mount_root) ||
            !copy_text(&copy->mount_options, device->mount_options) ||
            !copy_text(&copy->super_options, device->super_options) ||
            !copy_array(&copy->nodes, device->nodes, device->n_nodes, sizeof *device->nodes) ||
            !copy_array(&copy->rows, device->rows, device->n_rows, sizeof *device->rows))
                return -ENOMEM;
        *ret = TAKE_PTR(copy);
        return 0;
}

static bool same_node(const DeviceNode *a, const DeviceNode *b)
{
        return a->major == b->major && a->minor == b->minor && strcmp(a->name, b->name) == 0;
}

bool device_shares_disk(const Device *a, const Device *b)
{
        if (a->n_nodes == 0 || b->n_nodes == 0)
                return a->mount_source && b->mount_source && strcmp(a->mount_source, b->mount_source) == 0;
        for (size_t i = 0; i < a->n_nodes; i++)
                for (size_t j = 0; j < b->n_nodes; j++)
                        if (same_node(&a->nodes[i], &b->nodes[j]))
                                return true;
        return false;
}

bool device_same_rows(const Device *a, const Device *b)
{
        if (a->n_rows != b->n_rows)
                return false;
        for (size_t i = 0; i < a->n_rows; i++)
                if (!same_node(&a->nodes[a->rows[i]], &b->nodes[b->rows[i]]))
                        return false;
        return true;
}

size_t device_row_names(const Device *device, const char **names, size_t max)
{
        size_t n = device->n_rows < max ? device->n_rows : max;

        for (size_t i = 0; i < n; i++)
                names[i] = device->nodes[device->rows[i]].name;
        return n;
}
