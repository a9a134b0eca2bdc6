/* SPDX-License-Identifier: Apache-2.0 */
/* The grid on which samples are taken. Pure. */

#include "tierprobe/iostat.h"

uint64_t tick_after(uint64_t tick_ns, uint64_t interval_ns, uint64_t now_ns, uint64_t *ret_missed)
{
        uint64_t late_ns = now_ns > tick_ns ? now_ns - tick_ns : 0;
        uint64_t missed = late_ns / interval_ns;

        if (missed > 0 && (missed + 1) * interval_ns - late_ns < interval_ns / 2)
                missed++;
        if (ret_missed)
                *ret_missed = missed;
        return tick_ns + (missed + 1) * interval_ns;
}
