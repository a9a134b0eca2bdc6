/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the room share while one device is being resolved. */
#pragma once

#include "block.h"
#include "mounts.h"

#include "tierprobe/cleanup.h"

#define DEPTH_MAX 16 /* levels of devices, and of file systems in file systems: deeper is a cycle */

typedef struct Resolver {
        Blocks blocks;
        char *mountinfo;
        size_t mountinfo_size;
        char *notes; /* for Device.detail: sentences joined with "; " */
} Resolver;

/* ---- resolver.c ---- */

/* Reads ROOTS->procfs/self/mountinfo: 0, -ENOMEM or the error of reading it (-EFBIG above 16 MiB). */
int resolver_open(Resolver *resolver, const DeviceRoots *roots);
void resolver_done(Resolver *resolver);

/* Adds a sentence to the notes. 0 or -ENOMEM. */
int resolver_note(Resolver *resolver, const char *format, ...) _printf_(2, 3);

/* ---- filesystem.c: from a path to the devices that own its file system ---- */

typedef struct Found {
        DeviceStatus status;
        char *why;   /* a sentence: why the status is not DEVICE_OK, or what is special; may be NULL */
        Mount mount; /* zeroed when no mount holds the path */
        BlockId *ids;
        size_t n_ids;
        char fs_uuid[64];
} Found;

void found_done(Found *found);

/* Finds them for PATH. Returns 0 with an honest status, or -ENOMEM. RET is the caller's, found_done(). */
int filesystem_find(Resolver *resolver, const char *path, dev_t path_dev, Found *ret);

/* ---- disks.c ---- */

/* A node with nothing below it. The paths of an NVMe head are ways to the head's disk. */
bool device_node_is_leaf(const Device *device, size_t index);

/* ---- stack.c: from those devices down, and the row to judge ---- */

/* Builds DEVICE's nodes below the N_TOPS devices TOPS and chooses its rows. A partition is judged on its
 * whole disk unless AS_NAMED. Returns 0, -E2BIG (more than 1024 devices or 64 rows), -ENOMEM. */
int stack_build(Resolver *resolver, const BlockId *tops, size_t n_tops, bool as_named, Device *device);
