/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of samples: appending and reading. Knows iostat's types. */

#include "ring-internal.h"

#include "tierprobe/cleanup.h"

#include <errno.h>
#include <string.h>

ssize_t ring_pread(int fd, void *data, size_t size, off_t offset)
{
        size_t got = 0;

        while (got < size) {
                ssize_t n = pread(fd, (char *) data + got, size - got, offset + (off_t) got);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                got += (size_t) n;
        }
        return (ssize_t) got;
}

int ring_pwrite(int fd, const void *data, size_t size, off_t offset)
{
        while (size > 0) {
                ssize_t n = pwrite(fd, data, size, offset);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                data = (const char *) data + n;
                size -= (size_t) n;
                offset += n;
        }
        return 0;
}

int ring_write_header(const Ring *ring)
{
        char page[HEADER_BYTES];

        ring_header_make(ring, page);
        /* The checkpoints lie between the two. */
        int r = ring_pwrite(ring->fd, page, sizeof(DiskHeader), 0);
        return r < 0 ? r
                     : ring_pwrite(ring->fd, page + FIELDS_OFFSET, HEADER_BYTES - FIELDS_OFFSET,
                                   FIELDS_OFFSET);
}

int ring_write_checkpoint(Ring *ring)
{
        DiskCheckpoint checkpoint = { .next_seq = ring->next_seq };
        unsigned place = (ring->checkpoint_place + 1) % CHECKPOINT_PLACES;

        checkpoint.checksum = ring_checksum(&checkpoint, offsetof(DiskCheckpoint, checksum));
        int r = ring_pwrite(ring->fd, &checkpoint, sizeof checkpoint, CHECKPOINT_OFFSET(place));
        if (r < 0)
                return r;
        ring->checkpoint_place = place;
        ring->checkpoint_seq = ring->next_seq;
        return 0;
}

/* ---- records ---- */

int ring_append(Ring *ring, RingRecord *record)
{
        char data[RECORD_BYTES_MAX];

        record->seq = ring->next_seq;
        ring_record_encode(&ring->layout, record, data);
        int r = ring_pwrite(ring->fd, data, ring->layout.record_bytes, ring_offset(ring, ring->next_seq));
        ring->next_seq++;

        /* A failed one is tried again with the next record: until then opening has more to search, or, when
         * that many records fail as well, gives out their numbers again. The header is repeated for a file
         * that was truncated under us. */
        if (ring->next_seq - ring->checkpoint_seq >= CHECKPOINT_EVERY && ring_write_header(ring) >= 0)
                (void) ring_write_checkpoint(ring);
        return r;
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

int ring_read(const Ring *ring, uint64_t seq, RingRecord *ret)
{
        char data[RECORD_BYTES_MAX];
        size_t size = ring->layout.record_bytes;

        if (seq < ring_first_seq(ring) || seq >= ring->next_seq)
                return -ENOENT;
        ssize_t n = ring_pread(ring->fd, data, size, ring_offset(ring, seq));
        if (n != (ssize_t) size || !ring_record_is(&ring->layout, data, seq))
                return -ENODATA;
        ring_record_decode(&ring->layout, data, ret);
        return 0;
}

ssize_t ring_read_raw(const Ring *ring, void *data, uint64_t seq, size_t n)
{
        uint64_t in_a_row = ring->capacity - (seq - 1) % ring->capacity;

        if (n > in_a_row)
                n = (size_t) in_a_row;
        ssize_t size = ring_pread(ring->fd, data, n * ring->layout.record_bytes, ring_offset(ring, seq));
        if (size < 0)
                return size;
        memset((char *) data + size, 0, n * ring->layout.record_bytes - (size_t) size);
        return (ssize_t) n;
}

Ring *ring_free(Ring *ring)
{
        if (!ring)
                return NULL;
        ring_rewrite_end(ring);
        if (ring->fd >= 0)
                (void) close(ring->fd);
        free(ring);
        return NULL;
}

void ring_freep(Ring **ring)
{
        (void) ring_free(*ring);
}
