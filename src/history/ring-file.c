/* SPDX-License-Identifier: Apache-2.0 */
/* The ring's file: what lies where in it. */

#include "ring-internal.h"

#include <string.h>

int ring_write_header(Ring *ring)
{
        char page[HEADER_BYTES];

        ring_header_make(ring, page);
        /* The checkpoints lie between the two. */
        int r = ring_write(ring, page, sizeof(DiskHeader), 0);
        return r < 0 ? r
                     : ring_write(ring, page + FIELDS_OFFSET, HEADER_BYTES - FIELDS_OFFSET, FIELDS_OFFSET);
}

int ring_write_checkpoint(Ring *ring)
{
        DiskCheckpoint checkpoint = { .next_seq = ring->next_seq };
        unsigned place = (ring->checkpoint_place + 1) % CHECKPOINT_PLACES;

        checkpoint.checksum = ring_checksum(&checkpoint, offsetof(DiskCheckpoint, checksum));
        int r = ring_write(ring, &checkpoint, sizeof checkpoint, CHECKPOINT_OFFSET(place));
        if (r < 0)
                return r;
        ring->checkpoint_place = place;
        ring->checkpoint_seq = ring->next_seq;
        return 0;
}

uint64_t ring_capacity(const Ring *ring)
{
        return ring->capacity;
}

uint64_t ring_first_seq(const Ring *ring)
{
        uint64_t n = ring->next_seq - ring->first_seq;

        return n > ring->capacity ? ring->next_seq - ring->capacity : ring->first_seq;
}

uint64_t ring_next_seq(const Ring *ring)
{
        return ring->next_seq;
}

ssize_t ring_read_raw(const Ring *ring, void *data, uint64_t seq, size_t n)
{
        uint64_t in_a_row = ring->capacity - (seq - 1) % ring->capacity;

        if (n > in_a_row)
                n = (size_t) in_a_row;
        ssize_t size = ring_read_bytes(ring, data, n * ring->layout.record_bytes, ring_offset(ring, seq));
        if (size < 0)
                return size;
        memset((char *) data + size, 0, n * ring->layout.record_bytes - (size_t) size);
        return (ssize_t) n;
}
