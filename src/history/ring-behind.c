/* SPDX-License-Identifier: Apache-2.0 */
/* What is to be written to a ring's file, in memory until a child has written it: whoever reads sees it as if
 * it were in the file. */

#include "ring-internal.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PIECES 8192         /* two hours of samples a second apart, 2 MB */
#define EVERY_NS (NS_PER_S / 2) /* samples a second apart go at once, those of a tenth by fives */
#define EVERY_PIECES 256
#define RETRY_NS (10 * NS_PER_S)
#define SLOW_NS (5 * NS_PER_S)

typedef struct Piece {
        off_t offset;
        size_t size;
        char *data;
} Piece;

typedef struct Behind {
        Piece pieces[MAX_PIECES]; /* oldest first */
        size_t n_pieces;
        Background *child; /* NULL: none is at work */
        size_t n_at_work;  /* the first ones, which it writes */
        uint64_t begun_ns, failed_ns, waiting_ns;
        int result; /* of the last child */
} Behind;

int ring_write_behind(Ring *ring)
{
        ring->behind = calloc(1, sizeof *ring->behind);
        return ring->behind ? 0 : -ENOMEM;
}

/* Forgets the first N. */
static void forget(Behind *behind, size_t n)
{
        for (size_t i = 0; i < n; i++)
                free(behind->pieces[i].data);
        behind->n_pieces -= n;
        memmove(behind->pieces, behind->pieces + n, behind->n_pieces * sizeof *behind->pieces);
        behind->waiting_ns = clock_ns(CLOCK_MONOTONIC);
}

void ring_behind_clear(Ring *ring)
{
        Behind *behind = ring->behind;

        if (!behind)
                return;
        behind->child = background_free(behind->child);
        behind->n_at_work = 0;
        behind->result = 0;
        forget(behind, behind->n_pieces);
}

int ring_write(Ring *ring, const void *data, size_t size, off_t offset)
{
        Behind *behind = ring->behind;

        if (!behind)
                return ring_pwrite(ring->fd, data, size, offset);
        if (behind->n_pieces == MAX_PIECES)
                return -ENOBUFS;
        char *copy = malloc(size);
        if (!copy)
                return -ENOMEM;
        memcpy(copy, data, size);
        if (behind->n_pieces == 0)
                behind->waiting_ns = clock_ns(CLOCK_MONOTONIC);
        behind->pieces[behind->n_pieces++] = (Piece){ .offset = offset, .size = size, .data = copy };
        return 0;
}

/* The bytes that PIECE has of those at OFFSET. Returns where the last one of them ends, 0: it has none. */
static size_t lay_over(const Piece *piece, char *data, size_t size, off_t offset)
{
        off_t begin = piece->offset > offset ? piece->offset : offset;
        off_t end = piece->offset + (off_t) piece->size;

        if (end > offset + (off_t) size)
                end = offset + (off_t) size;
        if (begin >= end)
                return 0;
        memcpy(data + (begin - offset), piece->data + (begin - piece->offset), (size_t) (end - begin));
        return (size_t) (end - offset);
}

ssize_t ring_read_bytes(const Ring *ring, void *data, size_t size, off_t offset)
{
        const Behind *behind = ring->behind;
        size_t n = behind ? behind->n_pieces : 0;

        /* A record that waits is asked for by nobody else: the file need not be read. */
        for (size_t i = n; i-- > 0;)
                if (behind->pieces[i].offset == offset && behind->pieces[i].size == size)
                        return (ssize_t) lay_over(&behind->pieces[i], data, size, offset);
        ssize_t got = ring_pread(ring->fd, data, size, offset);
        if (got < 0 || n == 0)
                return got;
        memset((char *) data + got, 0, size - (size_t) got);
        for (size_t i = 0; i < n; i++) {
                size_t end = lay_over(&behind->pieces[i], data, size, offset);

                if (end > (size_t) got)
                        got = (ssize_t) end;
        }
        return got;
}

static int write_pieces(int fd, void *userdata)
{
        const Behind *behind = userdata;

        for (size_t i = 0; i < behind->n_pieces; i++) {
                int r = ring_pwrite(fd, behind->pieces[i].data, behind->pieces[i].size,
                                    behind->pieces[i].offset);
                if (r < 0)
                        return r;
        }
        return 0;
}

static void begin(Ring *ring)
{
        Behind *behind = ring->behind;

        behind->begun_ns = clock_ns(CLOCK_MONOTONIC);
        int r = background_new(&behind->child, "tierprobe-save", ring->fd, write_pieces, behind);
        if (r >= 0) {
                behind->n_at_work = behind->n_pieces;
                return;
        }
        behind->result = r;
        behind->failed_ns = behind->begun_ns;
}

static void reap(Behind *behind)
{
        int r = behind->child ? background_result(behind->child) : -EAGAIN;

        if (r == -EAGAIN)
                return;
        behind->child = background_free(behind->child);
        if (r >= 0)
                forget(behind, behind->n_at_work);
        else
                behind->failed_ns = clock_ns(CLOCK_MONOTONIC);
        behind->n_at_work = 0;
        behind->result = r;
}

int ring_save(Ring *ring)
{
        Behind *behind = ring->behind;

        if (!behind)
                return 0;
        reap(behind);
        uint64_t now_ns =
                clock_ns(CLOCK_MONOTONIC); /* not before: a child that has ended begins the wait anew */
        if (behind->child)
                return now_ns - behind->begun_ns >= SLOW_NS ? -EINPROGRESS : behind->result;
        bool is_due = behind->result < 0
                              ? now_ns - behind->failed_ns >= RETRY_NS
                              : now_ns - behind->waiting_ns >= EVERY_NS || behind->n_pieces >= EVERY_PIECES;
        if (behind->n_pieces > 0 && is_due)
                begin(ring);
        return behind->result;
}

size_t ring_finish(Ring *ring, int wait_ms)
{
        Behind *behind = ring->behind;
        uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + (uint64_t) wait_ms * NS_PER_MS;
        bool tried = false; /* all that waits, by one child */

        while (behind && behind->n_pieces > 0) {
                uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

                if (!behind->child) {
                        if (tried && behind->result < 0)
                                break;
                        begin(ring);
                        tried = true;
                }
                if (!behind->child || now_ns >= end_ns)
                        break;
                struct pollfd end = { .fd = background_get_fd(behind->child), .events = POLLIN };
                (void) poll(&end, 1, (int) ((end_ns - now_ns) / NS_PER_MS) + 1);
                reap(behind);
        }
        return behind ? behind->n_pieces : 0;
}
