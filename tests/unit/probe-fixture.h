/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the probe share: a directory, the probe's children as /proc shows them, and a path that
 * hangs. */
#pragma once

#include "tierprobe/probe.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Whether children can be held at all: valgrind before 3.21 does not know pidfd_open(). Says so as TAP if
 * not. */
bool fixture_possible(void);

/* A fresh directory on a file system that takes O_DIRECT if the machine has one: TIERPROBE_TEST_DIRECTORY,
 * else the working directory. */
typedef struct Fixture {
        char directory[256];
        char path[512]; /* for fixture_path() */
} Fixture;

int fixture_setup(void **state);
int fixture_teardown(void **state); /* fails if anything is left in the directory */

/* DIRECTORY/NAME, valid until the next call. */
const char *fixture_path(Fixture *fixture, const char *name);

/* Files in the directory. */
size_t fixture_entries(const Fixture *fixture);

/* Children of this process named NAME, in the order of their pids; at most MAX. */
size_t find_children(const char *name, pid_t *ret, size_t max);

/* Waits until this process has no child left: probe_reap_abandoned() has to get rid of them all. */
void expect_no_children(void);

/* Mounts a file system at PATH, in a mount namespace of its own, that never answers. False when that is not
 * possible here (no root, no /dev/fuse). */
bool hang_path(const char *path, int *ret_fd);
void unhang_path(const char *path, int fd);
