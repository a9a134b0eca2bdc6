/* SPDX-License-Identifier: Apache-2.0 */
/* What the writers have done so far, read from shared memory alone. */

#include "probe-internal.h"

#include "tierprobe/clock.h"

#include <stdlib.h>
#include <string.h>

void probe_progress(const Probe *probe, ProbeProgress *ret)
{
        ProbeProgress progress = { .state = probe->state };
        const ProbeShared *shared = probe->shared;
        progress.swept = shared_load(&shared->swept);
        uint64_t oldest_ns = UINT64_MAX;
        bool stopped = false, open = false, ended = true;

        for (unsigned i = 0; i < probe->plan.streams; i++) {
                const StreamShared *stream = &shared->streams[i];
                uint64_t start_ns = shared_load(&stream->call_start_ns);
                uint64_t begin_ns = shared_load(&stream->begin_ns), end_ns = shared_load(&stream->end_ns);

                progress.bytes_written += shared_load(&stream->bytes);
                progress.blocks_written += shared_load(&stream->blocks);
                if (start_ns != 0 && start_ns < oldest_ns)
                        oldest_ns = start_ns;
                if (begin_ns != 0 && (progress.begin_ns == 0 || begin_ns < progress.begin_ns))
                        progress.begin_ns = begin_ns;
                if (end_ns > progress.end_ns)
                        progress.end_ns = end_ns;
                ended &= end_ns != 0;
                ProbeOutcome outcome = shared_load(&stream->outcome);
                stopped |= outcome == PROBE_STOPPED;
                open |= outcome == OUTCOME_OPEN;
                if (probe->streams[i].phase == STREAM_WRITING)
                        progress.streams_writing++;
                else if (probe->streams[i].phase >= STREAM_DONE)
                        progress.streams_done++;
                if (progress.path_dev == 0) {
                        progress.path_dev = shared_load(&stream->dev);
                        progress.free_bytes = shared_load(&stream->free_bytes);
                        progress.needed_bytes = shared_load(&stream->needed_bytes);
                }
        }
        if (!ended)
                progress.end_ns = 0;
        if (oldest_ns != UINT64_MAX) {
                uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
                progress.oldest_write_ns = now_ns > oldest_ns ? now_ns - oldest_ns : 1;
        }

        uint32_t first = __atomic_load_n(&shared->first_failed, __ATOMIC_ACQUIRE);
        if (first > 0 && first <= probe->plan.streams) {
                const StreamShared *failed = &shared->streams[first - 1];

                progress.outcome = failed->outcome;
                progress.error = failed->error;
                progress.failed_stream = first - 1;
                progress.failed_offset_bytes = failed->failed_offset_bytes;
                progress.writing_failed = failed->writing_failed;
                progress.denial = failed->denial;
        } else if (probe->killed && open)
                progress.outcome = PROBE_KILLED; /* said before the kernel lets go of them */
        else if (stopped)
                progress.outcome = PROBE_STOPPED;
        *ret = progress;
}

size_t probe_writers(const Probe *probe, pid_t *ret, size_t max)
{
        size_t n = 0;

        for (unsigned i = 0; i < probe->plan.streams && n < max; i++)
                if (probe->streams[i].child)
                        ret[n++] = probe->streams[i].child->pid;
        return n;
}

void probe_latency(const Probe *probe, Histogram *ret)
{
        memset(ret, 0, sizeof *ret);
        for (unsigned i = 0; i < probe->plan.streams; i++)
                histogram_merge(ret, &probe->shared->streams[i].latency);
}

bool probe_last_reading(const Probe *probe, Reading *ret)
{
        if (!__atomic_load_n(&probe->shared->last_known, __ATOMIC_ACQUIRE))
                return false;
        *ret = probe->shared->last;
        return true;
}

int probe_samples(const Probe *probe, bool fine, Series *ret)
{
        const WatchShared *watch = &probe->shared->watch;

        return watch_copy(watch, fine ? &watch->fine : &watch->ticks, ret);
}

static int slower_first(const void *a, const void *b)
{
        const ProbeSlowWrite *x = a, *y = b;

        return x->latency_ns < y->latency_ns ? 1 : x->latency_ns > y->latency_ns ? -1 : 0;
}

size_t probe_slowest(const Probe *probe, ProbeSlowWrite ret[PROBE_N_SLOWEST])
{
        ProbeSlowWrite all[2 * PROBE_N_SLOWEST];
        size_t n = 0;

        for (unsigned i = 0; i < probe->plan.streams; i++) {
                SlowestSlot slots[PROBE_N_SLOWEST];
                size_t n_slots = slowest_read(&probe->shared->streams[i].slowest, slots);

                for (size_t j = 0; j < n_slots; j++)
                        all[n++] = (ProbeSlowWrite){
                                .latency_ns = slots[j].latency_ns,
                                .offset_bytes = slots[j].offset_bytes,
                                .start_ns = slots[j].start_ns,
                                .stream = i,
                        };
                qsort(all, n, sizeof all[0], slower_first);
                if (n > PROBE_N_SLOWEST)
                        n = PROBE_N_SLOWEST;
        }
        memcpy(ret, all, n * sizeof all[0]);
        return n;
}
