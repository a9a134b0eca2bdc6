/* SPDX-License-Identifier: Apache-2.0 */
/* Whom the kernel has killed for want of memory in the own control group. Plain reads. */

#include "tierprobe/condition.h"

#include "cgroup.h"

#include <inttypes.h>
#include <stdio.h>

static void take_line(char *line, void *userdata)
{
        MemoryKills *kills = userdata;

        (void) sscanf(line, "oom_kill %" SCNd64, &kills->n);
}

static void read_group(const Group *group, const char *file, MemoryKills *kills)
{
        if (!group->own || kills->n >= 0)
                return;
        group_lines(group, file, take_line, kills);
        (void) snprintf(kills->where, sizeof kills->where, "%s/%s", group->path, file);
}

static void read_version_1(const Group *group, void *userdata)
{
        read_group(group, "memory.oom_control", userdata);
}

static void read_version_2(const Group *group, void *userdata)
{
        read_group(group, "memory.events", userdata);
}

void memory_kills_read(const DeviceRoots *roots, MemoryKills *ret)
{
        *ret = (MemoryKills){ .n = -1 };
        groups_visit(roots, NULL, read_version_2, ret);
        groups_visit(roots, "memory", read_version_1, ret);
}
