/* SPDX-License-Identifier: Apache-2.0 */
/* A child that reads the heat of drives again and again, and a mapping in which it leaves what it read: a
 * drive that does not answer holds up the child alone. */

#include "heat.h"

#include "tierprobe/child.h"
#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Two slots: the child fills the one that is not the last, then counts on. */
typedef struct HeatShared {
        uint64_t n_written; /* the last is slots[n_written % 2]; 0: none */
        Heat slots[2];
} HeatShared;

struct HeatWatch {
        HeatShared *shared;
        Child *child;
};

typedef struct Job {
        const DeviceRoots *roots;
        const Device *device;
        uint64_t every_ns;
        HeatShared *shared;
} Job;

static void __attribute__((noreturn)) watch_main(int socket, void *userdata)
{
        const Job *job = userdata;
        Heat *heat = calloc(1, sizeof *heat);
        int every_ms = (int) (job->every_ns / NS_PER_MS);

        for (uint64_t n = 1; heat; n++) {
                struct pollfd parent = { .fd = socket };

                heat_read(job->roots, job->device, heat);
                job->shared->slots[n % 2] = *heat;
                __atomic_store_n(&job->shared->n_written, n, __ATOMIC_RELEASE);
                if (poll(&parent, 1, every_ms) > 0) /* it hung up */
                        break;
        }
        _exit(EXIT_SUCCESS);
}

static void count_sensor(const DeviceNode *node, int fd, int number, void *userdata)
{
        (void) node;
        (void) fd;
        (void) number;
        ++*(unsigned *) userdata;
}

int heat_watch_new(const DeviceRoots *roots, const Device *device, uint64_t every_ns, HeatWatch **ret)
{
        unsigned n_sensors = 0;

        if (every_ns < NS_PER_MS || every_ns > 3600 * NS_PER_S)
                return -EINVAL;
        heat_visit(roots, device, count_sensor, &n_sensors);
        if (n_sensors == 0)
                return -ENODEV;
        _cleanup_(heat_watch_freep) HeatWatch *watch = calloc(1, sizeof *watch);
        if (!watch)
                return -ENOMEM;
        /* The child works in "/". Resolving the name asks the file system /sys, no drive. */
        _cleanup_free_ char *sysfs = realpath(roots->sysfs, NULL);
        if (!sysfs)
                return -errno;
        HeatShared *shared =
                mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (shared == MAP_FAILED)
                return -errno;
        watch->shared = shared;
        const DeviceRoots absolute = { .procfs = roots->procfs, .sysfs = sysfs };
        Job job = { .roots = &absolute, .device = device, .every_ns = every_ns, .shared = shared };
        int r = child_spawn("tierprobe-heat", watch_main, &job, &watch->child);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(watch);
        return 0;
}

HeatWatch *heat_watch_free(HeatWatch *watch)
{
        if (!watch)
                return NULL;
        if (watch->child)
                (void) child_abandon(watch->child);
        if (watch->shared)
                (void) munmap(watch->shared, sizeof *watch->shared);
        free(watch);
        return NULL;
}

void heat_watch_freep(HeatWatch **watch)
{
        *watch = heat_watch_free(*watch);
}

void heat_watch_get(const HeatWatch *watch, Heat *ret)
{
        *ret = (Heat){ .n = 0 };
        /* The slot is written anew only after the next but one reading: it takes a stopped reader to lose
         * that race twice. */
        for (int attempt = 0; attempt < 3; attempt++) {
                uint64_t n = __atomic_load_n(&watch->shared->n_written, __ATOMIC_ACQUIRE);
                if (n == 0)
                        return;
                *ret = watch->shared->slots[n % 2];
                __atomic_thread_fence(__ATOMIC_ACQUIRE);
                if (__atomic_load_n(&watch->shared->n_written, __ATOMIC_RELAXED) == n)
                        break;
        }
}
