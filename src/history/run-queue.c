/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of a folder that wait for its disk: a child makes all that wait when it begins, one after the
 * other. */

#include "run-queue.h"

#include "tierprobe/background.h"
#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/file.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_CHANGES 256
#define MAX_BYTES ((size_t) 64 << 20) /* four of the largest documents, hundreds of usual ones */

typedef struct Change {
        char name[64];
        char *text; /* NULL: the file goes */
        size_t size;
} Change;

struct RunQueue {
        int dir_fd;
        Change changes[MAX_CHANGES]; /* oldest first */
        size_t n_changes, bytes;
        Background *child; /* NULL: none is at work */
        size_t n_at_work;  /* the first ones, which it makes */
        uint64_t begun_ns, failed_ns;
        int result; /* of the last try */
};

int run_queue_new(RunQueue **ret, int dir_fd)
{
        RunQueue *queue = calloc(1, sizeof *queue);

        if (!queue)
                return -ENOMEM;
        queue->dir_fd = dir_fd;
        *ret = queue;
        return 0;
}

/* Forgets the first N. */
static void forget(RunQueue *queue, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                queue->bytes -= queue->changes[i].size;
                free(queue->changes[i].text);
        }
        queue->n_changes -= n;
        memmove(queue->changes, queue->changes + n, queue->n_changes * sizeof *queue->changes);
}

RunQueue *run_queue_free(RunQueue *queue)
{
        if (!queue)
                return NULL;
        (void) background_free(queue->child);
        forget(queue, queue->n_changes);
        free(queue);
        return NULL;
}

/* The newest change of NAME among those from FIRST on; n_changes: none. */
static size_t find(const RunQueue *queue, const char *name, size_t first)
{
        for (size_t i = queue->n_changes; i-- > first;)
                if (strcmp(queue->changes[i].name, name) == 0)
                        return i;
        return queue->n_changes;
}

int run_queue_add(RunQueue *queue, const char *name, const char *text, size_t size)
{
        /* In place of an older one of the same file, unless that is being made. */
        size_t place = find(queue, name, queue->n_at_work);
        bool is_new = place == queue->n_changes;
        size_t freed = is_new ? 0 : queue->changes[place].size;

        if (place == MAX_CHANGES || queue->bytes - freed + size > MAX_BYTES)
                return -ENOBUFS;
        char *copy = text ? malloc(size + 1) : NULL;
        if (text && !copy)
                return -ENOMEM;
        if (copy)
                memcpy(copy, text, size);
        Change *change = &queue->changes[place];
        if (is_new) {
                *change = (Change){ 0 };
                (void) snprintf(change->name, sizeof change->name, "%s", name);
                queue->n_changes++;
        }
        free(change->text);
        change->text = copy;
        change->size = size;
        queue->bytes += size - freed;
        return 0;
}

bool run_queue_find(const RunQueue *queue, const char *name, const char **ret_text, size_t *ret_size)
{
        size_t place = find(queue, name, 0);

        if (place == queue->n_changes)
                return false;
        *ret_text = queue->changes[place].text;
        *ret_size = queue->changes[place].size;
        return true;
}

/* One that fails does not stand in the way of the others. */
static int make_changes(int dir_fd, void *userdata)
{
        const RunQueue *queue = userdata;
        int first_error = 0;

        for (size_t i = 0; i < queue->n_changes; i++) {
                const Change *change = &queue->changes[i];
                int r = 0;

                if (change->text)
                        r = write_file_synced_at(dir_fd, change->name, change->text, change->size, 0640);
                else if (unlinkat(dir_fd, change->name, 0) < 0 && errno != ENOENT)
                        r = -errno;
                if (r < 0 && first_error >= 0)
                        first_error = r;
        }
        return first_error;
}

static void begin(RunQueue *queue)
{
        queue->begun_ns = clock_ns(CLOCK_MONOTONIC);
        int r = background_new(&queue->child, "tierprobe-save", queue->dir_fd, make_changes, queue);
        if (r >= 0) {
                queue->n_at_work = queue->n_changes;
                return;
        }
        queue->result = r;
        queue->failed_ns = queue->begun_ns;
}

/* Takes the child's result, if it has come to its end. */
static void reap(RunQueue *queue)
{
        int r = queue->child ? background_result(queue->child) : -EAGAIN;

        if (r == -EAGAIN)
                return;
        queue->child = background_free(queue->child);
        if (r >= 0)
                forget(queue, queue->n_at_work);
        else
                queue->failed_ns = clock_ns(CLOCK_MONOTONIC);
        queue->n_at_work = 0;
        queue->result = r;
}

int run_queue_work(RunQueue *queue, uint64_t retry_ns)
{
        reap(queue);
        bool is_due = queue->result >= 0 || clock_ns(CLOCK_MONOTONIC) - queue->failed_ns >= retry_ns;
        if (!queue->child && queue->n_changes > 0 && is_due)
                begin(queue);
        return queue->result;
}

size_t run_queue_finish(RunQueue *queue, int wait_ms)
{
        uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + (uint64_t) wait_ms * NS_PER_MS;
        bool tried = false; /* all that waits, by one child */

        while (queue->n_changes > 0) {
                uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

                if (!queue->child) {
                        if (tried && queue->result < 0)
                                break;
                        begin(queue);
                        tried = true;
                }
                if (!queue->child || now_ns >= end_ns)
                        break;
                struct pollfd end = { .fd = background_get_fd(queue->child), .events = POLLIN };
                (void) poll(&end, 1, (int) ((end_ns - now_ns) / NS_PER_MS) + 1);
                reap(queue);
        }
        return queue->n_changes;
}

size_t run_queue_count(const RunQueue *queue)
{
        return queue->n_changes;
}

uint64_t run_queue_busy_ns(const RunQueue *queue)
{
        return queue->child ? clock_ns(CLOCK_MONOTONIC) - queue->begun_ns : 0;
}
