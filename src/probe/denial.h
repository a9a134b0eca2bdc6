/* SPDX-License-Identifier: Apache-2.0 */
/* Who may not do what on the way to a path. For children: it goes there, and reads /etc/passwd. */
#pragma once

#include "tierprobe/path-error.h"

/* Finds the first directory on the way to PATH (absolute) that the effective user may not enter, or else
 * whether it may not make files in PATH. Names are those of /etc/passwd and /etc/group alone: a name service
 * may hang. RET's user is always set, its directory only when one was found. */
void path_denial_find(const char *path, PathDenial *ret);
