/* SPDX-License-Identifier: Apache-2.0 */
/* The records that writers and their parent share. Touches only that memory. */

#include "shared.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void slowest_add(Slowest *slowest, uint64_t latency_ns, uint64_t offset_bytes, uint64_t start_ns)
{
        uint64_t live = shared_load(&slowest->live);
        unsigned fastest = SLOWEST_SLOTS, n = (unsigned) __builtin_popcountll(live);

        if (n == PROBE_N_SLOWEST) {
                for (unsigned i = 0; i < SLOWEST_SLOTS; i++)
                        if (live & UINT64_C(1) << i &&
                            (fastest == SLOWEST_SLOTS ||
                             slowest->slots[i].latency_ns < slowest->slots[fastest].latency_ns))
                                fastest = i;
                if (latency_ns <= slowest->slots[fastest].latency_ns)
                        return;
        }

        unsigned spare = (unsigned) __builtin_ctzll(~live);
        SlowestSlot *slot = &slowest->slots[spare];
        /* Who sees the spare slot change must also see that it had left LIVE. */
        __atomic_thread_fence(__ATOMIC_RELEASE);
        shared_store(&slot->latency_ns, latency_ns);
        shared_store(&slot->offset_bytes, offset_bytes);
        shared_store(&slot->start_ns, start_ns);
        live |= UINT64_C(1) << spare;
        if (fastest < SLOWEST_SLOTS)
                live &= ~(UINT64_C(1) << fastest);
        __atomic_store_n(&slowest->live, live, __ATOMIC_RELEASE);
}

size_t slowest_read(const Slowest *slowest, SlowestSlot ret[PROBE_N_SLOWEST])
{
        size_t n = 0;

        /* A slot may be reused while it is read. New records become rare soon; the bound is for the
         * principle that a reader never waits. */
        for (unsigned attempt = 0; attempt < 16; attempt++) {
                uint64_t live = __atomic_load_n(&slowest->live, __ATOMIC_ACQUIRE);

                n = 0;
                for (unsigned i = 0; i < SLOWEST_SLOTS && n < PROBE_N_SLOWEST; i++)
                        if (live & UINT64_C(1) << i)
                                ret[n++] = (SlowestSlot){
                                        .latency_ns = shared_load(&slowest->slots[i].latency_ns),
                                        .offset_bytes = shared_load(&slowest->slots[i].offset_bytes),
                                        .start_ns = shared_load(&slowest->slots[i].start_ns),
                                };
                __atomic_thread_fence(__ATOMIC_ACQUIRE);
                if (shared_load(&slowest->live) == live)
                        break;
        }
        return n;
}

void shared_set_outcome(ProbeShared *shared, unsigned stream, ProbeOutcome outcome, int error)
{
        StreamShared *own = &shared->streams[stream];
        uint32_t nobody = 0;

        own->error = error;
        __atomic_store_n(&own->outcome, outcome, __ATOMIC_RELEASE);
        if (outcome == PROBE_OK || outcome == PROBE_STOPPED)
                return;
        (void) __atomic_compare_exchange_n(&shared->first_failed, &nobody, stream + 1, false,
                                           __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
        shared_store(&shared->stop, 1);
}

uint64_t shared_written_bytes(const ProbeShared *shared, unsigned streams)
{
        uint64_t bytes = 0;

        for (unsigned i = 0; i < streams; i++)
                bytes += shared_load(&shared->streams[i].bytes);
        return bytes;
}

/* ---- the watcher's samples ---- */

void watch_init(WatchShared *watch)
{
        series_place(&watch->ticks, watch->tick_items, WATCH_TICKS);
        series_place(&watch->fine, watch->fine_items, WATCH_FINE);
}

void watch_begin_change(WatchShared *watch)
{
        shared_store(&watch->sequence, watch->sequence + 1);
        __atomic_thread_fence(__ATOMIC_RELEASE);
}

void watch_end_change(WatchShared *watch)
{
        __atomic_store_n(&watch->sequence, watch->sequence + 1, __ATOMIC_RELEASE);
}

#define COPY_TRIES 100

int watch_copy(const WatchShared *watch, const Series *series, Series *ret)
{
        Series copy = { 0 };

        int r = series_init(&copy, series->capacity);
        if (r < 0)
                return r;
        Reading *items = copy.items;
        for (unsigned i = 0; i < COPY_TRIES; i++) {
                uint32_t before = __atomic_load_n(&watch->sequence, __ATOMIC_ACQUIRE);

                copy = *series;
                if (before % 2 == 0 && copy.n <= copy.capacity) {
                        memcpy(items, series->items, copy.n * sizeof *items);
                        __atomic_thread_fence(__ATOMIC_ACQUIRE);
                        if (shared_load(&watch->sequence) == before) {
                                copy.items = items;
                                *ret = copy;
                                return 0;
                        }
                }
                (void) usleep(10);
        }
        free(items);
        return -EAGAIN;
}
