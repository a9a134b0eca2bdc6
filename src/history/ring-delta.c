/* SPDX-License-Identifier: Apache-2.0 */
/* Intervals out of the ring: a record against the one before it. Knows iostat. */

#include "ring-internal.h"

#include <string.h>

int ring_read_next(const Ring *ring, uint64_t seq, RingRecord *record, Delta *ret_delta, Gap *ret_gap)
{
        RingRecord previous = *record;
        /* After a hole there is nothing to compare with: an interval over several ticks would be one row
         * with another meaning. */
        bool has_previous =
                (previous.seq > 0 && previous.seq == seq - 1) || ring_read(ring, seq - 1, &previous) >= 0;

        int r = ring_read(ring, seq, record);
        if (r < 0) {
                record->seq = 0;
                return r;
        }
        Gap gap = delta_compute(has_previous ? &previous.snapshot : NULL, &record->snapshot, ret_delta);

        /* Sums over several rows have no number of their own that would tell. */
        if (gap == GAP_NONE && strcmp(previous.device, record->device) != 0)
                gap = GAP_REPLACED;
        *ret_gap = gap;
        return 0;
}

int ring_read_delta(const Ring *ring, uint64_t seq, RingRecord *ret, Delta *ret_delta, Gap *ret_gap)
{
        RingRecord record = { .seq = 0 };

        int r = ring_read_next(ring, seq, &record, ret_delta, ret_gap);
        if (r >= 0)
                *ret = record;
        return r;
}

uint64_t ring_find_time(const Ring *ring, int64_t real_ns)
{
        uint64_t low = ring_first_seq(ring), high = ring_next_seq(ring);

        while (low < high) {
                uint64_t middle = low + (high - low) / 2;
                RingRecord record;

                if (ring_read(ring, middle, &record) < 0 || record.snapshot.real_ns < real_ns)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}
