/* SPDX-License-Identifier: Apache-2.0 */
/* Ends a scheduled run when others need its device. Touches runs alone. */

#include "yield.h"

#include "tierprobe/guards.h"

#include <stdio.h>

void yield_run(Runs *runs, Target *target, const RunRecord *run, const GuardRules *guard)
{
        const Samples *samples = &target->samples;
        uint64_t own_bytes = run->bytes_written * (run->device && run->device->journals_data ? 2 : 1);
        char detail[256];
        double mb_per_s = 0;

        if (run->trigger == TRIGGER_MANUAL || samples->gap != GAP_NONE || !run->device ||
            run->device->n_rows != 1 ||
            !guard_gives_way(guard, &target->give_way, samples->newest.snapshot.mono_ns,
                             samples->delta.w_sectors * SECTOR_BYTES, own_bytes, &mb_per_s))
                return;
        (void) snprintf(
                detail, sizeof detail,
                "Others write %.0f MB/s to %s, more than [guard] abort_foreign_mb_per_s = %g, and come first",
                mb_per_s, run->device->name, guard->abort_foreign_mb_per_s);
        (void) runs_abort(runs, run->id, detail);
}
