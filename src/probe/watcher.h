/* SPDX-License-Identifier: Apache-2.0 */
/* The child that reads the device's counters while the writers write. Knows the probe's header. */
#pragma once

#include "shared.h"

typedef struct WatchJob {
        const ProbePlan *plan;
        ProbeShared *shared;
} WatchJob;

/* A ChildMain; USERDATA is a WatchJob. Says MESSAGE_READY, waits for MESSAGE_GO, and samples until no writer
 * runs or the parent closes the socket. */
void watcher_main(int socket, void *userdata) __attribute__((noreturn));
