/* SPDX-License-Identifier: Apache-2.0 */
/* Text that a reader may have or not: what does not go out at once is kept for a while, then dropped. Never
 * waits, whatever stands behind the descriptor: a terminal under Ctrl-S, a pipe that nobody reads. Inside the
 * cli room. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef struct SpareOutput {
        int fd;
        bool own; /* the descriptor is an open file of ours, and does not wait */
        char pending[4096];
        size_t n_pending;
} SpareOutput;

/* Writes to what FD leads to. FD itself, which other programs share, stays as it is. */
void spare_output_begin(SpareOutput *output, int fd);

/* Writes a piece of text as a whole, or, while too much is pending, drops it as a whole. */
void spare_output_write(SpareOutput *output, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes what goes out at once, and forgets the rest. */
void spare_output_end(SpareOutput *output);
