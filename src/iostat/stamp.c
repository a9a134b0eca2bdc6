/* SPDX-License-Identifier: Apache-2.0 */
/* When a snapshot was read, on all three clocks. */

#include "tierprobe/iostat.h"

#include "tierprobe/clock.h"

/* BOOTTIME less MONOTONIC, i.e. how long the machine has slept. Being preempted between the two clocks would
 * look like a suspend, so the tightest of some attempts counts. */
static uint64_t boot_offset_ns(void)
{
        uint64_t offset_ns = 0, tightest_ns = UINT64_MAX;

        for (int i = 0; i < 8 && tightest_ns > 10 * NS_PER_US; i++) {
                uint64_t before_ns = clock_ns(CLOCK_MONOTONIC);
                uint64_t boot_ns = clock_ns(CLOCK_BOOTTIME);
                uint64_t bracket_ns = clock_ns(CLOCK_MONOTONIC) - before_ns;
                if (bracket_ns < tightest_ns) {
                        tightest_ns = bracket_ns;
                        offset_ns = boot_ns - (before_ns + bracket_ns / 2);
                }
        }
        return offset_ns;
}

void snapshot_stamp(Snapshot *snapshot, uint64_t begin_ns, uint64_t end_ns)
{
        snapshot->bracket_ns = end_ns - begin_ns;
        snapshot->mono_ns = begin_ns + snapshot->bracket_ns / 2;
        snapshot->boot_ns = snapshot->mono_ns + boot_offset_ns();
        /* A label: where REALTIME stood at mono_ns. */
        snapshot->real_ns =
                (int64_t) (clock_ns(CLOCK_REALTIME) - (clock_ns(CLOCK_MONOTONIC) - snapshot->mono_ns));
}
