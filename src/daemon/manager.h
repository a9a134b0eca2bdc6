/* SPDX-License-Identifier: Apache-2.0 */
/* The root of the daemon: owns its parts and connects their callbacks; nothing else does. */
#pragma once

#include "tierprobe/config.h"
#include "tierprobe/device.h"

typedef struct Manager Manager;

/* Opens the state and begins to look at the targets' paths. CONFIG is taken; OPTIONS and what they and ROOTS
 * point to must outlive it. Logs what is wrong. 0 or negative errno. */
int manager_new(Manager **ret, const ConfigOptions *options, Config *config, const DeviceRoots *roots,
                const char *state_dir);
Manager *manager_free(Manager *manager);
void manager_freep(Manager **manager);

/* Waits until all paths have answered, or for a second: one that hangs is looked at while it serves. 0, or
 * -EINVAL when one cannot be a target, which is logged. */
int manager_check_paths(Manager *manager);

/* Listens, says READY, runs until a signal ends it. 0 or negative errno. */
int manager_run(Manager *manager);
