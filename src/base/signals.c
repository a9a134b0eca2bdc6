/* SPDX-License-Identifier: Apache-2.0 */
/* Dispositions of signals. */

#include "tierprobe/signals.h"

#include <signal.h>
#include <stddef.h>

void signals_prepare(void)
{
        (void) signal(SIGPIPE, SIG_IGN);
        (void) signal(SIGXFSZ, SIG_IGN);
}

bool signal_is_ignored(int signal)
{
        struct sigaction action;

        return sigaction(signal, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}
