/* SPDX-License-Identifier: Apache-2.0 */
/* The stack of block devices from those that own the file system down to the disks, and which of their rows
 * is judged. */

#include "device-internal.h"

#include "tierprobe/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define NODES_MAX 1024
#define EDGES_MAX 4096
#define ROWS_MAX 64 /* what sampler_new() takes */

/* One device lies on another. A node can have several above it, but names only one as its parent. */
typedef struct Edge {
        size_t above, below;
} Edge;

typedef struct Stack {
        DeviceNode *nodes;
        RowFacts *facts; /* one each */
        unsigned *depths;
        size_t n;
        Edge *edges;
        size_t n_edges;
} Stack;

static void stack_done(Stack *stack)
{
        free(stack->nodes);
        free(stack->facts);
        free(stack->depths);
        free(stack->edges);
}

/* ---- building ---- */

static int stack_grow(Stack *stack)
{
        if (stack->n >= NODES_MAX)
                return -E2BIG;
        if ((stack->n & (stack->n - 1)) != 0) /* grows at powers of two */
                return 0;
        size_t wanted = stack->n > 0 ? stack->n * 2 : 1;
        DeviceNode *nodes = reallocarray(stack->nodes, wanted, sizeof *nodes);
        if (nodes)
                stack->nodes = nodes;
        RowFacts *facts = reallocarray(stack->facts, wanted, sizeof *facts);
        if (facts)
                stack->facts = facts;
        unsigned *depths = reallocarray(stack->depths, wanted, sizeof *depths);
        if (depths)
                stack->depths = depths;
        return nodes && facts && depths ? 0 : -ENOMEM;
}

static int add_edge(Stack *stack, size_t above, size_t below)
{
        for (size_t i = 0; i < stack->n_edges; i++)
                if (stack->edges[i].above == above && stack->edges[i].below == below)
                        return 0;
        if (stack->n_edges >= EDGES_MAX)
                return -E2BIG;
        Edge *grown = reallocarray(stack->edges, stack->n_edges + 1, sizeof *grown);
        if (!grown)
                return -ENOMEM;
        stack->edges = grown;
        stack->edges[stack->n_edges++] = (Edge){ .above = above, .below = below };
        return 0;
}

/* Adds ID below the node ABOVE (-1: a top one) unless it is there already. */
static int add_node(Resolver *resolver, Stack *stack, int above, const BlockId *id)
{
        size_t i = 0;

        while (i < stack->n && strcmp(stack->nodes[i].name, id->name) != 0)
                i++;
        if (i == stack->n) {
                int r = stack_grow(stack);
                if (r < 0)
                        return r;
                block_describe(&resolver->blocks, id, &stack->nodes[i], &stack->facts[i]);
                stack->nodes[i].parent = above;
                stack->depths[i] = above < 0 ? 0 : stack->depths[above] + 1;
                stack->n++;
        }
        return above < 0 ? 0 : add_edge(stack, (size_t) above, i);
}

static int add_by_name(Resolver *resolver, Stack *stack, size_t above, const char *name)
{
        BlockId id;

        int r = blocks_find_name(&resolver->blocks, name, &id);
        if (r == -ENOENT)
                return resolver_note(resolver, "%s lies on %s, which is not visible here",
                                     stack->nodes[above].name, name);
        return r < 0 ? r : add_node(resolver, stack, (int) above, &id);
}

/* The members of a stacked device. */
static int add_slaves(Resolver *resolver, Stack *stack, size_t above, int fd)
{
        _cleanup_(names_done) Names names = {};

        int r = names_read(fd, "slaves", NULL, &names);
        for (size_t i = 0; i < names.n && r == 0; i++)
                r = add_by_name(resolver, stack, above, names.list[i]);
        return r;
}

static bool is_any_nvme_path(const char *name)
{
        return block_is_nvme_path(name, NULL);
}

/* The paths of an NVMe head: newer kernels list them, older ones only name them after it. */
static int add_nvme_paths(Resolver *resolver, Stack *stack, size_t above, int fd)
{
        const struct {
                int fd;
                const char *path;
        } lists[] = { { fd, "multipath" },
                      { resolver->blocks.sys_fd, "class/block" },
                      { resolver->blocks.sys_fd, "block" } };
        char head[DEVICE_NAME_SIZE];
        bool found = false;

        memcpy(head, stack->nodes[above].name, sizeof head); /* adding moves the nodes */
        for (size_t i = 0; i < ELEMENTSOF(lists) && !found; i++) {
                _cleanup_(names_done) Names names = {};
                int r = names_read(lists[i].fd, lists[i].path, is_any_nvme_path, &names);
                for (size_t j = 0; j < names.n && r == 0; j++)
                        if (block_is_nvme_path(names.list[j], head)) {
                                found = true;
                                r = add_by_name(resolver, stack, above, names.list[j]);
                        }
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Whatever holds the file behind a loop device. */
static int add_backing(Resolver *resolver, Stack *stack, size_t above, int fd)
{
        static const char deleted[] = " (deleted)";
        char path[4096], loop[DEVICE_NAME_SIZE];
        Found found = {};
        BlockId id;
        int r = 0;

        ssize_t n = read_attribute_at(fd, "loop/backing_file", path, sizeof path);
        if (n <= 0 || path[0] != '/')
                return 0;
        memcpy(loop, stack->nodes[above].name, sizeof loop); /* adding moves the nodes */
        if ((size_t) n > sizeof deleted && strcmp(path + n - (sizeof deleted - 1), deleted) == 0)
                path[n - (ssize_t) (sizeof deleted - 1)] = '\0';
        if (strncmp(path, "/dev/", 5) == 0) {
                r = blocks_find_written(&resolver->blocks, path, &id);
                if (r != -ENOENT)
                        return r < 0 ? r : add_node(resolver, stack, (int) above, &id);
        }
        r = filesystem_find(resolver, path, 0, &found);
        if (r < 0)
                return r;
        for (size_t i = 0; i < found.n_ids && r == 0; i++)
                r = add_node(resolver, stack, (int) above, &found.ids[i]);
        if (r == 0 && found.status != DEVICE_OK)
                r = resolver_note(resolver, "below %s: %s", loop, found.why);
        found_done(&found);
        return r;
}

static int add_below(Resolver *resolver, Stack *stack, size_t above)
{
        DeviceNode *node = &stack->nodes[above];
        BlockId id = { .major = node->major, .minor = node->minor }, disk;

        memcpy(id.name, node->name, sizeof id.name);
        if (node->kind == DEVICE_PARTITION) {
                int r = blocks_find_disk(&resolver->blocks, &id, &disk);
                return r == -ENOENT ? 0 : r < 0 ? r : add_node(resolver, stack, (int) above, &disk);
        }
        _cleanup_close_ int fd = blocks_open_directory(&resolver->blocks, &id);
        if (fd < 0)
                return 0;
        switch (node->kind) {
        case DEVICE_LOOP:
                return add_backing(resolver, stack, above, fd);
        case DEVICE_NVME:
                return add_nvme_paths(resolver, stack, above, fd);
        case DEVICE_DISK: /* bcache and others have slaves too */
        case DEVICE_LVM:
        case DEVICE_CRYPT:
        case DEVICE_MULTIPATH:
        case DEVICE_DM:
        case DEVICE_RAID:
                return add_slaves(resolver, stack, above, fd);
        case DEVICE_PARTITION:
        case DEVICE_NVME_PATH:
        case DEVICE_ZRAM:
        case _DEVICE_KIND_MAX:
                break;
        }
        return 0;
}

/* ---- choosing ---- */

typedef enum RowState {
        ROW_FINE,
        ROW_DISABLED,
        ROW_UNTIMED,
        ROW_BLIND,
        ROW_CACHED, /* a loop device on the way through the page cache: the row shows that */
} RowState;

static bool is_above(const Stack *stack, size_t i)
{
        for (size_t e = 0; e < stack->n_edges; e++)
                if (stack->edges[e].above == i)
                        return true;
        return false;
}

static bool is_cached_loop(const DeviceNode *node)
{
        return node->kind == DEVICE_LOOP && node->dio == 0;
}

/* The loop device that writes through the page cache, at node I or below it; NULL: none. */
static const DeviceNode *find_cached_loop(const Stack *stack, size_t i)
{
        size_t queue[NODES_MAX], n = 0;
        bool seen[NODES_MAX] = { false };

        queue[n++] = i;
        seen[i] = true;
        for (size_t q = 0; q < n; q++) {
                if (is_cached_loop(&stack->nodes[queue[q]]))
                        return &stack->nodes[queue[q]];
                for (size_t e = 0; e < stack->n_edges; e++) {
                        size_t below = stack->edges[e].below;
                        if (stack->edges[e].above == queue[q] && !seen[below]) {
                                seen[below] = true;
                                queue[n++] = below;
                        }
                }
        }
        return NULL;
}

static RowState row_state(const Stack *stack, size_t i)
{
        const DeviceNode *node = &stack->nodes[i];
        const RowFacts *facts = &stack->facts[i];
        bool below_moved = false;

        if (node->iostats == 0)
                return ROW_DISABLED;
        if (facts->read && facts->untimed)
                return ROW_UNTIMED;
        for (size_t e = 0; e < stack->n_edges; e++)
                if (stack->edges[e].above == i && stack->facts[stack->edges[e].below].moved)
                        below_moved = true;
        if (node->kind == DEVICE_NVME && facts->read && !facts->moved && below_moved)
                return ROW_BLIND;
        return find_cached_loop(stack, i) ? ROW_CACHED : ROW_FINE;
}

typedef struct Rows {
        size_t indexes[NODES_MAX];
        size_t n;
        bool seen[NODES_MAX];
        bool leaves_serve;
} Rows;

static void rows_add(Rows *rows, size_t i)
{
        for (size_t j = 0; j < rows->n; j++)
                if (rows->indexes[j] == i)
                        return;
        rows->indexes[rows->n++] = i;
}

/* The node below a partition, or the node itself. */
static size_t whole_disk(const Stack *stack, size_t i)
{
        if (stack->nodes[i].kind == DEVICE_PARTITION)
                for (size_t e = 0; e < stack->n_edges; e++)
                        if (stack->edges[e].above == i)
                                return stack->edges[e].below;
        return i;
}

static void collect_leaves(const Stack *stack, size_t i, Rows *rows);

static void collect_below(const Stack *stack, size_t i, Rows *rows)
{
        for (size_t e = 0; e < stack->n_edges; e++)
                if (stack->edges[e].above == i)
                        collect_leaves(stack, stack->edges[e].below, rows);
}

/* The rows that show what reaches the disks below node I. A loop device with direct I/O is an end, since its
 * row shows the writes as they are; one without hands each synced write on before it answers, and what lies
 * below it shows how long that took. The paths of an NVMe head serve only if it does not. */
static void collect_leaves(const Stack *stack, size_t i, Rows *rows)
{
        if (rows->seen[i])
                return;
        rows->seen[i] = true;

        const DeviceNode *node = &stack->nodes[i];
        if ((node->kind == DEVICE_LOOP && !is_cached_loop(node)) || !is_above(stack, i) ||
            (node->kind == DEVICE_NVME && row_state(stack, i) == ROW_FINE))
                rows_add(rows, i);
        else
                collect_below(stack, i, rows);
}

static int append_name(char **list, const char *name)
{
        char *longer = path_format("%s%s%s", *list ? *list : "", *list ? ", " : "", name);

        if (!longer)
                return -ENOMEM;
        free(*list);
        *list = longer;
        return 0;
}

static int note_leaves(Resolver *resolver, const Stack *stack, size_t top, RowState state, const Rows *leaves,
                       bool serve)
{
        const char *name = stack->nodes[top].name;
        _cleanup_free_ char *names = NULL, *wrong = NULL;
        const DeviceNode *loop = NULL;

        switch (state) {
        case ROW_DISABLED:
                wrong = path_format("the row of %s stands still (queue/iostats is 0)", name);
                break;
        case ROW_UNTIMED:
                wrong = path_format("the row of %s counts writes but no time", name);
                break;
        case ROW_CACHED:
                loop = find_cached_loop(stack, top);
                wrong = path_format(
                        "%s writes through the page cache (loop/dio is 0): the row of %s does not show "
                        "how fast the disk below is",
                        loop ? loop->name : name, name);
                break;
        case ROW_FINE:
        case ROW_BLIND:
                wrong = path_format("the row of %s counts nothing while its paths do", name);
                break;
        }
        for (size_t i = 0; i < leaves->n; i++)
                if (append_name(&names, stack->nodes[leaves->indexes[i]].name) < 0)
                        return -ENOMEM;
        if (!wrong)
                return -ENOMEM;
        if (!serve)
                return resolver_note(resolver, "%s", wrong);
        return resolver_note(resolver, "%s: %s below it %s judged instead", wrong, names,
                             leaves->n > 1 ? "are" : "is");
}

/* Chooses for the top device TOP: its own row, or the leaves' where it cannot be judged and they can. */
static int choose_for(Resolver *resolver, const Stack *stack, size_t top, bool as_named, Rows *rows)
{
        size_t i = as_named ? top : whole_disk(stack, top);
        RowState state = row_state(stack, i);
        bool serve = false;

        if (state == ROW_FINE) {
                rows_add(rows, i);
                return stack->nodes[i].kind == DEVICE_ZRAM
                               ? resolver_note(
                                         resolver,
                                         "%s counts its time in ticks of the kernel's clock, 1 to 10 ms",
                                         stack->nodes[i].name)
                               : 0;
        }
        _cleanup_free_ Rows *leaves = calloc(1, sizeof *leaves);
        if (!leaves)
                return -ENOMEM;
        leaves->seen[i] = true;
        if (state == ROW_CACHED ||
            (stack->nodes[i].kind != DEVICE_LOOP && stack->nodes[i].kind != DEVICE_PARTITION))
                collect_below(stack, i, leaves);
        for (size_t j = 0; j < leaves->n; j++) {
                serve = row_state(stack, leaves->indexes[j]) == ROW_FINE;
                if (!serve)
                        break;
        }
        if (serve) {
                rows->leaves_serve = true;
                for (size_t j = 0; j < leaves->n; j++)
                        rows_add(rows, leaves->indexes[j]);
        } else
                rows_add(rows, i);
        return note_leaves(resolver, stack, i, state, leaves, serve);
}

/* ---- both ---- */

/* The names of the rows, joined; "/" is "!" in /sys only. */
static void name_rows(Device *device)
{
        size_t used = 0;

        for (size_t i = 0; i < device->n_rows; i++) {
                const char *name = device->nodes[device->rows[i]].name;
                size_t n = strlen(name);
                if (used + (i > 0) + n >= sizeof device->name)
                        break;
                if (i > 0)
                        device->name[used++] = '+';
                memcpy(device->name + used, name, n);
                used += n;
        }
        device->name[used] = '\0';
        name_to_diskstats(device->name);
}

static int take_rows(const Rows *rows, Device *device)
{
        if (rows->n == 0 || rows->n > ROWS_MAX)
                return rows->n == 0 ? -ENOENT : -E2BIG;
        device->rows = calloc(rows->n, sizeof *device->rows);
        if (!device->rows)
                return -ENOMEM;
        memcpy(device->rows, rows->indexes, rows->n * sizeof *device->rows);
        device->n_rows = rows->n;
        device->leaves_serve = rows->leaves_serve;
        device->major = device->nodes[device->rows[0]].major;
        device->minor = device->nodes[device->rows[0]].minor;
        name_rows(device);
        return 0;
}

static int build(Resolver *resolver, Stack *stack, const BlockId *tops, size_t n_tops)
{
        bool cut = false;
        int r = 0;

        for (size_t i = 0; i < n_tops && r == 0; i++)
                r = add_node(resolver, stack, -1, &tops[i]);
        for (size_t i = 0; i < stack->n && r == 0; i++) {
                if (stack->depths[i] < DEPTH_MAX)
                        r = add_below(resolver, stack, i);
                else
                        cut = true;
        }
        if (r == 0 && cut)
                r = resolver_note(resolver, "devices lie on devices more than %d deep: the rest is not shown",
                                  DEPTH_MAX);
        return r;
}

int stack_build(Resolver *resolver, const BlockId *tops, size_t n_tops, bool as_named, Device *device)
{
        _cleanup_(stack_done) Stack stack = {};

        _cleanup_free_ Rows *rows = calloc(1, sizeof *rows);
        if (!rows)
                return -ENOMEM;
        int r = build(resolver, &stack, tops, n_tops);
        for (size_t i = 0; i < stack.n && r == 0; i++)
                if (stack.nodes[i].parent < 0) {
                        r = choose_for(resolver, &stack, i, as_named, rows);
                        device->cache_in_front = device->cache_in_front || find_cached_loop(&stack, i);
                }
        if (r < 0)
                return r;
        device->nodes = TAKE_PTR(stack.nodes);
        device->n_nodes = stack.n;
        return take_rows(rows, device);
}
