/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into the programs: an allocation that fails when the file named by LAB_MALLOC says so. It holds
 * three numbers of 64 bits: how many allocations still succeed before one fails (negative: all do), how many
 * have failed, and how many blocks are in use. Children have their own memory, and leave the numbers alone.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *block, size_t size);
void __libc_free(void *block);

static struct {
        int64_t left, failed, in_use;
} * shared;
static pid_t owner;

static __attribute__((constructor)) void prepare(void)
{
        const char *name = getenv("LAB_MALLOC");
        int fd = name ? open(name, O_RDWR | O_CLOEXEC) : -1;

        if (fd < 0)
                return;
        void *mapping = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        (void) close(fd);
        if (mapping == MAP_FAILED)
                return;
        owner = getpid();
        shared = mapping;
}

static bool is_ours(void)
{
        return shared && getpid() == owner;
}

static bool fails(void)
{
        if (!is_ours() || shared->left < 0)
                return false;
        if (shared->left-- > 0)
                return false;
        shared->failed++;
        errno = ENOMEM;
        return true;
}

static void *counted(void *block)
{
        if (block && is_ours())
                shared->in_use++;
        return block;
}

void *malloc(size_t size)
{
        return fails() ? NULL : counted(__libc_malloc(size));
}

void *calloc(size_t n, size_t size)
{
        return fails() ? NULL : counted(__libc_calloc(n, size));
}

void *realloc(void *block, size_t size)
{
        if (fails())
                return NULL;
        return block ? __libc_realloc(block, size) : counted(__libc_realloc(block, size));
}

void free(void *block)
{
        if (block && is_ours())
                shared->in_use--;
        __libc_free(block);
}
