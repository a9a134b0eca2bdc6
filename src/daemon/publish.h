/* SPDX-License-Identifier: Apache-2.0 */
/* [publish] feature_file: the standing verdicts as labels for Node Feature Discovery, so that a scheduler
 * finds the nodes whose disks have passed. A child writes the file; the loop never waits for it. */
#pragma once

#include <stddef.h>

#include "tierprobe/config.h"
#include "tierprobe/verdict.h"

typedef struct Publish Publish;

int publish_new(Publish **ret);
Publish *publish_free(Publish *publish);
void publish_freep(Publish **publish);

/* What is to be published from now on: a line "tierprobe-TARGET=VERDICT" for each of the N targets, in FILE
 * (copied; NULL: nowhere). Has a child write it, in place of what was there, when it differs from what was
 * written last; tries again after a while what could not be written. FD is any descriptor, for the child. To
 * be called now and then. */
void publish_verdicts(Publish *publish, const char *file, const TargetConfig *const *targets,
                      const Verdict *verdicts, size_t n, int fd);
