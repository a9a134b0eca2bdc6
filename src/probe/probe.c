/* SPDX-License-Identifier: Apache-2.0 */
/* The parent's side of the write test: starts writers, follows their state. Never touches the tested path. */

#include "probe-internal.h"
#include "watcher.h"
#include "writer.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static int plan_check(const ProbePlan *plan)
{
        uint64_t bytes;

        if (!plan->path || plan->path[0] != '/' || strlen(plan->path) >= PATH_MAX)
                return -EINVAL;
        if (plan->block_size < PROBE_BLOCK_MIN || plan->block_size > PROBE_BLOCK_MAX ||
            plan->block_size % PROBE_BLOCK_MIN != 0)
                return -EINVAL;
        if (plan->count == 0 || __builtin_mul_overflow(plan->block_size, plan->count, &bytes) ||
            bytes > INT64_MAX || plan->streams == 0 || plan->streams > PROBE_MAX_STREAMS)
                return -EINVAL;
        if (plan->pattern >= _PATTERN_MAX || !(plan->min_free_ratio >= 0 && plan->min_free_ratio <= 1))
                return -EINVAL;
        if (plan->wrap_bytes != 0 && plan->wrap_bytes < plan->block_size)
                return -EINVAL;
        if (plan->n_rows > 0 && plan->interval_ns < PROBE_FINE_NS)
                return -EINVAL;
        return 0;
}

/* The most the test's files hold at once. The space of a file given up may become free only after the next
 * one has grown. */
static uint64_t plan_bytes(const ProbePlan *plan)
{
        uint64_t bytes = plan->block_size * plan->count, all;

        if (plan->wrap_bytes != 0 && plan->wrap_bytes < bytes / 2)
                bytes = plan->wrap_bytes * 2;
        return __builtin_mul_overflow(bytes, plan->streams, &all) ? UINT64_MAX : all;
}

static void set_phase(Probe *probe, Stream *stream, StreamPhase phase)
{
        probe->n_in_phase[stream->phase]--;
        stream->phase = phase;
        probe->n_in_phase[phase]++;
}

/* A stream's two descriptors are told apart by the lowest bit. */
static int watch(Probe *probe, int fd, unsigned stream, bool pidfd)
{
        struct epoll_event event = { .events = EPOLLIN, .data.u32 = stream << 1 | pidfd };

        return epoll_ctl(probe->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int start_stream(Probe *probe, unsigned index)
{
        Stream *stream = &probe->streams[index];
        WriterJob job = {
                .plan = &probe->plan,
                .shared = probe->shared,
                .stream = index,
                .needed_bytes = plan_bytes(&probe->plan),
        };

        int r = child_spawn("tierprobe-write", writer_main, &job, &stream->child);
        if (r < 0)
                return r;
        set_phase(probe, stream, STREAM_PREPARING);
        r = watch(probe, stream->child->socket, index, false);
        if (r >= 0)
                r = watch(probe, stream->child->pidfd, index, true);
        return r;
}

/* In the place of a stream's number. */
#define WATCHER PROBE_MAX_STREAMS

static int start_watcher(Probe *probe)
{
        WatchJob job = { .plan = &probe->plan, .shared = probe->shared };

        if (probe->plan.n_rows == 0) {
                probe->watcher_ready = true;
                return 0;
        }
        int r = child_spawn("tierprobe-watch", watcher_main, &job, &probe->watcher);
        if (r < 0)
                return r;
        r = watch(probe, probe->watcher->socket, WATCHER, false);
        if (r >= 0)
                r = watch(probe, probe->watcher->pidfd, WATCHER, true);
        return r;
}

static int make_shared(Probe *probe)
{
        size_t size = sizeof(ProbeShared) + probe->plan.streams * sizeof(StreamShared);
        void *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        if (shared == MAP_FAILED)
                return -errno;
        probe->shared = shared;
        probe->shared_size = size;
        watch_init(&probe->shared->watch);
        probe->shared->running = probe->plan.streams;
        for (unsigned i = 0; i < probe->plan.streams; i++)
                probe->shared->streams[i].outcome = OUTCOME_OPEN;
        return 0;
}

int probe_new(const ProbePlan *plan, Probe **ret)
{
        int r = plan_check(plan);
        if (r < 0)
                return r;

        _cleanup_(probe_freep) Probe *probe = calloc(1, sizeof *probe);
        if (!probe)
                return -ENOMEM;
        probe->epoll_fd = -1;
        probe->plan = *plan;
        probe->path = strdup(plan->path);
        if (!probe->path)
                return -ENOMEM;
        probe->plan.path = probe->path;
        for (unsigned i = 0; i < PROBE_MAX_STREAMS; i++)
                probe->streams[i].phase = STREAM_GONE;
        probe->n_in_phase[STREAM_GONE] = plan->streams;

        r = make_shared(probe);
        if (r < 0)
                return r;
        probe->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        if (probe->epoll_fd < 0)
                return -errno;
        for (unsigned i = 0; i < plan->streams; i++) {
                r = start_stream(probe, i);
                if (r < 0)
                        return r;
        }
        r = start_watcher(probe);
        if (r < 0)
                return r;
        /* Theirs alone, and copied with everything else when they were forked. */
        probe->plan.procfs = probe->plan.sysfs = NULL;
        probe->plan.rows = NULL;
        *ret = TAKE_PTR(probe);
        return 0;
}

Probe *probe_free(Probe *probe)
{
        if (!probe)
                return NULL;
        for (unsigned i = 0; i < probe->plan.streams; i++)
                (void) child_abandon(probe->streams[i].child);
        (void) child_abandon(probe->watcher);
        close_fdp(&probe->epoll_fd);
        if (probe->shared)
                (void) munmap(probe->shared, probe->shared_size);
        free(probe->path);
        free(probe);
        return NULL;
}

void probe_freep(Probe **probe)
{
        (void) probe_free(*probe);
}

size_t probe_reap_abandoned(void)
{
        return child_reap_abandoned();
}

int probe_get_fd(const Probe *probe)
{
        return probe->epoll_fd;
}

static void tell(const Child *child, char message)
{
        /* Cannot fill the socket: a child is told twice at most. A dead one is seen by its pidfd. */
        (void) send(child->socket, &message, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Writers that still wait for MESSAGE_GO see `stop` when they get it. */
static void stop_all(Probe *probe)
{
        shared_store(&probe->shared->stop, 1);
        for (unsigned i = 0; i < probe->plan.streams; i++)
                if (probe->streams[i].phase == STREAM_READY) {
                        tell(probe->streams[i].child, MESSAGE_GO);
                        set_phase(probe, &probe->streams[i], STREAM_WRITING);
                }
}

static void take_messages(Probe *probe, Stream *stream)
{
        char message;
        ssize_t n;

        while ((n = recv(stream->child->socket, &message, 1, MSG_DONTWAIT)) == 1) {
                if (message == MESSAGE_READY && stream->phase == STREAM_PREPARING)
                        set_phase(probe, stream, STREAM_READY);
                else if (message == MESSAGE_DONE && stream->phase < STREAM_DONE)
                        set_phase(probe, stream, STREAM_DONE);
        }
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        /* It is ending; the pidfd says when it has. */
        (void) epoll_ctl(probe->epoll_fd, EPOLL_CTL_DEL, stream->child->socket, NULL);
}

/* If it ends early the run has no samples and is not judged; the run itself goes on. */
static void take_watcher_news(Probe *probe, bool ended)
{
        char message;
        siginfo_t info;

        if (recv(probe->watcher->socket, &message, 1, MSG_DONTWAIT) == 1)
                probe->watcher_ready = true;
        else if (!ended && errno != EAGAIN && errno != EINTR)
                (void) epoll_ctl(probe->epoll_fd, EPOLL_CTL_DEL, probe->watcher->socket, NULL);
        if (!ended || !child_reap(probe->watcher, &info))
                return;
        (void) epoll_ctl(probe->epoll_fd, EPOLL_CTL_DEL, probe->watcher->socket, NULL);
        (void) epoll_ctl(probe->epoll_fd, EPOLL_CTL_DEL, probe->watcher->pidfd, NULL);
        probe->watcher = child_free(probe->watcher);
        probe->watcher_ready = true;
}

/* Signals by which a program ends itself, not others it. */
static bool is_crash(int signal)
{
        return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE ||
               signal == SIGABRT || signal == SIGSYS || signal == SIGTRAP;
}

static void take_exit(Probe *probe, unsigned index)
{
        Stream *stream = &probe->streams[index];
        StreamShared *shared = &probe->shared->streams[index];
        siginfo_t info;

        if (!child_reap(stream->child, &info))
                return;
        if (__atomic_load_n(&shared->outcome, __ATOMIC_ACQUIRE) == OUTCOME_OPEN) {
                bool killed = (info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED) &&
                              !is_crash(info.si_status);

                shared->writing_failed = stream->phase == STREAM_WRITING;
                shared->failed_offset_bytes = 0;
                shared_store(&shared->call_start_ns, 0);
                shared_set_outcome(probe->shared, index, killed ? PROBE_KILLED : PROBE_INTERNAL,
                                   killed ? 0 : ECHILD);
        }
        /* Explicitly: a child forked a moment ago may still hold them open. */
        (void) epoll_ctl(probe->epoll_fd, EPOLL_CTL_DEL, stream->child->socket, NULL);
        (void) epoll_ctl(probe->epoll_fd, EPOLL_CTL_DEL, stream->child->pidfd, NULL);
        stream->child = child_free(stream->child);
        set_phase(probe, stream, STREAM_GONE);
}

static void advance(Probe *probe)
{
        unsigned n = probe->plan.streams;
        const unsigned *in = probe->n_in_phase;

        if (shared_load(&probe->shared->stop))
                stop_all(probe);

        if (in[STREAM_GONE] == n)
                probe->state = PROBE_GONE;
        else if (probe->state < PROBE_DONE && in[STREAM_DONE] + in[STREAM_GONE] == n)
                probe->state = PROBE_DONE;
        else if (probe->state == PROBE_PREPARING && in[STREAM_READY] == n && probe->watcher_ready)
                probe->state = PROBE_READY;
}

ProbeState probe_process(Probe *probe)
{
        struct epoll_event events[64];
        int n;

        do {
                n = epoll_wait(probe->epoll_fd, events, (int) ELEMENTSOF(events), 0);
                for (int i = 0; i < n; i++) {
                        unsigned index = events[i].data.u32 >> 1;

                        if (index == WATCHER) {
                                if (probe->watcher)
                                        take_watcher_news(probe, events[i].data.u32 & 1);
                                continue;
                        }
                        if (!probe->streams[index].child)
                                continue;
                        if (events[i].data.u32 & 1)
                                take_exit(probe, index);
                        else
                                take_messages(probe, &probe->streams[index]);
                }
        } while (n == (int) ELEMENTSOF(events));
        advance(probe);
        return probe->state;
}

void probe_go(Probe *probe)
{
        if (probe->state != PROBE_READY)
                return;
        probe->state = PROBE_WRITING;
        shared_store(&probe->shared->go_ns, clock_ns(CLOCK_MONOTONIC));
        if (probe->watcher)
                tell(probe->watcher, MESSAGE_GO);
        for (unsigned i = 0; i < probe->plan.streams; i++)
                if (probe->streams[i].phase == STREAM_READY) {
                        tell(probe->streams[i].child, MESSAGE_GO);
                        set_phase(probe, &probe->streams[i], STREAM_WRITING);
                }
}

void probe_stop(Probe *probe)
{
        if (probe->state < PROBE_DONE)
                stop_all(probe);
}

void probe_release(Probe *probe)
{
        if (probe->state != PROBE_DONE)
                return;
        probe->state = PROBE_CLOSING;
        for (unsigned i = 0; i < probe->plan.streams; i++)
                if (probe->streams[i].child)
                        tell(probe->streams[i].child, MESSAGE_RELEASE);
}

void probe_kill(Probe *probe)
{
        if (probe->state == PROBE_GONE)
                return;
        probe->state = PROBE_CLOSING;
        probe->killed = true;
        for (unsigned i = 0; i < probe->plan.streams; i++)
                if (probe->streams[i].child)
                        child_kill(probe->streams[i].child);
}
