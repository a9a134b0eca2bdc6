/* SPDX-License-Identifier: Apache-2.0 */
/* Intervals out of the ring: a record against the one before it. Knows iostat. */

#include "ring-internal.h"

#include <errno.h>
#include <string.h>

/* PREVIOUS is NULL after a hole, where there is nothing to compare with: an interval over several ticks would
 * be one row with another meaning. */
static Gap compare(const RingRecord *previous, const RingRecord *record, Delta *ret_delta)
{
        Gap gap = delta_compute(previous ? &previous->snapshot : NULL, &record->snapshot, ret_delta);

        /* Sums over several rows have no number of their own that would tell. */
        return previous && gap == GAP_NONE && strcmp(previous->device, record->device) != 0 ? GAP_REPLACED
                                                                                            : gap;
}

int ring_read_delta(const Ring *ring, uint64_t seq, RingRecord *ret, Delta *ret_delta, Gap *ret_gap)
{
        RingRecord previous, record;
        bool has_previous = ring_read(ring, seq - 1, &previous) >= 0;

        int r = ring_read(ring, seq, &record);
        if (r < 0)
                return r;
        *ret_gap = compare(has_previous ? &previous : NULL, &record, ret_delta);
        *ret = record;
        return 0;
}

/* ---- one after the other ---- */

static void read_ahead(const Ring *ring, RingReader *reader, uint64_t seq)
{
        char data[4 * RECORD_BYTES_MAX];
        size_t size = ring->layout.record_bytes, n = sizeof data / size;
        uint64_t to_end = ring->capacity - (seq - 1) % ring->capacity;

        n = n > RING_READ_AHEAD ? RING_READ_AHEAD : n;
        n = n > to_end ? (size_t) to_end : n;
        n = n > ring->next_seq - seq ? (size_t) (ring->next_seq - seq) : n;
        ssize_t got = ring_read_bytes(ring, data, n * size, ring_offset(ring, seq));
        reader->first = seq;
        reader->n = got > 0 ? (size_t) got / size : 0;
        ring_records_decode(&ring->layout, data, reader->n, seq, reader->ahead);
}

static int read_record(const Ring *ring, RingReader *reader, uint64_t seq, RingRecord *ret)
{
        if (seq < ring_first_seq(ring) || seq >= ring->next_seq)
                return -ENOENT;
        if (seq < reader->first || seq - reader->first >= reader->n)
                read_ahead(ring, reader, seq);
        if (reader->n == 0 || reader->ahead[seq - reader->first].seq != seq)
                return -ENODATA;
        *ret = reader->ahead[seq - reader->first];
        return 0;
}

int ring_read_next(const Ring *ring, RingReader *reader, uint64_t seq, Delta *ret_delta, Gap *ret_gap)
{
        RingRecord previous = reader->record;
        bool has_previous =
                (previous.seq > 0 && previous.seq == seq - 1) || ring_read(ring, seq - 1, &previous) >= 0;

        reader->record.seq = 0;
        int r = read_record(ring, reader, seq, &reader->record);
        if (r < 0)
                return r;
        *ret_gap = compare(has_previous ? &previous : NULL, &reader->record, ret_delta);
        return 0;
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
