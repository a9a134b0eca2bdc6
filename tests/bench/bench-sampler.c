/* SPDX-License-Identifier: Apache-2.0 */
/* How long a sample takes: one device, and a hundred. Prints CPU microseconds per sample; judges nothing.
 *
 * The names are this machine's block devices, over and again where there are fewer than a hundred. */

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/iostat.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#define MANY 100
#define MAX_NAMES 4096

static double cpu_us(void)
{
        return (double) clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e3;
}

static int compare_doubles(const void *a, const void *b)
{
        double x = *(const double *) a, y = *(const double *) b;

        return (x > y) - (x < y);
}

static void measure(const char *what, Sampler **samplers, size_t n, size_t rounds)
{
        _cleanup_free_ double *us = calloc(rounds, sizeof *us);
        size_t unreadable = 0;
        double all = 0;

        if (!us)
                return;
        for (size_t round = 0; round < rounds; round++) {
                double before = cpu_us();
                for (size_t i = 0; i < n; i++) {
                        Snapshot s;
                        sampler_read(samplers[i], &s);
                        unreadable += s.gap != GAP_NONE;
                }
                us[round] = cpu_us() - before;
                all += us[round];
        }
        qsort(us, rounds, sizeof *us, compare_doubles);
        printf("%-28s %9.2f us mean, %9.2f median, %9.2f p99, %9.2f max%s\n", what, all / (double) rounds,
               us[rounds / 2], us[rounds * 99 / 100], us[rounds - 1],
               unreadable ? " (some were not readable)" : "");
}

int main(void)
{
        static char names[MAX_NAMES][DEVICE_NAME_SIZE];
        Sampler *samplers[MANY] = { NULL };
        size_t n_names = 0;

        _cleanup_closedir_ DIR *dir = opendir("/sys/class/block");
        for (struct dirent *entry; dir && n_names < MAX_NAMES && (entry = readdir(dir));)
                if (entry->d_name[0] != '.' && strlen(entry->d_name) < DEVICE_NAME_SIZE)
                        (void) snprintf(names[n_names++], DEVICE_NAME_SIZE, "%.63s", entry->d_name);
        if (n_names == 0) {
                printf("no block device to read\n");
                return 77; /* skipped, to meson */
        }
        for (size_t i = 0; i < MANY; i++) {
                const char *name = names[i % n_names];
                if (sampler_new(&samplers[i], "/proc", "/sys", &name, 1) < 0)
                        return 1;
        }
        printf("%zu block devices\n", n_names);
        measure("one device", samplers, 1, 20000);
        measure("one hundred devices", samplers, MANY, 500);
        for (size_t i = 0; i < MANY; i++)
                sampler_freep(&samplers[i]);

        /* Where /sys does not have the row: every sample reads the whole of diskstats. */
        const char *name = names[0];
        if (sampler_new(&samplers[0], "/proc", "/nonexistent", &name, 1) < 0)
                return 1;
        measure("one device, from diskstats", samplers, 1, 2000);
        sampler_freep(&samplers[0]);
        return 0;
}
