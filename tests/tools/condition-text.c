/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel says of a device's condition, as lines of "kind: what". */

#include "condition-text.h"

#include "tierprobe/cleanup.h"

#include <string.h>

/* A path with the root of sysfs as "SYS". */
static const char *shown(const DeviceRoots *roots, const char *path)
{
        static char text[300];
        size_t n = strlen(roots->sysfs);

        (void) snprintf(text, sizeof text, "%s%s", strncmp(path, roots->sysfs, n) == 0 ? "SYS" : "",
                        strncmp(path, roots->sysfs, n) == 0 ? path + n : path);
        return text;
}

static void print_limits(const DeviceRoots *roots, const OwnLimits *limits, FILE *to)
{
        size_t n = 0;

        for (size_t i = 0; i < limits->n; i++) {
                const OwnLimit *limit = &limits->items[i];
                fprintf(to, "limit: %s %.10g %s %s \"%s\"\n", limit_kind_to_string(limit->kind), limit->value,
                        limit->device[0] ? limit->device : "-", shown(roots, limit->where), limit->text);
                n += limit->kind != LIMIT_FILE_SIZE && limit->kind != LIMIT_IDLE_IO;
        }
        fprintf(to, "limits: %zu\n", n);
}

static void print_heat(const Heat *heat, FILE *to)
{
        for (size_t i = 0; i < heat->n; i++) {
                const HeatSensor *sensor = &heat->items[i];
                fprintf(to, "heat: %s \"%s\" %g %g %g\n", sensor->device, sensor->label, sensor->before_c,
                        sensor->max_c, sensor->crit_c);
        }
        fprintf(to, "heats: %zu\n", heat->n);
        const HeatSensor *crossed = heat_crossed(heat);
        if (crossed)
                fprintf(to, "crossed: %s \"%s\"\n", crossed->device, crossed->label);
}

static void print_waiting(const WaitCounters *w, FILE *to)
{
#define WAIT(field) fprintf(to, "wait: " #field " %lld\n", (long long) w->field)
        WAIT(host_cpu_some_us);
        WAIT(host_io_some_us);
        WAIT(host_io_full_us);
        WAIT(host_memory_some_us);
        WAIT(own_cpu_some_us);
        WAIT(own_io_some_us);
        WAIT(own_io_full_us);
        WAIT(own_cpu_throttled_us);
        WAIT(own_io_delayed_us);
        WAIT(steal_ms);
        WAIT(processor_ms);
#undef WAIT
}

void condition_print(const DeviceRoots *roots, const Device *device, FILE *to)
{
        _cleanup_free_ States *states = calloc(1, sizeof *states);
        WaitCounters waiting;
        OthersPressure others;
        OwnLimits limits;
        Heat heat = { 0 };

        if (!states)
                return;
        own_limits_read(roots, device, &limits);
        states_read(roots, device, states);
        heat_read(roots, device, &heat);
        wait_counters_read(roots, device, NULL, 0, &waiting);
        print_limits(roots, &limits, to);
        for (size_t i = 0; i < states->n; i++) {
                const StateFact *fact = &states->items[i];
                fprintf(to, "state: %s %s \"%s\"%s%s\n", fact->device, fact->name, fact->value,
                        fact->meaning ? ": " : "", fact->meaning ? fact->meaning : "");
        }
        print_heat(&heat, to);
        print_waiting(&waiting, to);
        others_pressure_read(roots, &others);
        fprintf(to, "others: %g %s\n", others.percent, shown(roots, others.where));
}
