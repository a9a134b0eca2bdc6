/* SPDX-License-Identifier: Apache-2.0 */
/* Trees with anything in the place of attributes, and the child that reads the heat. */

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/condition.h"
#include "tierprobe/file.h"
#include "tierprobe/text.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "pidfd.h"

#define SEED 20261204
#define N_TREES 400

static char root[64];

static void make_path(const char *path)
{
        char part[512];

        for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
                (void) snprintf(part, sizeof part, "%.*s", (int) (slash - path), path);
                (void) mkdir(part, 0755);
        }
}

/* The path below the root; static. */
static const char *below(const char *path)
{
        static char text[512];

        (void) snprintf(text, sizeof text, "%s/%s", root, path);
        return text;
}

static void put_file(const char *path, const char *text, size_t size)
{
        make_path(below(path));
        int fd = open(below(path), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

        if (fd < 0) /* something of another kind is there, or above it */
                return;
        assert_int_equal(write(fd, text, size), (ssize_t) size);
        (void) close(fd);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
        (void) st;
        (void) type;
        (void) ftw;
        return remove(path);
}

static int set_up(void **state)
{
        const char *tmp = getenv("TMPDIR");

        (void) state;
        (void) snprintf(root, sizeof root, "%s/tierprobe-condition-XXXXXX", tmp ? tmp : "/tmp");
        return mkdtemp(root) ? 0 : -1;
}

static int tear_down(void **state)
{
        (void) state;
        return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- anything ---- */

static const char *const attributes[] = {
        "proc/self/cgroup",
        "proc/stat",
        "proc/pressure/io",
        "proc/pressure/cpu",
        "proc/pressure/memory",
        "sys/fs/cgroup/cgroup.procs",
        "sys/fs/cgroup/a/io.max",
        "sys/fs/cgroup/a/cpu.max",
        "sys/fs/cgroup/a/cpu.stat",
        "sys/fs/cgroup/a/io.stat",
        "sys/fs/cgroup/a/io.pressure",
        "sys/fs/cgroup/blkio/cgroup.procs",
        "sys/fs/cgroup/blkio/a/blkio.throttle.write_bps_device",
        "sys/fs/cgroup/cpu/cgroup.procs",
        "sys/fs/cgroup/cpu/cpu.cfs_quota_us",
        "sys/fs/cgroup/cpu/cpu.cfs_period_us",
        "sys/block/sda/device/state",
        "sys/block/sda/device/iotmo_cnt",
        "sys/block/sda/device/life_time",
        "sys/block/sda/queue/write_cache",
        "sys/block/sda/device/hwmon/hwmon1/temp1_input",
        "sys/block/sda/device/hwmon/hwmon1/temp1_max",
        "sys/block/sda/device/hwmon/hwmon1/temp1_label",
        "sys/block/sda/device/hwmon/hwmon1/temp2_input",
        "sys/block/md0/md/array_state",
        "sys/block/md0/md/degraded",
        "sys/fs/ext4/md0/errors_count",
        "sys/fs/btrfs/0123/exclusive_operation",
        "sys/fs/btrfs/0123/devinfo/1/error_stats",
        "sys/fs/btrfs/0123/devinfo/1/missing",
};

/* Text that is right here and there, and broken at any place. */
static size_t make_text(char *text, size_t max)
{
        static const char *const words[] = { "8:0 5\n",
                                             "8:0 wbps=7 wiops=9\n",
                                             "50000 100000\n",
                                             "some total=5\n",
                                             "8:0 ",
                                             "wbps=",
                                             "wiops=",
                                             "max",
                                             "104857600",
                                             "some ",
                                             "full ",
                                             "total=",
                                             "\n",
                                             " ",
                                             "0::/a\n",
                                             "7:blkio:/a\n",
                                             "2:cpu:/",
                                             "cpu  1 2 3 4 5 6 7 8 9 10\n",
                                             "-1",
                                             "cost.wait=5",
                                             "throttled_usec 5\n",
                                             "write_errs 5\n",
                                             "idle",
                                             "\xc3\xa9",
                                             "\xff",
                                             "\x1b[31m",
                                             "99999999999999999999999",
                                             "0x",
                                             "/.." };
        size_t used = 0, n = (size_t) random() % (random() % 2 ? 40 : 3);

        for (size_t i = 0; i < n; i++) {
                const char *word = words[(size_t) random() % ELEMENTSOF(words)];
                if (used + strlen(word) + 1 >= max)
                        break;
                memcpy(text + used, word, strlen(word));
                used += strlen(word);
                if (random() % 20 == 0)
                        text[used++] = (char) (random() % 256);
        }
        return used;
}

static void put_anything(const char *path)
{
        static char text[20000];

        make_path(below(path));
        switch (random() % 12) {
        case 0: /* nothing */
                break;
        case 1:
                (void) mkdir(below(path), 0755);
                break;
        case 2:
                (void) symlink(below(path), below(path));
                break;
        case 3:
                (void) symlink("/dev/zero", below(path));
                break;
        case 4:
                (void) mkfifo(below(path), 0644);
                break;
        case 5: /* more than anybody needs */
                memset(text, random() % 2 ? '1' : 'x', sizeof text);
                put_file(path, text, sizeof text);
                break;
        default:
                put_file(path, text, make_text(text, sizeof text));
        }
}

static void check_text(const char *text, size_t size)
{
        size_t n = strnlen(text, size);

        assert_true(n < size);
        assert_true(utf8_is_valid(text, n));
        for (size_t i = 0; i < n; i++)
                assert_false(text_is_control(text[i]));
}

static void check_limits(const OwnLimits *limits)
{
        assert_true(limits->n <= MAX_OWN_LIMITS);
        for (size_t i = 0; i < limits->n; i++) {
                const OwnLimit *limit = &limits->items[i];
                assert_non_null(limit_kind_to_string(limit->kind));
                assert_true(limit->value >= 0 && isfinite(limit->value));
                check_text(limit->device, sizeof limit->device);
                check_text(limit->where, sizeof limit->where);
                check_text(limit->text, sizeof limit->text);
        }
}

static void check_states(const States *states)
{
        assert_true(states->n <= MAX_STATE_FACTS);
        for (size_t i = 0; i < states->n; i++) {
                const StateFact *fact = &states->items[i];
                assert_true(fact->name[0] && fact->value[0]);
                check_text(fact->device, sizeof fact->device);
                check_text(fact->value, sizeof fact->value);
        }
}

static void check_heat(const Heat *heat)
{
        assert_true(heat->n <= MAX_HEAT_SENSORS);
        for (size_t i = 0; i < heat->n; i++) {
                const HeatSensor *sensor = &heat->items[i];
                check_text(sensor->label, sizeof sensor->label);
                assert_true(isnan(sensor->peak_c) || (sensor->peak_c > -100 && sensor->peak_c < 250));
                assert_true(isnan(sensor->peak_c) || isnan(sensor->after_c) ||
                            sensor->peak_c >= sensor->after_c);
        }
}

static void test_anything(void **state)
{
        DeviceNode nodes[] = {
                { .name = "md0", .major = 9, .kind = DEVICE_RAID, .parent = -1 },
                { .name = "sda", .major = 8, .kind = DEVICE_DISK, .model = "QEMU \xc3\xa9" },
        };
        char filesystem[] = "ext4";
        const Device device = { .nodes = nodes, .n_nodes = 2, .filesystem = filesystem, .fs_uuid = "0123" };
        _cleanup_free_ States *states = calloc(2, sizeof *states);
        _cleanup_free_ char *proc = path_format("%s/proc", root), *sys = path_format("%s/sys", root);
        const DeviceRoots roots = { .procfs = proc, .sysfs = sys };
        unsigned n_limits = 0, n_states = 0, n_known = 0;

        (void) state;
        assert_true(states && proc && sys);
        srandom(SEED);
        for (unsigned i = 0; i < N_TREES; i++) {
                OwnLimits limits;
                WaitCounters waiting;
                Heat heat = { 0 };

                for (size_t j = 0; j < ELEMENTSOF(attributes); j++) {
                        (void) remove(below(attributes[j]));
                        if (i % 2 == 0 || random() % 4 == 0)
                                put_anything(attributes[j]);
                        else if (j == 0)
                                put_file(attributes[j], "7:blkio:/a\n2:cpu:/\n0::/a\n", 26);
                        else if (strstr(attributes[j], "cgroup.procs"))
                                put_file(attributes[j], "1\n", 2);
                        else { /* where it should be, with something in it */
                                char text[400];
                                put_file(attributes[j], text, make_text(text, sizeof text));
                        }
                }
                own_limits_read(&roots, &device, &limits);
                check_limits(&limits);
                states_read(&roots, &device, &states[0]);
                check_states(&states[0]);
                states_compare(&states[1], &states[0]);
                check_states(&states[0]);
                states[1] = states[0];
                heat_read(&roots, &device, &heat);
                heat_read(&roots, &device, &heat);
                check_heat(&heat);
                wait_counters_read(&roots, &device, NULL, 0, &waiting);
                for (size_t j = 0; j < sizeof waiting / sizeof(int64_t); j++) {
                        assert_true(((const int64_t *) &waiting)[j] >= -1);
                        n_known += ((const int64_t *) &waiting)[j] >= 0;
                }
                n_limits += (unsigned) limits.n;
                n_states += (unsigned) states[0].n;
        }
        assert_true(n_limits > 20 && n_states > 200 && n_known > 20); /* some of it was right */
}

/* ---- the child that reads the heat ---- */

static void put_heat(const char *millidegrees)
{
        put_file("sys/block/sda/device/hwmon/hwmon1/temp1_input.new", millidegrees, strlen(millidegrees));
        _cleanup_free_ char *from = strdup(below("sys/block/sda/device/hwmon/hwmon1/temp1_input.new"));
        assert_int_equal(rename(from, below("sys/block/sda/device/hwmon/hwmon1/temp1_input")), 0);
}

/* Waits until the last reading is WANTED_C, which takes two readings at most. */
static void await_heat(const HeatWatch *watch, double wanted_c, Heat *heat)
{
        uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + 60 * NS_PER_S;

        do {
                heat_watch_get(watch, heat);
                if (heat->n > 0 && fabs(heat->items[0].after_c - wanted_c) < 0.01)
                        return;
                (void) poll(NULL, 0, 1);
        } while (clock_ns(CLOCK_MONOTONIC) < end_ns);
        fail_msg("no reading of %g within a minute", wanted_c);
}

static void test_watch(void **state)
{
        NEEDS_PIDFD();
        DeviceNode nodes[] = { { .name = "sda", .major = 8, .kind = DEVICE_DISK, .parent = -1 } };
        const Device device = { .nodes = nodes, .n_nodes = 1 };
        _cleanup_free_ char *proc = path_format("%s/proc", root), *sys = path_format("%s/sys", root);
        const DeviceRoots roots = { .procfs = proc, .sysfs = sys };
        _cleanup_(heat_watch_freep) HeatWatch *watch = NULL;
        Heat heat;

        (void) state;
        assert_int_equal(heat_watch_new(&roots, &device, 10 * NS_PER_MS, &watch), -ENODEV);
        put_file("sys/block/sda/device/hwmon/hwmon1/temp1_max", "50000\n", 6);
        put_heat("40000\n");
        assert_int_equal(heat_watch_new(&roots, &device, 0, &watch), -EINVAL);
        assert_int_equal(heat_watch_new(&roots, &device, 2 * NS_PER_MS, &watch), 0);
        await_heat(watch, 40, &heat);
        assert_null(heat_crossed(&heat));
        put_heat("55000\n");
        await_heat(watch, 55, &heat);
        put_heat("45000\n");
        await_heat(watch, 45, &heat);
        assert_true(heat.readings >= 3);
        assert_int_equal(heat.n, 1);
        assert_string_equal(heat.items[0].label, "temp1");
        assert_true(fabs(heat.items[0].before_c - 40) < 0.01);
        assert_true(fabs(heat.items[0].peak_c - 55) < 0.01);
        assert_true(fabs(heat.items[0].max_c - 50) < 0.01);
        assert_true(isnan(heat.items[0].crit_c));
        assert_ptr_equal(heat_crossed(&heat), &heat.items[0]);
        watch = heat_watch_free(watch);
        assert_null(watch);
}

/* The program's directory is not the child's. */
static void test_watch_relative(void **state)
{
        NEEDS_PIDFD();
        DeviceNode nodes[] = { { .name = "sda", .major = 8, .kind = DEVICE_DISK, .parent = -1 } };
        const Device device = { .nodes = nodes, .n_nodes = 1 };
        const DeviceRoots roots = { .procfs = "proc", .sysfs = "sys" };
        _cleanup_(heat_watch_freep) HeatWatch *watch = NULL;
        Heat heat;

        (void) state;
        put_heat("33000\n");
        assert_int_equal(chdir(root), 0);
        int r = heat_watch_new(&roots, &device, 10 * NS_PER_MS, &watch);
        assert_int_equal(chdir("/"), 0);
        assert_int_equal(r, 0);
        await_heat(watch, 33, &heat);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_anything, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_watch, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_watch_relative, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
