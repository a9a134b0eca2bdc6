/* SPDX-License-Identifier: Apache-2.0 */
/* What a ledger that begins anew can know. Reads kept runs, writes the ledger. */

#include "ledger-fill.h"

#include "tierprobe/cleanup.h"

#include <stdio.h>
#include <stdlib.h>

void ledger_fill(const Parts *parts)
{
        enum { MAX_DISKS = 64 };
        char before[RUN_ID_SIZE];
        LedgerState state = ledger_file_state(parts->ledger);
        _cleanup_free_ DiskKey *disks = calloc(MAX_DISKS, sizeof *disks);

        if (!disks || (state != LEDGER_MISSING && state != LEDGER_DAMAGED))
                return;
        for (const char *id = past_older(parts->past, NULL); id; id = past_older(parts->past, before)) {
                _cleanup_(past_run_freep) PastRun *run = NULL;

                (void) snprintf(before, sizeof before, "%s", id);
                if (past_read(parts->past, before, &run, NULL, NULL) < 0 || run->bytes_written == 0)
                        continue;
                ledger_file_add(parts->ledger, (const DiskKey *) disks, past_run_disks(run, disks, MAX_DISKS),
                                run->bytes_written, run->verdict != VERDICT_INCONCLUSIVE,
                                run->finished_real_ns);
        }
}
