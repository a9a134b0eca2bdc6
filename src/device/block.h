/* SPDX-License-Identifier: Apache-2.0 */
/* Block devices by number and by name below the given roots, and what /sys says of one. Plain reads. */
#pragma once

#include "tierprobe/device.h"

typedef struct Blocks {
        const char *procfs;
        int sys_fd; /* of SYSFS; -1 when there is none */
        char *diskstats;
        size_t diskstats_size;
        bool diskstats_read;
} Blocks;

/* A device found: NAME is the kernel's, with "!" for "/" as /sys has it. */
typedef struct BlockId {
        char name[DEVICE_NAME_SIZE];
        uint32_t major, minor; /* 0:0 when /sys has no number, as for a hidden NVMe path */
} BlockId;

/* What a device's row said, as far as the choice of the row needs it. */
typedef struct RowFacts {
        bool read;    /* there is a row */
        bool moved;   /* something was counted */
        bool untimed; /* writes, but not one millisecond of anything */
} RowFacts;

void blocks_open(Blocks *blocks, const DeviceRoots *roots);
void blocks_done(Blocks *blocks);

/* All three: 0, -ENOENT or -ENOMEM. */
int blocks_find_number(Blocks *blocks, uint32_t major, uint32_t minor, BlockId *ret);
int blocks_find_name(Blocks *blocks, const char *name, BlockId *ret); /* kernel name, "!" or "/" */
/* As people, mount tables and /dev write it: "sdb", "/dev/sdb", "mapper/x", "/dev/vg/lv", and links below
 * /dev of this machine as long as they lead to a device that the roots know. */
int blocks_find_written(Blocks *blocks, const char *text, BlockId *ret);

/* The whole disk of a partition; -ENOENT when ID is none. */
int blocks_find_disk(Blocks *blocks, const BlockId *id, BlockId *ret);

/* A descriptor of its directory in /sys, or -ENOENT. */
int blocks_open_directory(const Blocks *blocks, const BlockId *id);

typedef struct Names {
        char **list;
        size_t n;
} Names;

void names_done(Names *names);

/* The sorted entries of directory PATH below DIR_FD that FILTER takes (NULL: all but dot names), at most
 * 100000. A directory that cannot be read has none. Returns 0 or -ENOMEM; the caller's, names_done(). */
int names_read(int dir_fd, const char *path, bool (*filter)(const char *name), Names *ret);

/* The counters of ID in diskstats; false when there are none. */
bool blocks_row(Blocks *blocks, const BlockId *id, Counters *ret);

/* Everything about ID: the node (without its place in the stack) and its row. */
void block_describe(Blocks *blocks, const BlockId *id, DeviceNode *ret_node, RowFacts *ret_facts);

/* Whether NAME is "nvme<subsystem>c<controller>n<namespace>", and then a path of the head HEAD if given. */
bool block_is_nvme_path(const char *name, const char *head);
