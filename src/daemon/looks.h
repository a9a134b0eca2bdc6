/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at paths through children, for everyone in the daemon who wants to know: at most one child a path,
 * until the kernel has let go of it. A file system that hangs for hours holds one process, however often and
 * by whom it is asked about. Knows probe. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <systemd/sd-event.h>

#include "tierprobe/probe.h"

typedef struct Looks Looks;

/* One asker's interest in a path. */
typedef struct Look Look;

/* What was seen. With facts->error ETIMEDOUT there is no answer yet: the look goes on, and this comes again
 * with the answer, however late. May free any Look. */
typedef void (*LookSeen)(Look *look, const PathFacts *facts, void *userdata);

/* With SWEEP the first look at each path removes the empty files that a killed test of this user has left
 * there, and says so in the log. */
int looks_new(Looks **ret, sd_event *event, bool sweep);

/* Every Look must be freed before. Forgets the children that the kernel holds. */
Looks *looks_free(Looks *looks);
void looks_freep(Looks **looks);

/* Makes one for PATH (copied) that says ETIMEDOUT after TIMEOUT_NS. 0 or -ENOMEM. */
int look_new(Look **ret, Looks *looks, const char *path, uint64_t timeout_ns, LookSeen seen, void *userdata);
Look *look_free(Look *look);
void look_freep(Look **look);

/* Asks: `seen` follows. While an answer is awaited it asks for one more look after that, since the one under
 * way may have looked too early. Negative errno when no child could be started: nothing follows. */
int look_ask(Look *look);

/* Whether an answer is awaited: within `seen`, whether another follows. */
bool look_is_waiting(const Look *look);

/* When the child at work began, MONOTONIC; 0: there is none. */
uint64_t look_began_ns(const Look *look);
