/* SPDX-License-Identifier: Apache-2.0 */
/* The limits that this process is under: control groups, resource limits, I/O class. Plain reads and calls
 * that ask about this process. */

#include "tierprobe/condition.h"

#include "cgroup.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/file.h"
#include "tierprobe/text.h"
#include "tierprobe/units.h"

#include <inttypes.h>
#include <linux/ioprio.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* blk-throttle lets through in slices of 20 to 100 ms what it owes: a window of seconds shows a little less.
 */
#define REACHED 0.85

static const char *const kind_names[_LIMIT_KIND_MAX] = {
        [LIMIT_WRITE_BYTES] = "write_bytes_per_s",
        [LIMIT_WRITE_OPS] = "writes_per_s",
        [LIMIT_PROCESSORS] = "processors",
        [LIMIT_FILE_SIZE] = "file_size_bytes",
        [LIMIT_IDLE_IO] = "idle_io",
};

const char *limit_kind_to_string(LimitKind kind)
{
        return (unsigned) kind < _LIMIT_KIND_MAX ? kind_names[kind] : NULL;
}

/* Keeps LIMIT; when there is no room, in place of the laxest of its kind that is laxer. */
static void add_limit(OwnLimits *limits, const OwnLimit *limit)
{
        OwnLimit *laxest = NULL;

        if (limits->n < MAX_OWN_LIMITS) {
                limits->items[limits->n++] = *limit;
                return;
        }
        for (size_t i = 0; i < limits->n; i++) {
                OwnLimit *other = &limits->items[i];
                if (other->kind == limit->kind && other->value > limit->value &&
                    (!laxest || other->value > laxest->value))
                        laxest = other;
        }
        if (laxest)
                *laxest = *limit;
}

/* ---- control groups ---- */

typedef struct Reading {
        const Device *device;
        OwnLimits *limits;
        const Group *group;
        const char *file;
        LimitKind kind; /* version 1: of the file */
} Reading;

static void add_group_limit(const Reading *reading, LimitKind kind, double value, const char *device,
                            const char *line)
{
        OwnLimit limit = { .kind = kind, .value = value };
        char where[4096];

        (void) snprintf(limit.device, sizeof limit.device, "%s", device);
        (void) snprintf(where, sizeof where, "%.4000s/%s", reading->group->path, reading->file);
        text_copy_clean(limit.where, sizeof limit.where, where);
        text_copy_clean(limit.text, sizeof limit.text, line);
        add_limit(reading->limits, &limit);
}

/* The node with the number that LINE begins with ("8:0 "), *RET_REST behind it; NULL: none of the stack. */
static const DeviceNode *node_of_line(const Device *device, char *line, char **ret_rest)
{
        unsigned major, minor;
        int used = 0;

        if (sscanf(line, "%9u:%9u %n", &major, &minor, &used) != 2 || used == 0)
                return NULL;
        *ret_rest = line + used;
        for (size_t i = 0; device && i < device->n_nodes; i++) {
                const DeviceNode *node = &device->nodes[i];
                if (node->major == major && node->minor == minor && (major != 0 || minor != 0))
                        return node;
        }
        return NULL;
}

/* "8:0 rbps=max wbps=104857600 riops=max wiops=max" */
static void take_io_max(char *line, void *userdata)
{
        const Reading *reading = userdata;
        _cleanup_free_ char *whole = strdup(line);
        char *rest = NULL;
        uint64_t value = 0;

        const DeviceNode *node = node_of_line(reading->device, line, &rest);
        if (!node || !whole)
                return;
        for (char *word; (word = strsep(&rest, " "));) {
                char *number = strchr(word, '=');
                if (!number)
                        continue;
                *number++ = '\0';
                if (parse_u64(number, &value) < 0 || value == 0)
                        continue;
                if (strcmp(word, "wbps") == 0)
                        add_group_limit(reading, LIMIT_WRITE_BYTES, (double) value, node->name, whole);
                else if (strcmp(word, "wiops") == 0)
                        add_group_limit(reading, LIMIT_WRITE_OPS, (double) value, node->name, whole);
        }
}

/* "8:0 104857600" */
static void take_throttle(char *line, void *userdata)
{
        const Reading *reading = userdata;
        char *rest = NULL;
        uint64_t value = 0;

        const DeviceNode *node = node_of_line(reading->device, line, &rest);
        if (node && parse_u64(rest, &value) == 0 && value > 0)
                add_group_limit(reading, reading->kind, (double) value, node->name, line);
}

/* "50000 100000", "max 100000" */
static void take_cpu_max(char *line, void *userdata)
{
        const Reading *reading = userdata;
        uint64_t quota_us, period_us;
        char text[64];

        (void) snprintf(text, sizeof text, "%.60s", line);
        char *period = strchr(text, ' ');
        if (!period)
                return;
        *period++ = '\0';
        if (parse_u64(text, &quota_us) == 0 && parse_u64(period, &period_us) == 0 && quota_us > 0 &&
            period_us > 0)
                add_group_limit(reading, LIMIT_PROCESSORS, (double) quota_us / (double) period_us, "", line);
}

static void read_group_v2(const Group *group, void *userdata)
{
        Reading reading = *(const Reading *) userdata;

        reading.group = group;
        reading.file = "io.max";
        group_lines(group, reading.file, take_io_max, &reading);
        reading.file = "cpu.max";
        group_lines(group, reading.file, take_cpu_max, &reading);
}

static void read_group_blkio(const Group *group, void *userdata)
{
        static const struct {
                const char *file;
                LimitKind kind;
        } files[] = {
                { "blkio.throttle.write_bps_device", LIMIT_WRITE_BYTES },
                { "blkio.throttle.write_iops_device", LIMIT_WRITE_OPS },
        };
        Reading reading = *(const Reading *) userdata;

        reading.group = group;
        for (size_t i = 0; i < ELEMENTSOF(files); i++) {
                reading.file = files[i].file;
                reading.kind = files[i].kind;
                group_lines(group, reading.file, take_throttle, &reading);
        }
}

static void read_group_cpu(const Group *group, void *userdata)
{
        Reading reading = *(const Reading *) userdata;
        char text[32], line[96];
        uint64_t quota_us, period_us;

        if (read_attribute_at(group->fd, "cpu.cfs_quota_us", text, sizeof text) < 0 ||
            parse_u64(text, &quota_us) < 0 || quota_us == 0 || /* -1: none */
            read_attribute_at(group->fd, "cpu.cfs_period_us", text, sizeof text) < 0 ||
            parse_u64(text, &period_us) < 0 || period_us == 0)
                return;
        (void) snprintf(line, sizeof line, "%" PRIu64 " of %" PRIu64 " us", quota_us, period_us);
        reading.group = group;
        reading.file = "cpu.cfs_quota_us";
        add_group_limit(&reading, LIMIT_PROCESSORS, (double) quota_us / (double) period_us, "", line);
}

/* ---- this process ---- */

static void read_file_size(OwnLimits *limits)
{
        OwnLimit limit = { .kind = LIMIT_FILE_SIZE, .where = "RLIMIT_FSIZE" };
        struct rlimit rlimit;

        if (getrlimit(RLIMIT_FSIZE, &rlimit) < 0 || rlimit.rlim_cur == RLIM_INFINITY)
                return;
        limit.value = (double) rlimit.rlim_cur;
        (void) snprintf(limit.text, sizeof limit.text, "%" PRIu64 " bytes", (uint64_t) rlimit.rlim_cur);
        add_limit(limits, &limit);
}

/* Without a class of its own, a process has the one that goes with its scheduling policy. */
static void read_io_class(OwnLimits *limits)
{
        OwnLimit limit = { .kind = LIMIT_IDLE_IO, .where = "I/O class" };
        long priority = syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0);
        int class = priority < 0 ? IOPRIO_CLASS_NONE : (int) (priority >> IOPRIO_CLASS_SHIFT);

        if (class == IOPRIO_CLASS_IDLE)
                (void) snprintf(limit.text, sizeof limit.text, "idle");
        else if (class == IOPRIO_CLASS_NONE && sched_getscheduler(0) == SCHED_IDLE)
                (void) snprintf(limit.text, sizeof limit.text, "idle, by the scheduling policy");
        else
                return;
        add_limit(limits, &limit);
}

void own_limits_read(const DeviceRoots *roots, const Device *device, OwnLimits *ret)
{
        OwnLimits limits = { .n = 0 };
        Reading reading = { .device = device, .limits = &limits };

        groups_visit(roots, NULL, read_group_v2, &reading);
        groups_visit(roots, "blkio", read_group_blkio, &reading);
        groups_visit(roots, "cpu", read_group_cpu, &reading);
        read_file_size(&limits);
        read_io_class(&limits);
        *ret = limits;
}

/* ---- what was reached ---- */

static bool is_reached(const OwnLimit *limit, const LimitUse *use)
{
        switch (limit->kind) {
        case LIMIT_WRITE_BYTES:
                return use->write_bytes_per_s >= REACHED * limit->value; /* false for NAN */
        case LIMIT_WRITE_OPS:
                return use->writes_per_s >= REACHED * limit->value;
        case LIMIT_PROCESSORS:
                return use->processors >= REACHED * limit->value;
        case LIMIT_FILE_SIZE:
                return (double) use->file_bytes > limit->value;
        case LIMIT_IDLE_IO:
                return true;
        case _LIMIT_KIND_MAX:
                break;
        }
        return false;
}

const OwnLimit *own_limits_reached(const OwnLimits *limits, const LimitUse *use)
{
        const OwnLimit *found = NULL;

        for (size_t i = 0; i < limits->n; i++) {
                const OwnLimit *limit = &limits->items[i];
                if (is_reached(limit, use) && (!found || limit->kind < found->kind ||
                                               (limit->kind == found->kind && limit->value < found->value)))
                        found = limit;
        }
        return found;
}
