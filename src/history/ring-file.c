/* SPDX-License-Identifier: Apache-2.0 */
/* The ring's file: its lock, its bytes, where a record lies in it. */

#include "ring-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int ring_lock_file(int fd)
{
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

        if (fcntl(fd, F_SETLK, &lock) < 0)
                return errno == EACCES || errno == EAGAIN ? -EBUSY : -errno;
        return 0;
}

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
        ssize_t size = ring_pread(ring->fd, data, n * ring->layout.record_bytes, ring_offset(ring, seq));
        if (size < 0)
                return size;
        memset((char *) data + size, 0, n * ring->layout.record_bytes - (size_t) size);
        return (ssize_t) n;
}
