/* SPDX-License-Identifier: Apache-2.0 */
/* One piece of work on a file that may take as long as the disk likes, done by a child, so that the event
 * loop never waits for it. Knows child. */
#pragma once

typedef struct Background Background;

/* What the child does with a copy of the descriptor: 0 or negative errno. */
typedef int (*BackgroundWork)(int fd, void *userdata);

/* Has a child named NAME (at most 15 characters) do WORK on FD. It sees the memory as it is now, and dies
 * with this process. Returns 0 or negative errno. */
int background_new(Background **ret, const char *name, int fd, BackgroundWork work, void *userdata);

/* Readable once the child has ended. */
int background_get_fd(const Background *background);

/* What WORK returned; -EAGAIN while it is at work, -EIO when the child died otherwise. */
int background_result(Background *background);

/* Kills the child if it is still at work, without waiting for it. Takes NULL, returns NULL. */
Background *background_free(Background *background);
