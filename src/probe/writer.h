/* SPDX-License-Identifier: Apache-2.0 */
/* One stream: the child process that writes. Knows the probe's header. */
#pragma once

#include "shared.h"

typedef struct WriterJob {
        const ProbePlan *plan;
        ProbeShared *shared;
        unsigned stream;
        uint64_t needed_bytes; /* by all streams, without the reserve */
} WriterJob;

/* A ChildMain; USERDATA is a WriterJob. */
void writer_main(int socket, void *userdata) __attribute__((noreturn));
