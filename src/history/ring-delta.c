/* SPDX-License-Identifier: Apache-2.0 */
/* Intervals out of the ring: a record against the one before it. Knows iostat. */

#include "ring-internal.h"

#include <string.h>

int ring_read_delta(const Ring *ring, uint64_t seq, RingRecord *ret, Delta *ret_delta, Gap *ret_gap)
{
        RingRecord record, previous;

        int r = ring_read(ring, seq, &record);
        if (r < 0)
                return r;

        /* After a hole there is nothing to compare with: an interval over several ticks would be one row
         * with another meaning. */
        bool has_previous = ring_read(ring, seq - 1, &previous) >= 0;
        Gap gap = delta_compute(has_previous ? &previous.snapshot : NULL, &record.snapshot, ret_delta);

        /* Sums over several rows have no number of their own that would tell. */
        if (gap == GAP_NONE && strcmp(previous.device, record.device) != 0)
                gap = GAP_REPLACED;
        *ret = record;
        *ret_gap = gap;
        return 0;
}
