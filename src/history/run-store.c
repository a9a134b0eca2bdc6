/* SPDX-License-Identifier: Apache-2.0 */
/* Past runs: one document a file, the list of their ids in memory. What is put off is made by the queue.
 * Knows base. */

#include "tierprobe/history.h"

#include "run-queue.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define SUFFIX ".json"
#define SUFFIX_NEW SUFFIX ".new" /* write_file_atomic_at() makes these */

typedef char Id[RUN_ID_SIZE];
typedef char FileName[RUN_ID_SIZE + sizeof SUFFIX_NEW];

struct RunStore {
        int fd;
        Id *ids; /* rising */
        size_t n_ids, n_allocated;
        size_t n_aside;
        RunQueue *queue;
};

static void file_name(FileName ret, const char *id, const char *suffix)
{
        (void) snprintf(ret, sizeof(FileName), "%s%s", id, suffix);
}

/* Splits NAME into an id and one of our suffixes: -EINVAL when it is no file of ours. */
static int split_name(const char *name, Id ret_id, const char **ret_suffix)
{
        size_t length = strcspn(name, ".");
        const char *suffix = name + length;
        Id id = "";

        if (length >= sizeof id)
                return -EINVAL;
        memcpy(id, name, length);
        if (!run_id_is_valid(id) || (strcmp(suffix, SUFFIX) != 0 && strcmp(suffix, SUFFIX_NEW) != 0))
                return -EINVAL;
        memcpy(ret_id, id, sizeof id);
        *ret_suffix = suffix;
        return 0;
}

static int compare_ids(const void *a, const void *b)
{
        return strcmp(a, b);
}

/* The place of ID in the list, or where it belongs. */
static size_t find_place(const RunStore *store, const char *id, bool *ret_found)
{
        size_t low = 0, high = store->n_ids;

        while (low < high) {
                size_t middle = low + (high - low) / 2;
                int order = strcmp(store->ids[middle], id);

                if (order == 0) {
                        *ret_found = true;
                        return middle;
                }
                if (order < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        *ret_found = false;
        return low;
}

/* Makes room for one id more. */
static int reserve(RunStore *store)
{
        size_t wanted = store->n_allocated ? store->n_allocated * 2 : 64;

        if (store->n_ids < store->n_allocated)
                return 0;
        Id *grown = reallocarray(store->ids, wanted, sizeof *grown);
        if (!grown)
                return -ENOMEM;
        store->ids = grown;
        store->n_allocated = wanted;
        return 0;
}

static void insert(RunStore *store, size_t place, const char *id)
{
        memmove(store->ids + place + 1, store->ids + place, (store->n_ids - place) * sizeof *store->ids);
        (void) snprintf(store->ids[place], RUN_ID_SIZE, "%s", id);
        store->n_ids++;
}

static void take_out(RunStore *store, size_t place)
{
        store->n_ids--;
        memmove(store->ids + place, store->ids + place + 1, (store->n_ids - place) * sizeof *store->ids);
}

static int list_folder(RunStore *store)
{
        const struct dirent *entry = NULL;
        const char *suffix = NULL;
        Id id;

        _cleanup_close_ int fd = openat(store->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        _cleanup_closedir_ DIR *dir = fdopendir(fd);
        if (!dir)
                return -errno;
        (void) TAKE_FD(fd);
        while ((entry = readdir(dir))) { /* NOLINT(concurrency-mt-unsafe): one thread */
                if (split_name(entry->d_name, id, &suffix) < 0)
                        continue;
                if (strcmp(suffix, SUFFIX_NEW) == 0) { /* of a crash while writing */
                        (void) unlinkat(store->fd, entry->d_name, 0);
                        continue;
                }
                int r = reserve(store);
                if (r < 0)
                        return r;
                insert(store, store->n_ids, id);
        }
        if (store->n_ids > 0)
                qsort(store->ids, store->n_ids, sizeof *store->ids, compare_ids);
        return 0;
}

int run_store_open(RunStore **ret, int dir_fd, const char *name)
{
        _cleanup_(run_store_freep) RunStore *store = calloc(1, sizeof *store);
        if (!store)
                return -ENOMEM;
        if (mkdirat(dir_fd, name, 0750) < 0 && errno != EEXIST) {
                store->fd = -1;
                return -errno;
        }
        store->fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (store->fd < 0)
                return -errno;
        int r = list_folder(store);
        if (r < 0)
                return r;
        ssize_t n_aside = count_set_aside_at(store->fd);
        if (n_aside < 0)
                return (int) n_aside;
        store->n_aside = (size_t) n_aside;
        r = run_queue_new(&store->queue, store->fd);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(store);
        return 0;
}

RunStore *run_store_free(RunStore *store)
{
        if (!store)
                return NULL;
        (void) run_queue_free(store->queue);
        if (store->fd >= 0)
                (void) close(store->fd);
        free(store->ids);
        free(store);
        return NULL;
}

void run_store_freep(RunStore **store)
{
        (void) run_store_free(*store);
}

int run_store_put(RunStore *store, const char *id, const char *text, size_t size)
{
        FileName name;
        bool found = false;

        if (!run_id_is_valid(id))
                return -EINVAL;
        if (size > RUN_STORE_MAX_BYTES)
                return -EFBIG;
        int r = reserve(store);
        if (r < 0)
                return r;
        file_name(name, id, SUFFIX);
        r = run_queue_add(store->queue, name, text, size);
        if (r < 0)
                return r;
        size_t place = find_place(store, id, &found);
        if (!found)
                insert(store, place, id);
        return 0;
}

int run_store_work(RunStore *store, uint64_t retry_ns)
{
        return run_queue_work(store->queue, retry_ns);
}

size_t run_store_finish(RunStore *store, int wait_ms)
{
        return run_queue_finish(store->queue, wait_ms);
}

size_t run_store_waiting(const RunStore *store)
{
        return run_queue_count(store->queue);
}

uint64_t run_store_busy_ns(const RunStore *store)
{
        return run_queue_busy_ns(store->queue);
}

/* The place and the file of a run that is kept. -EINVAL: that is no id, -ENOENT: it is not here. */
static int find_kept(const RunStore *store, const char *id, size_t *ret_place, FileName ret_name)
{
        bool found = false;

        if (!run_id_is_valid(id))
                return -EINVAL;
        *ret_place = find_place(store, id, &found);
        if (!found)
                return -ENOENT;
        file_name(ret_name, id, SUFFIX);
        return 0;
}

int run_store_get(const RunStore *store, const char *id, char **ret_text, size_t *ret_size)
{
        FileName name;
        size_t place = 0;

        const char *waiting = NULL;
        size_t size = 0;

        int r = find_kept(store, id, &place, name);
        if (r < 0)
                return r;
        if (!run_queue_find(store->queue, name, &waiting, &size))
                return read_file_at(store->fd, name, RUN_STORE_MAX_BYTES, ret_text, ret_size);
        char *copy = waiting ? malloc(size + 1) : NULL;
        if (!copy)
                return waiting ? -ENOMEM : -ENOENT;
        memcpy(copy, waiting, size);
        copy[size] = '\0';
        *ret_text = copy;
        *ret_size = size;
        return 0;
}

int run_store_set_aside(RunStore *store, const char *id)
{
        FileName name;
        const char *waiting = NULL;
        size_t place = 0, size = 0;

        int r = find_kept(store, id, &place, name);
        if (r < 0)
                return r;
        if (run_queue_find(store->queue, name, &waiting, &size))
                return -EBUSY;
        take_out(store, place);
        r = set_aside_at(store->fd, name);
        store->n_aside += r >= 0;
        return r;
}

int run_store_remove(RunStore *store, const char *id)
{
        FileName name;
        size_t place = 0;

        int r = find_kept(store, id, &place, name);
        if (r < 0)
                return r;
        r = run_queue_add(store->queue, name, NULL, 0);
        if (r >= 0)
                take_out(store, place);
        return r;
}

size_t run_store_count(const RunStore *store)
{
        return store->n_ids;
}

const char *run_store_id(const RunStore *store, size_t index)
{
        return index < store->n_ids ? store->ids[store->n_ids - 1 - index] : NULL;
}

const char *run_store_older(const RunStore *store, const char *id)
{
        bool found = false;
        size_t place = id ? find_place(store, id, &found) : store->n_ids;

        return place > 0 ? store->ids[place - 1] : NULL;
}

bool run_store_has(const RunStore *store, const char *id)
{
        bool found = false;

        (void) find_place(store, id, &found);
        return found;
}

size_t run_store_set_aside_count(const RunStore *store)
{
        return store->n_aside;
}
