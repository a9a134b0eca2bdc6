/* SPDX-License-Identifier: Apache-2.0 */
/* A ring's file in another form or of another capacity: rewritten beside the old one, a slice at a time,
 * while the old one is read and written as before. It takes the old one's name when it is complete and on the
 * disk. */

#include "ring-internal.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define SLICE_RECORDS 2048 /* a millisecond or two */

typedef struct Rewrite {
        Ring to;
        int dir_fd;
        char *name, *temporary;
        uint64_t copied_seq; /* what is before it is in the new file, as far as it is kept there */
        Background *sync;    /* the child that brings it to the disk; NULL: not yet, or done */
        bool synced;
        char *buffer;
} Rewrite;

static Rewrite *rewrite_free(Rewrite *rewrite)
{
        if (!rewrite)
                return NULL;
        (void) background_free(rewrite->sync);
        close_fdp(&rewrite->to.fd);
        if (rewrite->temporary && rewrite->dir_fd >= 0)
                (void) unlinkat(rewrite->dir_fd, rewrite->temporary, 0);
        close_fdp(&rewrite->dir_fd);
        free(rewrite->name);
        free(rewrite->temporary);
        free(rewrite->buffer);
        free(rewrite);
        return NULL;
}
DEFINE_CLEANUP(Rewrite, rewrite_free)

static int open_new(const Ring *ring, Rewrite *rewrite, uint64_t capacity)
{
        Ring *to = &rewrite->to;

        *to = (Ring){
                .fd = -1, .capacity = capacity, .first_seq = ring_first_seq(ring), .next_seq = ring->next_seq
        };
        ring_layout_of_this_release(&to->layout);
        to->first_seq = ring_first_seq(to);
        to->fd = openat(rewrite->dir_fd, rewrite->temporary,
                        O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640);
        if (to->fd < 0)
                return -errno;
        int r = ring_lock_file(to->fd);
        if (r >= 0)
                r = ring_write_header(to);
        return r < 0 ? r : ring_write_checkpoint(to);
}

int ring_rewrite_begin(Ring *ring, int dir_fd, const char *name, uint64_t capacity)
{
        _cleanup_(rewrite_freep) Rewrite *rewrite = calloc(1, sizeof *rewrite);

        if (!rewrite)
                return -ENOMEM;
        rewrite->to.fd = -1;
        rewrite->dir_fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        rewrite->name = strdup(name);
        rewrite->temporary = path_format("%s.new", name);
        rewrite->buffer = malloc(SLICE_RECORDS * ring->layout.record_bytes);
        if (!rewrite->name || !rewrite->temporary || !rewrite->buffer)
                return -ENOMEM;
        if (rewrite->dir_fd < 0)
                return -errno;
        int r = open_new(ring, rewrite, capacity);
        if (r < 0)
                return r;
        rewrite->copied_seq = rewrite->to.first_seq;
        ring->rewrite = TAKE_PTR(rewrite);
        return 0;
}

void ring_rewrite_end(Ring *ring)
{
        ring->rewrite = rewrite_free(ring->rewrite);
}

/* Puts the record at DATA into the new file's form, in place when the forms are the same: a damaged one stays
 * one. */
static void convert(const Ring *from, const Ring *to, const char *data, uint64_t seq, DiskRecord *ret)
{
        RingRecord record;

        if (from->layout.is_ours) {
                memcpy(ret, data, sizeof *ret);
        } else if (ring_record_is(&from->layout, data, seq)) {
                ring_record_decode(&from->layout, data, &record);
                ring_record_encode(&to->layout, &record, ret);
        } else {
                memset(ret, 0, sizeof *ret);
        }
}

/* Copies the next records, at most a slice of them. */
static int copy_slice(const Ring *from, Rewrite *rewrite)
{
        Ring *to = &rewrite->to;
        DiskRecord block[64];
        uint64_t seq = rewrite->copied_seq, n_wanted = 0;

        /* The old file has gone round meanwhile, or the new one would. */
        if (seq < ring_first_seq(from))
                seq = ring_first_seq(from);
        if (from->next_seq - seq > to->capacity)
                seq = from->next_seq - to->capacity;
        if (seq > rewrite->copied_seq) /* nothing before it: there would be a hole */
                to->first_seq = seq;
        n_wanted = from->next_seq - seq;
        ssize_t n = ring_read_raw(from, rewrite->buffer, seq,
                                  n_wanted < SLICE_RECORDS ? (size_t) n_wanted : SLICE_RECORDS);
        if (n < 0)
                return (int) n;
        for (size_t i = 0; i < (size_t) n;) {
                size_t in_block = 0;
                uint64_t first = seq + i, room = to->capacity - (first - 1) % to->capacity;

                for (; i < (size_t) n && in_block < ELEMENTSOF(block) && in_block < room; i++)
                        convert(from, to, rewrite->buffer + i * from->layout.record_bytes, seq + i,
                                &block[in_block++]);
                int r = ring_pwrite(to->fd, block, in_block * sizeof *block, ring_offset(to, first));
                if (r < 0)
                        return r;
        }
        rewrite->copied_seq = seq + (uint64_t) n;
        to->next_seq = rewrite->copied_seq;
        return 0;
}

static int sync_file(int fd, void *userdata)
{
        (void) userdata;
        return fsync(fd) < 0 ? -errno : 0;
}

/* 0 when the new file is on the disk, -EAGAIN while a child brings it there. */
static int bring_to_disk(Rewrite *rewrite)
{
        int r = 0;

        if (!rewrite->sync) {
                r = background_new(&rewrite->sync, "tierprobe-save", rewrite->to.fd, sync_file, NULL);
                return r < 0 ? r : -EAGAIN;
        }
        r = background_result(rewrite->sync);
        if (r == -EAGAIN)
                return r;
        rewrite->sync = background_free(rewrite->sync);
        rewrite->synced = r >= 0;
        return r;
}

static int take_place(Ring *ring, Rewrite *rewrite)
{
        Ring new = rewrite->to;

        int r = ring_write_header(&new);
        if (r >= 0)
                r = ring_write_checkpoint(&new);
        if (r < 0)
                return r;
        if (renameat(rewrite->dir_fd, rewrite->temporary, rewrite->dir_fd, rewrite->name) < 0)
                return -errno;
        rewrite->to.fd = -1;
        ring_behind_clear(ring); /* it has been copied with the rest */
        new.behind = ring->behind;
        close_fdp(&ring->fd);
        *ring = new;
        (void) rewrite_free(rewrite);
        return 0;
}

static int work(Ring *ring)
{
        Rewrite *rewrite = ring->rewrite;
        int r = 0;

        if (rewrite->sync)
                r = bring_to_disk(rewrite);
        if (r >= 0)
                r = copy_slice(ring, rewrite);
        if (r < 0 || rewrite->copied_seq < ring->next_seq)
                return r;
        /* What was written since it was brought to the disk is a few records, as at any time. */
        if (!rewrite->synced)
                return bring_to_disk(rewrite);
        return take_place(ring, rewrite);
}

bool ring_work(Ring *ring)
{
        if (!ring->rewrite)
                return false;
        int r = work(ring);
        if (r < 0 && r != -EAGAIN)
                ring_rewrite_end(ring); /* it is begun again when the ring is opened the next time */
        return ring->rewrite != NULL;
}
