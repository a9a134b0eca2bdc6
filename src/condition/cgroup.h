/* SPDX-License-Identifier: Apache-2.0 */
/* The own control group and its ancestors, of version 1 and 2, below the given roots. Plain reads. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "tierprobe/device.h"

/* One group on the way up. */
typedef struct Group {
        int fd;           /* of its directory, O_PATH */
        const char *path; /* "/sys/fs/cgroup/system.slice/x.service" */
        bool own;         /* the one this process is in, not an ancestor */
} Group;

typedef void (*GroupVisit)(const Group *group, void *userdata);

/* Calls VISIT for the own group of CONTROLLER ("blkio", "cpu"; NULL: of version 2) and each ancestor that is
 * visible, from below. In a container only a part of the path in PROCFS/self/cgroup may be: its leading parts
 * are then left out. Nothing is visited when there is no such hierarchy, or the own group lies outside of
 * what is visible. */
void groups_visit(const DeviceRoots *roots, const char *controller, GroupVisit visit, void *userdata);

/* Calls TAKE for each line of FILE in GROUP, without its newline; files above 256 KiB have none. */
void group_lines(const Group *group, const char *file, void (*take)(char *line, void *userdata),
                 void *userdata);
