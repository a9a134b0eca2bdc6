/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of samples: appending and reading. Knows iostat's types. */

#include "ring-internal.h"

#include "tierprobe/cleanup.h"

#include <errno.h>
#include <string.h>

uint64_t ring_checksum(const void *data, size_t size)
{
        const unsigned char *p = data;
        uint64_t hash = UINT64_C(0xcbf29ce484222325);

        for (size_t i = 0; i < size; i++)
                hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
        return hash;
}

static uint64_t record_checksum(const DiskRecord *disk)
{
        return ring_checksum((const char *) disk + sizeof disk->checksum,
                             sizeof *disk - sizeof disk->checksum);
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

int ring_write_header(Ring *ring)
{
        DiskHeader header = { .magic = HEADER_MAGIC,
                              .byte_order = HEADER_BYTE_ORDER,
                              .record_bytes = RECORD_BYTES,
                              .capacity = ring->capacity,
                              .first_seq = ring->first_seq };

        header.checksum = ring_checksum(&header, offsetof(DiskHeader, checksum));
        return ring_pwrite(ring->fd, &header, sizeof header, 0);
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

static void record_to_disk(const RingRecord *record, DiskRecord *ret)
{
        const Snapshot *s = &record->snapshot;
        const Counters *c = &s->counters;

        *ret = (DiskRecord){
                .seq = record->seq,
                .mono_ns = s->mono_ns,
                .boot_ns = s->boot_ns,
                .bracket_ns = s->bracket_ns,
                .diskseq = s->diskseq,
                .real_ns = s->real_ns,
                .r_ios = c->r_ios,
                .r_merges = c->r_merges,
                .r_sectors = c->r_sectors,
                .w_ios = c->w_ios,
                .w_merges = c->w_merges,
                .w_sectors = c->w_sectors,
                .d_ios = c->d_ios,
                .d_merges = c->d_merges,
                .d_sectors = c->d_sectors,
                .f_ios = c->f_ios,
                .r_ms = c->r_ms,
                .w_ms = c->w_ms,
                .d_ms = c->d_ms,
                .f_ms = c->f_ms,
                .io_ms = c->io_ms,
                .queue_ms = c->queue_ms,
                .in_flight = c->in_flight,
                .n_fields = c->n_fields,
                .major = s->major,
                .minor = s->minor,
                .gap = (uint32_t) s->gap,
        };
        memcpy(ret->device, record->device, strnlen(record->device, sizeof ret->device - 1));
        memcpy(ret->run_id, record->run_id, strnlen(record->run_id, sizeof ret->run_id - 1));
        ret->checksum = record_checksum(ret);
}

static void record_from_disk(const DiskRecord *disk, RingRecord *ret)
{
        *ret = (RingRecord){
                .seq = disk->seq,
                .snapshot = {
                        .mono_ns = disk->mono_ns,
                        .boot_ns = disk->boot_ns,
                        .bracket_ns = disk->bracket_ns,
                        .diskseq = disk->diskseq,
                        .real_ns = disk->real_ns,
                        .major = disk->major,
                        .minor = disk->minor,
                        .gap = (Gap) disk->gap,
                        .counters = {
                                .r_ios = disk->r_ios,
                                .r_merges = disk->r_merges,
                                .r_sectors = disk->r_sectors,
                                .w_ios = disk->w_ios,
                                .w_merges = disk->w_merges,
                                .w_sectors = disk->w_sectors,
                                .d_ios = disk->d_ios,
                                .d_merges = disk->d_merges,
                                .d_sectors = disk->d_sectors,
                                .f_ios = disk->f_ios,
                                .r_ms = disk->r_ms,
                                .w_ms = disk->w_ms,
                                .d_ms = disk->d_ms,
                                .f_ms = disk->f_ms,
                                .io_ms = disk->io_ms,
                                .queue_ms = disk->queue_ms,
                                .in_flight = disk->in_flight,
                                .n_fields = disk->n_fields,
                        },
                },
        };
        memcpy(ret->device, disk->device, strnlen(disk->device, sizeof ret->device - 1));
        memcpy(ret->run_id, disk->run_id, strnlen(disk->run_id, sizeof ret->run_id - 1));
}

bool ring_record_is(const DiskRecord *disk, uint64_t seq)
{
        return disk->seq == seq && disk->gap < _GAP_MAX && disk->checksum == record_checksum(disk);
}

int ring_append(Ring *ring, RingRecord *record)
{
        DiskRecord disk;

        record->seq = ring->next_seq;
        record_to_disk(record, &disk);
        int r = ring_pwrite(ring->fd, &disk, sizeof disk, ring_offset(ring, ring->next_seq));
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
        DiskRecord disk;

        if (seq < ring_first_seq(ring) || seq >= ring->next_seq)
                return -ENOENT;
        ssize_t n = ring_pread(ring->fd, &disk, sizeof disk, ring_offset(ring, seq));
        if (n != sizeof disk || !ring_record_is(&disk, seq))
                return -ENODATA;
        record_from_disk(&disk, ret);
        return 0;
}

Ring *ring_free(Ring *ring)
{
        if (!ring)
                return NULL;
        if (ring->fd >= 0)
                (void) close(ring->fd);
        free(ring);
        return NULL;
}

void ring_freep(Ring **ring)
{
        (void) ring_free(*ring);
}
