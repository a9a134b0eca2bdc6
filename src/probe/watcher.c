/* SPDX-License-Identifier: Apache-2.0 */
/* The child that reads the device's counters while the writers write. It is a process of its own, so that
 * nothing which holds up the parent (a terminal that takes no output, Ctrl-Z, a debugger, a busy server)
 * makes a sample late. Touches /proc, /sys, its socket and shared memory, never the tested path. */

#include "watcher.h"

#include "tierprobe/clock.h"
#include "tierprobe/iostat.h"
#include "tierprobe/verdict.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define NEVER UINT64_MAX

/* Waits until AT_NS. False when the parent does not want any more. */
static bool wait_until(int socket, uint64_t at_ns)
{
        for (;;) {
                struct pollfd poll_fd = { .fd = socket, .events = POLLIN };
                uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
                uint64_t left_ns = at_ns > now_ns ? at_ns - now_ns : 0;
                const struct timespec left = { .tv_sec = (time_t) (left_ns / NS_PER_S),
                                               .tv_nsec = (long) (left_ns % NS_PER_S) };
                int n = ppoll(&poll_fd, 1, &left, NULL);

                if (n > 0 || (n < 0 && errno != EINTR))
                        return false;
                if (n == 0 && left_ns == 0)
                        return true;
        }
}

static void read_row(const WatchJob *job, Sampler *sampler, Reading *ret)
{
        ret->written_bytes = shared_written_bytes(job->shared, job->plan->streams);
        sampler_read(sampler, &ret->row);
}

static void watch_row(const WatchJob *job, int socket, Sampler *sampler)
{
        WatchShared *watch = &job->shared->watch;
        uint64_t interval_ns = job->plan->interval_ns, go_ns = shared_load(&job->shared->go_ns);
        uint64_t tick_ns = go_ns + interval_ns, fine_ns = go_ns + PROBE_FINE_NS;
        Reading reading;

        read_row(job, sampler, &reading);
        watch_begin_change(watch);
        series_add(&watch->ticks, &reading);
        series_add(&watch->fine, &reading);
        watch_end_change(watch);
        while (shared_load(&job->shared->running) > 0 &&
               wait_until(socket, tick_ns < fine_ns ? tick_ns : fine_ns)) {
                uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

                read_row(job, sampler, &reading);
                watch_begin_change(watch);
                if (now_ns >= fine_ns) {
                        series_add_spaced(&watch->fine, &reading);
                        fine_ns = tick_after(fine_ns, PROBE_FINE_NS * watch->fine.stride, now_ns, NULL);
                }
                if (now_ns >= tick_ns) {
                        series_add(&watch->ticks, &reading);
                        tick_ns = tick_after(tick_ns, interval_ns, now_ns, NULL);
                }
                /* As soon as regular intervals suffice, fine ones are not judged. */
                if (watch->ticks.n > MIN_SAMPLES_TO_PASS)
                        fine_ns = NEVER;
                watch_end_change(watch);
        }
}

void watcher_main(int socket, void *userdata)
{
        const WatchJob *job = userdata;
        const ProbePlan *plan = job->plan;
        Sampler *sampler = NULL;
        Snapshot snapshot;
        char message;

        /* A look takes microseconds, and comes in time beside any load. Whoever may not have this goes
         * without. */
        (void) setpriority(PRIO_PROCESS, 0, -20);
        if (sampler_new(&sampler, plan->procfs, plan->sysfs, plan->rows, plan->n_rows) < 0)
                _exit(EXIT_FAILURE);
        sampler_read(sampler, &snapshot); /* opens the row's files */
        message = MESSAGE_READY;
        if (send(socket, &message, 1, MSG_NOSIGNAL) != 1)
                _exit(EXIT_FAILURE);
        if (recv(socket, &message, 1, 0) == 1)
                watch_row(job, socket, sampler);
        _exit(EXIT_SUCCESS);
}
