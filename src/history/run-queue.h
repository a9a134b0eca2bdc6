/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of a folder that wait for its disk, in order, in memory; a child makes them. Whoever reads asks
 * here first. Knows base. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct RunQueue RunQueue;

/* For the folder at DIR_FD (borrowed). 0 or negative errno. */
int run_queue_new(RunQueue **ret, int dir_fd);

/* Forgets what waits. Takes NULL, returns NULL. */
RunQueue *run_queue_free(RunQueue *queue);

/* The file NAME is to be TEXT, or is to go when TEXT is NULL. 0, -ENOBUFS (as much waits as may), -ENOMEM. */
int run_queue_add(RunQueue *queue, const char *name, const char *text, size_t size);

/* Whether a change of NAME waits; what it is to be then, NULL: gone. Borrowed until the next call. */
bool run_queue_find(const RunQueue *queue, const char *name, const char **ret_text, size_t *ret_size);

/* Looks after the child, and begins another one when there is work; after a failure only when RETRY_NS have
 * gone by. Never waits. Returns 0 (all is on the disk, or none has failed), or the errno of the last try. */
int run_queue_work(RunQueue *queue, uint64_t retry_ns);

/* Waits at most so long for all to be on the disk. Returns how many changes still wait. */
size_t run_queue_finish(RunQueue *queue, int wait_ms);

size_t run_queue_count(const RunQueue *queue);

/* How long the child has been at work; 0: none is. */
uint64_t run_queue_busy_ns(const RunQueue *queue);
