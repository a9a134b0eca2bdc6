/* SPDX-License-Identifier: Apache-2.0 */
/* Whether configured paths can be targets at all. Looks at them all at once, through children. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <systemd/sd-event.h>

#include "looks.h"

#include "tierprobe/config.h"

typedef struct PathCheck PathCheck;

/* ERROR is NULL when all is well, else one line for each fault ("FILE:LINE: ..."), valid during the call. May
 * free the check. */
typedef void (*PathCheckDone)(const char *error, void *userdata);

/* Looks at the path of every target in CONFIG (borrowed): it must be a directory and its last part no
 * symbolic link. A target that KNOWN (NULL: none) has as well is passed over: its path is being watched
 * already. One that does not answer within TIMEOUT_NS is let pass: the disk may recover, and the daemon says
 * so live. With WRITABLE this user must be able to make files in it. A guard that CONFIG sets must be
 * able to work below ROOTS. `done` follows once, never before this
 * returns. 0 or negative errno. */
int path_check_new(PathCheck **ret, sd_event *event, Looks *looks, const DeviceRoots *roots,
                   const Config *config, const Config *known, bool writable, uint64_t timeout_ns,
                   PathCheckDone done, void *userdata);
PathCheck *path_check_free(PathCheck *check);
void path_check_freep(PathCheck **check);

/* The same, writable, for a program that has nothing else to do. 0, -EINVAL with the faults in RET_ERROR
 * (owned by the caller), or another errno. */
int paths_check_now(const DeviceRoots *roots, const Config *config, uint64_t timeout_ns, char **ret_error);

/* Whether CONFIG has a target of the same name and path as TARGET; NULL: no. */
const TargetConfig *paths_find_same(const Config *config, const TargetConfig *target);
