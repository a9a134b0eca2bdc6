/* SPDX-License-Identifier: Apache-2.0 */
/* The devices that `tierprobe iostat` watches on this machine. */
#pragma once

#include "tierprobe/iostat.h"

typedef struct LiveDevices LiveDevices;

/* Watches the N_NAMES devices NAMES (as /sys spells them) in this order; with none all whole disks there are
 * at each reading, in the order of their names. 0 or a negative errno of sampler_new(). */
int live_devices_new(LiveDevices **ret, const char *procfs, const char *sysfs, char *const *names,
                     size_t n_names);
LiveDevices *live_devices_free(LiveDevices *devices);
void live_devices_freep(LiveDevices **devices);

/* Reads all of them now, in place of what TABLE held. 0 or a negative errno; what is wrong with a single
 * device is in its snapshot. */
int live_devices_read(LiveDevices *devices, SnapshotTable *table);

/* Turns what the user typed (a kernel name, a /dev node, or a path on a file system) into the kernel names
 * of the rows, appended to *NAMES of *N. Returns 0, -ENOMEM, or another negative errno after having said on
 * stderr what is wrong. */
int live_resolve(const char *procfs, const char *sysfs, const char *argument, char ***names, size_t *n);
