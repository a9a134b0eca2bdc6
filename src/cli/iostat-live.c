/* SPDX-License-Identifier: Apache-2.0 */
/* The devices that `tierprobe iostat` watches: which those are, and one sampler for each. Reads below the two
 * roots it is given.
 *
 * Each device has its own sampler, the one the daemon judges with, so that what is seen here is what would be
 * judged. */

#include "iostat-live.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/file.h"

#include <errno.h>
#include <string.h>

typedef struct LiveDevice {
        char *name;  /* as /sys spells it */
        bool listed; /* found by the last listing */
        Sampler *sampler;
} LiveDevice;

struct LiveDevices {
        char *procfs, *sysfs;
        bool all;
        LiveDevice *items;
        size_t n, allocated;
};

static void live_device_done(LiveDevice *device)
{
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it takes two elements of the list for one */
        free(device->name);
        (void) sampler_free(device->sampler);
        *device = (LiveDevice){ 0 };
}

LiveDevices *live_devices_free(LiveDevices *devices)
{
        if (!devices)
                return NULL;
        for (size_t i = 0; i < devices->n; i++)
                live_device_done(&devices->items[i]);
        free(devices->items);
        free(devices->procfs);
        free(devices->sysfs);
        free(devices);
        return NULL;
}

void live_devices_freep(LiveDevices **devices)
{
        *devices = live_devices_free(*devices);
}

static int add_device(LiveDevices *devices, const char *name)
{
        LiveDevice device = { .listed = true };

        if (devices->n == devices->allocated) {
                size_t wanted = devices->allocated ? devices->allocated * 2 : 16;
                LiveDevice *grown = reallocarray(devices->items, wanted, sizeof *grown);
                if (!grown)
                        return -ENOMEM;
                devices->items = grown;
                devices->allocated = wanted;
        }
        int r = sampler_new(&device.sampler, devices->procfs, devices->sysfs, &name, 1);
        if (r < 0)
                return r;
        device.name = strdup(name);
        if (!device.name) {
                (void) sampler_free(device.sampler);
                return -ENOMEM;
        }
        devices->items[devices->n++] = device;
        return 0;
}

int live_devices_new(LiveDevices **ret, const char *procfs, const char *sysfs, char *const *names,
                     size_t n_names)
{
        LiveDevices *devices = calloc(1, sizeof *devices);
        int r = -ENOMEM;

        if (!devices)
                return -ENOMEM;
        devices->all = n_names == 0;
        devices->procfs = strdup(procfs);
        devices->sysfs = strdup(sysfs);
        if (devices->procfs && devices->sysfs) {
                r = 0;
                for (size_t i = 0; i < n_names && r >= 0; i++)
                        r = add_device(devices, names[i]);
        }
        if (r < 0) {
                (void) live_devices_free(devices);
                return r;
        }
        *ret = devices;
        return 0;
}

static int compare_devices(const void *a, const void *b)
{
        return strcmp(((const LiveDevice *) a)->name, ((const LiveDevice *) b)->name);
}

/* Brings the samplers in step with SYSFS/block: whole disks only, as a partition has no entry there. */
static int list_devices(LiveDevices *devices, DIR *dir)
{
        size_t n_known = devices->n, n_kept = 0;

        for (size_t i = 0; i < devices->n; i++)
                devices->items[i].listed = false;
        for (;;) {
                errno = 0;
                struct dirent *entry = readdir(dir);
                if (!entry && errno != 0)
                        return -errno;
                if (!entry)
                        break;
                LiveDevice key = { .name = entry->d_name };
                if (entry->d_name[0] == '.')
                        continue;
                LiveDevice *known = NULL;
                if (n_known > 0) /* the first listing has no array yet */
                        known = bsearch(&key, devices->items, n_known, sizeof *devices->items,
                                        compare_devices);
                if (known) {
                        known->listed = true;
                        continue;
                }
                int r = add_device(devices, entry->d_name);
                if (r < 0 && r != -EINVAL) /* what has such a name is no device */
                        return r;
        }
        for (size_t i = 0; i < devices->n; i++) {
                LiveDevice device = devices->items[i];

                devices->items[i] = (LiveDevice){ 0 };
                if (device.listed)
                        devices->items[n_kept++] = device;
                else
                        live_device_done(&device);
        }
        devices->n = n_kept;
        if (n_kept > 0)
                qsort(devices->items, n_kept, sizeof *devices->items, compare_devices);
        return 0;
}

int live_devices_read(LiveDevices *devices, SnapshotTable *table)
{
        snapshot_table_clear(table);
        if (devices->all) {
                _cleanup_free_ char *path = path_format("%s/block", devices->sysfs);
                if (!path)
                        return -ENOMEM;
                _cleanup_closedir_ DIR *dir = opendir(path);
                if (!dir)
                        return snapshot_table_read(table, devices->procfs); /* partitions and all */
                int r = list_devices(devices, dir);
                if (r < 0)
                        return r;
        }
        for (size_t i = 0; i < devices->n; i++) {
                char shown[DEVICE_NAME_SIZE];
                Snapshot snapshot;

                sampler_read(devices->items[i].sampler, &snapshot);
                if (devices->all && snapshot.gap == GAP_ABSENT)
                        continue; /* it went away since it was listed */
                (void) snprintf(shown, sizeof shown, "%s", devices->items[i].name);
                name_to_diskstats(shown);
                int r = snapshot_table_add(table, shown, &snapshot);
                if (r < 0)
                        return r;
        }
        return 0;
}
