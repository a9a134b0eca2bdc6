/* SPDX-License-Identifier: Apache-2.0 */
/* The heat of drives, as hwmon shows it (nvme, drivetemp). A reading is a command to the drive: for children.
 */

#include "heat.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/file.h"
#include "tierprobe/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HWMONS_MAX 8   /* of one drive */
#define SENSORS_MAX 16 /* of one hwmon; NVMe has nine */

/* Where the hwmon directories of a block device lie: a class device's own (nvme), a bus device's (drivetemp),
 * and the PCI device's (nvme of Linux 5.5 to 5.7). */
static const char *const places[] = { "device", "device/hwmon", "device/device/hwmon" };

static bool is_numbered(const char *name, const char *prefix, const char *suffix)
{
        size_t n = strlen(prefix);

        if (strncmp(name, prefix, n) != 0)
                return false;
        size_t digits = strspn(name + n, "0123456789");
        return digits >= 1 && digits <= 4 && strcmp(name + n + digits, suffix) == 0;
}

static DIR *open_directory(int fd, const char *path)
{
        int dir_fd = openat(fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = dir_fd < 0 ? NULL : fdopendir(dir_fd);

        if (!dir)
                close_fdp(&dir_fd);
        return dir;
}

/* ---- finding ---- */

static void visit_hwmon(int fd, const DeviceNode *node, SensorVisit visit, void *userdata)
{
        _cleanup_closedir_ DIR *dir = open_directory(fd, ".");
        unsigned n = 0;

        for (struct dirent *entry; dir && n < SENSORS_MAX && (entry = readdir(dir));)
                if (is_numbered(entry->d_name, "temp", "_input")) {
                        n++;
                        visit(node, fd, atoi(entry->d_name + strlen("temp")), userdata);
                }
}

static void visit_node(int fd, const DeviceNode *node, SensorVisit visit, void *userdata)
{
        unsigned n = 0;

        for (size_t i = 0; i < ELEMENTSOF(places); i++) {
                _cleanup_closedir_ DIR *dir = open_directory(fd, places[i]);
                for (struct dirent *entry; dir && n < HWMONS_MAX && (entry = readdir(dir));) {
                        if (!is_numbered(entry->d_name, "hwmon", ""))
                                continue;
                        _cleanup_close_ int hwmon =
                                openat(dirfd(dir), entry->d_name, O_PATH | O_DIRECTORY | O_CLOEXEC);
                        if (hwmon >= 0)
                                visit_hwmon(hwmon, node, visit, userdata);
                        n++;
                }
        }
}

void heat_visit(const DeviceRoots *roots, const Device *device, SensorVisit visit, void *userdata)
{
        for (size_t i = 0; i < device->n_nodes; i++) {
                const DeviceNode *node = &device->nodes[i];
                if (node->kind != DEVICE_DISK && node->kind != DEVICE_NVME && node->kind != DEVICE_NVME_PATH)
                        continue;
                _cleanup_close_ int fd = device_node_open(roots, node);
                if (fd >= 0)
                        visit_node(fd, node, visit, userdata);
        }
}

/* ---- reading ---- */

/* Millidegrees. A limit that is not set reads as 65261850 (65535 K), one that does not exist as
 * -273150 (0 K). */
static double read_celsius(int fd, int number, const char *what)
{
        char path[64], text[32];
        int value;
        char rest;

        (void) snprintf(path, sizeof path, "temp%d_%s", number, what);
        if (read_attribute_at(fd, path, text, sizeof text) < 0 || sscanf(text, "%9d%c", &value, &rest) != 1 ||
            value <= -100000 || value >= 250000)
                return NAN;
        return value / 1000.0;
}

static void read_sensor(const DeviceNode *node, int fd, int number, void *userdata)
{
        Heat *heat = userdata;
        HeatSensor sensor = { .before_c = NAN };
        char path[64], label[256];

        memcpy(sensor.device, node->name, sizeof sensor.device);
        (void) snprintf(path, sizeof path, "temp%d_label", number);
        if (read_attribute_at(fd, path, label, sizeof label) <= 0)
                (void) snprintf(label, sizeof label, "temp%d", number);
        text_copy_clean(sensor.label, sizeof sensor.label, label);

        HeatSensor *known = NULL;
        for (size_t i = 0; i < heat->n && !known; i++)
                if (strcmp(heat->items[i].device, sensor.device) == 0 &&
                    strcmp(heat->items[i].label, sensor.label) == 0)
                        known = &heat->items[i];
        double now_c = read_celsius(fd, number, "input");
        if (known) {
                known->after_c = now_c;
                if (!(now_c <= known->peak_c) && !isnan(now_c)) /* also over a peak that is not known */
                        known->peak_c = now_c;
                return;
        }
        if (heat->readings > 0 || heat->n == MAX_HEAT_SENSORS)
                return;
        sensor.before_c = sensor.peak_c = sensor.after_c = now_c;
        sensor.max_c = read_celsius(fd, number, "max");
        sensor.crit_c = read_celsius(fd, number, "crit");
        heat->items[heat->n++] = sensor;
}

void heat_read(const DeviceRoots *roots, const Device *device, Heat *heat)
{
        if (heat->readings == 0)
                heat->n = 0;
        heat_visit(roots, device, read_sensor, heat);
        heat->readings++;
}

const HeatSensor *heat_crossed(const Heat *heat)
{
        const HeatSensor *worst = NULL;
        double worst_over_c = 0;

        for (size_t i = 0; i < heat->n; i++) {
                const HeatSensor *sensor = &heat->items[i];
                double over_c = sensor->peak_c - (isnan(sensor->max_c) ? sensor->crit_c : sensor->max_c);
                if (over_c >= 0 && (!worst || over_c > worst_over_c)) { /* NAN is not */
                        worst = sensor;
                        worst_over_c = over_c;
                }
        }
        return worst;
}
