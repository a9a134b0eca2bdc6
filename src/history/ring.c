/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of samples: appending and reading. Knows iostat's types. */

#include "ring-internal.h"

#include "tierprobe/cleanup.h"

#include <errno.h>
#include <string.h>

int ring_append(Ring *ring, RingRecord *record)
{
        char data[RECORD_BYTES_MAX];

        record->seq = ring->next_seq;
        ring_record_encode(&ring->layout, record, data);
        int r = ring_write(ring, data, ring->layout.record_bytes, ring_offset(ring, ring->next_seq));
        ring->next_seq++;

        /* A failed one is tried again with the next record: until then opening has more to search, or, when
         * that many records fail as well, gives out their numbers again. The header is repeated for a file
         * that was truncated under us. */
        if (ring->next_seq - ring->checkpoint_seq >= CHECKPOINT_EVERY && ring_write_header(ring) >= 0)
                (void) ring_write_checkpoint(ring);
        return r;
}

int ring_read(const Ring *ring, uint64_t seq, RingRecord *ret)
{
        char data[RECORD_BYTES_MAX];
        size_t size = ring->layout.record_bytes;

        if (seq < ring_first_seq(ring) || seq >= ring->next_seq)
                return -ENOENT;
        ssize_t n = ring_read_bytes(ring, data, size, ring_offset(ring, seq));
        if (n != (ssize_t) size || !ring_record_is(&ring->layout, data, seq))
                return -ENODATA;
        ring_record_decode(&ring->layout, data, ret);
        return 0;
}

Ring *ring_free(Ring *ring)
{
        if (!ring)
                return NULL;
        ring_rewrite_end(ring);
        ring_behind_clear(ring);
        free(ring->behind);
        if (ring->fd >= 0)
                (void) close(ring->fd);
        free(ring);
        return NULL;
}

void ring_freep(Ring **ring)
{
        (void) ring_free(*ring);
}
