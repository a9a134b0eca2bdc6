/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the configured paths can be targets at all. Knows config and probe. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tierprobe/config.h"

/* Looks at every target's path (through a child, at most TIMEOUT_NS each): it must be a directory and its
 * last part no symbolic link, and, if WRITABLE, this user must be able to make files in it. A path that does
 * not answer in time is let pass: the disk may recover, and the daemon says so live. Returns 0, or -EINVAL
 * with a line for each fault in RET_ERROR ("FILE:LINE: ...", owned by the caller). */
int config_check_paths(const Config *config, uint64_t timeout_ns, bool writable, char **ret_error);
