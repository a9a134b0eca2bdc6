/* SPDX-License-Identifier: Apache-2.0 */
/* What every program does about signals. Knows libc. */
#pragma once

#include <stdbool.h>

/* To be called first: a reader that is gone and a file that may not grow further (ulimit -f, LimitFSIZE=) are
 * errors of the write, EPIPE and EFBIG, and not the end of the program. */
void signals_prepare(void);

/* Whether SIGNAL is ignored: the program was started like that (by nohup, by a shell's "&"), and it stays so.
 */
bool signal_is_ignored(int signal);
