/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the device of a path, as device_resolve() sees it:
 *     device-show PATH [--procfs DIR] [--sysfs DIR] [--device NAME] [--repeat N] [--condition]
 * With --repeat it resolves N times and prints the mean time instead, with --condition what the kernel says
 * of it beside its counters. */

#include "condition-text.h"
#include "device-text.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>
#include <sys/stat.h>

static int show(const DeviceRoots *roots, const char *path, const char *name, long repeat, bool condition)
{
        _cleanup_free_ char *resolved = realpath(path, NULL);
        _cleanup_(device_freep) Device *device = NULL;
        struct stat st = {};
        uint64_t start = clock_ns(CLOCK_MONOTONIC);

        (void) stat(path, &st);
        for (long i = 0; i < repeat; i++) {
                device = device_free(device);
                int r = device_resolve(roots, resolved ? resolved : path, st.st_dev, name, &device);
                if (r < 0) {
                        fprintf(stderr, "device-show: %s: %s\n", path, strerror(-r));
                        return 1;
                }
        }
        if (repeat > 1)
                printf("%.1f us\n", (double) (clock_ns(CLOCK_MONOTONIC) - start) / (double) repeat / 1e3);
        else if (condition)
                condition_print(roots, device, stdout);
        else
                device_print(device, stdout);
        return 0;
}

int main(int argc, char **argv)
{
        static const struct option options[] = {
                { "procfs", required_argument, NULL, 'p' }, { "sysfs", required_argument, NULL, 's' },
                { "device", required_argument, NULL, 'd' }, { "repeat", required_argument, NULL, 'r' },
                { "condition", no_argument, NULL, 'c' },    {},
        };
        DeviceRoots roots = { .procfs = "/proc", .sysfs = "/sys" };
        const char *name = NULL;
        long repeat = 1;
        bool condition = false;

        for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
                if (c == 'p')
                        roots.procfs = optarg;
                else if (c == 's')
                        roots.sysfs = optarg;
                else if (c == 'd')
                        name = optarg;
                else if (c == 'r')
                        repeat = strtol(optarg, NULL, 10);
                else if (c == 'c')
                        condition = true;
                else
                        return 2;
        }
        if (optind + 1 != argc || repeat < 1) {
                fprintf(stderr, "usage: device-show PATH [--procfs DIR] [--sysfs DIR] [--device NAME] "
                                "[--repeat N] [--condition]\n");
                return 2;
        }
        return show(&roots, argv[optind], name, repeat, condition);
}
