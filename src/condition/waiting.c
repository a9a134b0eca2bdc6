/* SPDX-License-Identifier: Apache-2.0 */
/* Who waited for what: pressure, throttled and stolen time. Plain reads below the given roots. */

#include "tierprobe/condition.h"

#include "cgroup.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/file.h"
#include "tierprobe/units.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The structure is one number after the other, for what is done to each. */
#define N_FIELDS (sizeof(WaitCounters) / sizeof(int64_t))

/* Adds VALUE to what is known; an overflow makes it unknown. */
static void add_value(int64_t *to, uint64_t value)
{
        int64_t sum;

        if (value > INT64_MAX || __builtin_add_overflow(*to < 0 ? 0 : *to, (int64_t) value, &sum))
                sum = -1;
        *to = sum;
}

/* The number behind NAME and SEPARATOR in LINE ("some ... total=123", "throttled_usec 5"); false: none. */
static bool number_after(const char *line, const char *name, char separator, uint64_t *ret)
{
        size_t n = strlen(name);
        char digits[24];

        for (const char *word = line + strspn(line, " "); *word; word += strspn(word, " ")) {
                size_t length = strcspn(word, " ");
                const char *number = word + n + 1;
                if (strncmp(word, name, n) == 0 && word[n] == separator) {
                        size_t size = strspn(number, "0123456789");
                        char end = number[size];
                        if (size == 0 || size >= sizeof digits || (end != '\0' && end != ' '))
                                return false;
                        memcpy(digits, number, size);
                        digits[size] = '\0';
                        return parse_u64(digits, ret) == 0;
                }
                word += length;
        }
        return false;
}

/* ---- pressure ---- */

typedef struct Pressure {
        int64_t *some_us, *full_us; /* NULL: not wanted */
} Pressure;

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=123" */
static void take_pressure(char *line, void *userdata)
{
        const Pressure *pressure = userdata;
        uint64_t value = 0;

        if (!number_after(line, "total", '=', &value) || value > INT64_MAX)
                return;
        if (strncmp(line, "some ", 5) == 0 && pressure->some_us)
                *pressure->some_us = (int64_t) value;
        else if (strncmp(line, "full ", 5) == 0 && pressure->full_us)
                *pressure->full_us = (int64_t) value;
}

static void read_host_pressure(const DeviceRoots *roots, WaitCounters *ret)
{
        _cleanup_free_ char *path = path_format("%s/pressure", roots->procfs);
        _cleanup_close_ int fd = path ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
        const Group host = { .fd = fd };

        if (fd < 0)
                return;
        group_lines(&host, "cpu", take_pressure, &(Pressure){ &ret->host_cpu_some_us, NULL });
        group_lines(&host, "io", take_pressure, &(Pressure){ &ret->host_io_some_us, &ret->host_io_full_us });
        group_lines(&host, "memory", take_pressure, &(Pressure){ &ret->host_memory_some_us, NULL });
}

/* ---- control groups ---- */

typedef struct Reading {
        const Device *device;
        WaitCounters *counters;
} Reading;

/* Version 2 counts microseconds, version 1 nanoseconds. */
static void take_cpu_stat(char *line, void *userdata)
{
        WaitCounters *counters = userdata;
        uint64_t value = 0;

        if (number_after(line, "throttled_usec", ' ', &value))
                add_value(&counters->own_cpu_throttled_us, value);
        else if (number_after(line, "throttled_time", ' ', &value))
                add_value(&counters->own_cpu_throttled_us, value / 1000);
}

static bool is_of_stack(const Device *device, const char *line)
{
        unsigned major, minor;

        if (sscanf(line, "%9u:%9u", &major, &minor) != 2)
                return false;
        for (size_t i = 0; device && i < device->n_nodes; i++)
                if (device->nodes[i].major == major && device->nodes[i].minor == minor)
                        return true;
        return false;
}

/* "8:0 rbytes=... cost.wait=123 cost.indebt=0 cost.indelay=45": what iocost held back. */
static void take_io_stat(char *line, void *userdata)
{
        const Reading *reading = userdata;
        uint64_t value = 0;

        if (!is_of_stack(reading->device, line))
                return;
        if (number_after(line, "cost.wait", '=', &value))
                add_value(&reading->counters->own_io_delayed_us, value);
        if (number_after(line, "cost.indelay", '=', &value))
                add_value(&reading->counters->own_io_delayed_us, value);
}

static void read_group_v2(const Group *group, void *userdata)
{
        const Reading *reading = userdata;
        WaitCounters *counters = reading->counters;

        group_lines(group, "cpu.stat", take_cpu_stat, counters);
        if (!group->own)
                return;
        group_lines(group, "cpu.pressure", take_pressure, &(Pressure){ &counters->own_cpu_some_us, NULL });
        group_lines(group, "io.pressure", take_pressure,
                    &(Pressure){ &counters->own_io_some_us, &counters->own_io_full_us });
        group_lines(group, "io.stat", take_io_stat, userdata);
}

static void read_group_cpu(const Group *group, void *userdata)
{
        const Reading *reading = userdata;

        group_lines(group, "cpu.stat", take_cpu_stat, reading->counters);
}

/* ---- processors ---- */

/* Reads the beginning of a file of any length, terminated. */
static bool read_head(const char *path, char *buf, size_t size)
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);

        if (n <= 0)
                return false;
        buf[n] = '\0';
        return true;
}

/* "cpu  USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL GUEST GUEST_NICE", the last two counted in the first.
 */
static void read_processors(const DeviceRoots *roots, WaitCounters *ret)
{
        enum { STEAL = 7, N_STATES = 8 };
        _cleanup_free_ char *path = path_format("%s/stat", roots->procfs);
        long ticks_per_s = sysconf(_SC_CLK_TCK); /* 100 */
        uint64_t states[N_STATES], sum = 0;
        char text[512];
        int used = 0;

        if (!path || ticks_per_s < 100 || !read_head(path, text, sizeof text) ||
            strncmp(text, "cpu ", 4) != 0)
                return;
        const char *p = text + 4;
        for (size_t i = 0; i < N_STATES; i++, p += used) {
                unsigned long long value;
                if (sscanf(p, " %15llu%n", &value, &used) != 1)
                        return;
                states[i] = value;
                sum += value;
        }
        add_value(&ret->steal_ms, states[STEAL] * 1000 / (uint64_t) ticks_per_s);
        add_value(&ret->processor_ms, sum * 1000 / (uint64_t) ticks_per_s);
}

/* "RAN_NS WAITED_NS SLICES" */
static void read_writers(const pid_t *writers, size_t n, WaitCounters *ret)
{
        for (size_t i = 0; i < n; i++) {
                unsigned long long ran, waited;
                char path[64], text[128];

                (void) snprintf(path, sizeof path, "/proc/%d/schedstat", (int) writers[i]);
                if (!read_head(path, text, sizeof text) || sscanf(text, "%18llu %18llu", &ran, &waited) != 2)
                        continue;
                add_value(&ret->writers_ran_ns, ran);
                add_value(&ret->writers_waited_ns, waited);
        }
}

/* ---- all of it ---- */

void wait_counters_read(const DeviceRoots *roots, const Device *device, const pid_t *writers, size_t n,
                        WaitCounters *ret)
{
        WaitCounters counters;
        Reading reading = { .device = device, .counters = &counters };

        for (size_t i = 0; i < N_FIELDS; i++)
                ((int64_t *) &counters)[i] = -1;
        read_host_pressure(roots, &counters);
        groups_visit(roots, NULL, read_group_v2, &reading);
        groups_visit(roots, "cpu", read_group_cpu, &reading);
        read_processors(roots, &counters);
        read_writers(writers, n, &counters);
        *ret = counters;
}

void wait_counters_subtract(const WaitCounters *before, const WaitCounters *after, WaitCounters *ret)
{
        const int64_t *was = (const int64_t *) before, *is = (const int64_t *) after;
        WaitCounters difference;

        for (size_t i = 0; i < N_FIELDS; i++)
                ((int64_t *) &difference)[i] = was[i] < 0 || is[i] < was[i] ? -1 : is[i] - was[i];
        *ret = difference;
}
