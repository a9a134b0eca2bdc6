/* SPDX-License-Identifier: Apache-2.0 */
/* The probe itself, for the two files that know it: probe.c changes it, progress.c reads it. */
#pragma once

#include "shared.h"

#include "tierprobe/child.h"

typedef enum StreamPhase {
        STREAM_PREPARING,
        STREAM_READY,
        STREAM_WRITING,
        STREAM_DONE,
        STREAM_GONE,
        _STREAM_PHASE_MAX,
} StreamPhase;

typedef struct Stream {
        Child *child; /* NULL when gone */
        StreamPhase phase;
} Stream;

struct Probe {
        ProbePlan plan;
        char *path;
        ProbeShared *shared;
        size_t shared_size;
        int epoll_fd;
        ProbeState state;
        bool killed;
        Child *watcher; /* NULL: the plan names no row, or it has ended */
        bool watcher_ready;
        unsigned n_in_phase[_STREAM_PHASE_MAX];
        Stream streams[PROBE_MAX_STREAMS];
};
