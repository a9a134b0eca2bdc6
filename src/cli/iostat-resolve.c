/* SPDX-License-Identifier: Apache-2.0 */
/* What the user of `tierprobe iostat` typed, to the names of rows. Looks at the paths it is given. */

#include "iostat-live.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/device.h"
#include "tierprobe/file.h"
#include "tierprobe/log.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static int append_name(char ***names, size_t *n, const char *name)
{
        for (size_t i = 0; i < *n; i++)
                if (strcmp((*names)[i], name) == 0)
                        return 0; /* named twice, shown once */
        char **grown = reallocarray(*names, *n + 1, sizeof **names);
        if (!grown)
                return -ENOMEM;
        *names = grown;
        grown[*n] = strdup(name);
        if (!grown[*n])
                return -ENOMEM;
        (*n)++;
        return 0;
}

static bool has_row(const char *procfs, const char *sysfs, const char *name)
{
        Sampler *sampler = NULL;
        Snapshot snapshot;

        if (sampler_new(&sampler, procfs, sysfs, &name, 1) < 0)
                return false;
        sampler_read(sampler, &snapshot);
        (void) sampler_free(sampler);
        return snapshot.gap != GAP_ABSENT;
}

/* The kernel's name behind a block device number, as /sys spells it. */
static int name_of_node(const char *sysfs, dev_t rdev, char *buf, size_t size)
{
        char target[PATH_MAX];

        _cleanup_free_ char *link = path_format("%s/dev/block/%u:%u", sysfs, major(rdev), minor(rdev));
        if (!link)
                return -ENOMEM;
        ssize_t n = readlink(link, target, sizeof target - 1);
        if (n < 0)
                return -errno;
        target[n] = '\0';
        const char *slash = strrchr(target, '/');
        const char *name = slash ? slash + 1 : target;
        if (strlen(name) >= size)
                return -ENOBUFS;
        (void) snprintf(buf, size, "%s", name);
        return 0;
}

/* The rows of the file system that holds PATH. */
static int resolve_path(const char *procfs, const char *sysfs, const char *argument, const char *path,
                        dev_t path_dev, char ***names, size_t *n)
{
        DeviceRoots roots = { .procfs = procfs, .sysfs = sysfs };
        const char *rows[64];

        _cleanup_(device_freep) Device *device = NULL;
        int r = device_resolve(&roots, path, path_dev, NULL, &device);
        if (r < 0) {
                log_error("iostat: cannot find the device of %s: %s", argument, strerror(-r));
                return r;
        }
        size_t n_rows = device_row_names(device, rows, ELEMENTSOF(rows));
        if (device->status != DEVICE_OK || n_rows == 0) {
                log_error("iostat: %s has no block device to watch: %s", argument,
                          device->detail ? device->detail : "none was found");
                return -ENODEV;
        }
        for (size_t i = 0; i < n_rows; i++) {
                r = append_name(names, n, rows[i]);
                if (r < 0)
                        return r;
        }
        return 0;
}

int live_resolve(const char *procfs, const char *sysfs, const char *argument, char ***names, size_t *n)
{
        char name[DEVICE_NAME_SIZE];
        struct stat st;

        if (strchr(argument, '/')) {
                _cleanup_free_ char *path = realpath(argument, NULL);
                if (path && stat(path, &st) == 0) {
                        if (!S_ISBLK(st.st_mode))
                                return resolve_path(procfs, sysfs, argument, path, st.st_dev, names, n);
                        if (name_of_node(sysfs, st.st_rdev, name, sizeof name) >= 0)
                                return append_name(names, n, name);
                } else if (errno != ENOENT && errno != ENOTDIR) {
                        int r = -errno;
                        log_error("iostat: cannot look at %s: %s", argument, strerror(-r));
                        return r;
                }
        }

        /* A kernel name: "sda", "cciss/c0d0", "cciss!c0d0", or of a node that is not in this container's
         * /dev. */
        const char *bare = strncmp(argument, "/dev/", 5) == 0 ? argument + 5 : argument;
        if (strlen(bare) < sizeof name) {
                (void) snprintf(name, sizeof name, "%s", bare);
                name_to_sysfs(name);
                if (has_row(procfs, sysfs, name))
                        return append_name(names, n, name);
        }
        if (strchr(argument, '/'))
                log_error("iostat: no such path or device: %s", argument);
        else
                log_error("iostat: no such device: %s (for a path of that name say ./%s)", argument,
                          argument);
        return -ENODEV;
}
