/* SPDX-License-Identifier: Apache-2.0 */
/* Ends a scheduled run when others need its device. Touches runs, and what the kernel says of others. */

#include "yield.h"

#include "tierprobe/condition.h"
#include "tierprobe/guards.h"

#include <stdio.h>

/* Whether others write more than they may beside RUN; then DETAIL says so. */
static bool others_write(Target *target, const RunRecord *run, const GuardRules *guard, char *detail,
                         size_t size)
{
        const Samples *samples = &target->samples;
        uint64_t own_bytes = run->bytes_written * (run->device && run->device->journals_data ? 2 : 1);
        double mb_per_s = 0;

        if (samples->gap != GAP_NONE || !run->device || run->device->n_rows != 1 ||
            !guard_gives_way(guard, &target->give_way, samples->newest.snapshot.mono_ns,
                             samples->delta.w_sectors * SECTOR_BYTES, own_bytes, &mb_per_s))
                return false;
        (void) snprintf(
                detail, size,
                "Others write %.0f MB/s to %s, more than [guard] abort_foreign_mb_per_s = %g, and come first",
                mb_per_s, run->device->name, guard->abort_foreign_mb_per_s);
        return true;
}

/* Whether others wait for disks more than they may; then DETAIL says so. */
static bool others_wait(const DeviceRoots *roots, const GuardRules *guard, char *detail, size_t size)
{
        OthersPressure pressure;

        if (guard->abort_io_pressure <= 0)
                return false;
        others_pressure_read(roots, &pressure);
        if (!(pressure.percent > guard->abort_io_pressure))
                return false;
        (void) snprintf(detail, size,
                        "%s waits for disks %.0f %% of the time (io.pressure), more than [guard] "
                        "abort_io_pressure = %g, and comes first",
                        pressure.where, pressure.percent, guard->abort_io_pressure);
        return true;
}

void yield_run(Runs *runs, Target *target, const RunRecord *run, const DeviceRoots *roots,
               const GuardRules *guard)
{
        char detail[512];

        if (run->trigger != TRIGGER_MANUAL && (others_write(target, run, guard, detail, sizeof detail) ||
                                               others_wait(roots, guard, detail, sizeof detail)))
                (void) runs_abort(runs, run->id, detail);
}
