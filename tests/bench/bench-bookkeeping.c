/* SPDX-License-Identifier: Apache-2.0 */
/* What a writer does for each block besides writing it: the clock, the histogram, the slowest writes,
 * progress in shared memory. Prints nanoseconds a block; judges nothing. */

#include "../../src/probe/shared.h"

#include "tierprobe/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define BLOCKS 2000000U
#define ROUNDS 9

static int compare_doubles(const void *a, const void *b)
{
        double x = *(const double *) a, y = *(const double *) b;

        return (x > y) - (x < y);
}

int main(void)
{
        double ns[ROUNDS];
        StreamShared *own =
                mmap(NULL, sizeof *own, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        if (own == MAP_FAILED)
                return EXIT_FAILURE;
        for (unsigned round = 0; round < ROUNDS; round++) {
                uint64_t go_ns = clock_ns(CLOCK_MONOTONIC), now_ns = go_ns, random = 88172645463325252U;

                for (uint64_t n = 0; n < BLOCKS; n++) {
                        shared_store(&own->call_start_ns, now_ns);
                        shared_store(&own->bytes, shared_load(&own->bytes) + (1 << 20));
                        uint64_t end_ns = clock_ns(CLOCK_MONOTONIC);
                        random ^= random << 13;
                        random ^= random >> 7;
                        random ^= random << 17;
                        uint64_t latency_ns = 200000 + random % 400000; /* spread, as real ones are */
                        histogram_add(&own->latency, latency_ns);
                        slowest_add(&own->slowest, latency_ns, n << 20, now_ns - go_ns);
                        shared_store(&own->blocks, n + 1);
                        now_ns = end_ns;
                }
                ns[round] = (double) (clock_ns(CLOCK_MONOTONIC) - go_ns) / BLOCKS;
        }
        qsort(ns, ROUNDS, sizeof ns[0], compare_doubles);
        (void) printf("  clock, histogram, slowest writes and progress: %.0f ns a block (%.0f..%.0f), %.3f "
                      "%% of the 524 us "
                      "that one of 1 MiB takes at 2 GB/s\n",
                      ns[ROUNDS / 2], ns[0], ns[ROUNDS - 1], 100 * ns[ROUNDS / 2] / 524288);
        return EXIT_SUCCESS;
}
