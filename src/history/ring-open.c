/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a ring: its lock, its header, where it had got to, and another capacity. Knows libc.
 *
 * Nothing here trusts the file. What is no ring of this format is renamed away, what is damaged inside is
 * left out when it is read. */

#include "ring-internal.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define OPEN_ATTEMPTS 5

/* Records looked at in one go. A checkpoint is lost with at most one before it, so the newest record is less
 * than three times CHECKPOINT_EVERY after the one that is found. */
#define SCAN_RECORDS 1024
_Static_assert(SCAN_RECORDS >= 3 * CHECKPOINT_EVERY, "a scan must find the newest record");

typedef struct Buffer {
        DiskRecord records[SCAN_RECORDS];
} Buffer;

/* Locks of the process, not of the open file: those would live on in children that are forked for the write
 * test, and one that hangs in the kernel would keep the next daemon out. */
static int lock_file(int fd)
{
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

        if (fcntl(fd, F_SETLK, &lock) < 0)
                return errno == EACCES || errno == EAGAIN ? -EBUSY : -errno;
        return 0;
}

/* ---- where writing had got to ---- */

/* The newest number in the slots of records FROM.. that are where they belong, 0 when there is none. */
static uint64_t newest_in_slots(const Buffer *buffer, size_t n, const Ring *ring, uint64_t slot)
{
        uint64_t newest = 0;

        for (size_t i = 0; i < n; i++) {
                const DiskRecord *disk = &buffer->records[i];

                if (disk->seq > newest && (disk->seq - 1) % ring->capacity == slot + i &&
                    ring_record_is(disk, disk->seq))
                        newest = disk->seq;
        }
        return newest;
}

/* Looks through the whole file; only when no checkpoint is left. */
static int find_newest(const Ring *ring, Buffer *buffer, uint64_t *ret)
{
        uint64_t newest = 0;

        for (uint64_t slot = 0; slot < ring->capacity; slot += SCAN_RECORDS) {
                uint64_t wanted = ring->capacity - slot < SCAN_RECORDS ? ring->capacity - slot : SCAN_RECORDS;
                ssize_t n = ring_pread(ring->fd, buffer, wanted * RECORD_BYTES,
                                       HEADER_BYTES + (off_t) slot * RECORD_BYTES);
                if (n < 0)
                        return (int) n;
                uint64_t seq = newest_in_slots(buffer, (size_t) n / RECORD_BYTES, ring, slot);
                if (seq > newest)
                        newest = seq;
                if ((uint64_t) n < wanted * RECORD_BYTES)
                        break;
        }
        *ret = newest;
        return 0;
}

/* Reads records SEQ.. up to the end of the ring's slots, at most what the buffer holds. */
static ssize_t read_from(const Ring *ring, Buffer *buffer, uint64_t seq)
{
        uint64_t n = ring->capacity - (seq - 1) % ring->capacity;

        if (n > SCAN_RECORDS)
                n = SCAN_RECORDS;
        ssize_t size = ring_pread(ring->fd, buffer, n * RECORD_BYTES, ring_offset(ring, seq));
        if (size < 0)
                return size;
        /* What lies beyond the end of the file reads as nothing, like a hole in it. */
        memset((char *) buffer + size, 0, n * RECORD_BYTES - (size_t) size);
        return (ssize_t) n;
}

/* Goes on from ring->next_seq past all records found in the SCAN_RECORDS numbers after it. */
static int find_end(Ring *ring, Buffer *buffer)
{
        uint64_t stop = ring->next_seq + SCAN_RECORDS;

        for (uint64_t seq = ring->next_seq; seq < stop;) {
                ssize_t n = read_from(ring, buffer, seq);
                if (n < 0)
                        return (int) n;
                for (size_t i = 0; i < (size_t) n; i++)
                        if (ring_record_is(&buffer->records[i], seq + i)) {
                                ring->next_seq = seq + i + 1;
                                stop = ring->next_seq + SCAN_RECORDS;
                        }
                seq += (uint64_t) n;
        }
        return 0;
}

static int recover(Ring *ring)
{
        uint64_t newest = 0;
        bool found = false;

        _cleanup_free_ Buffer *buffer = malloc(sizeof *buffer);
        if (!buffer)
                return -ENOMEM;
        ring->next_seq = ring->first_seq;
        for (unsigned place = 0; place < CHECKPOINT_PLACES; place++) {
                DiskCheckpoint checkpoint;
                ssize_t n = ring_pread(ring->fd, &checkpoint, sizeof checkpoint, CHECKPOINT_OFFSET(place));

                if (n == sizeof checkpoint && checkpoint.next_seq >= ring->next_seq &&
                    checkpoint.next_seq < UINT64_MAX / 2 &&
                    checkpoint.checksum == ring_checksum(&checkpoint, offsetof(DiskCheckpoint, checksum))) {
                        ring->next_seq = checkpoint.next_seq;
                        ring->checkpoint_seq = checkpoint.next_seq;
                        ring->checkpoint_place = place;
                        found = true;
                }
        }
        if (!found) {
                int r = find_newest(ring, buffer, &newest);
                if (r < 0)
                        return r;
                if (newest >= ring->next_seq && newest < UINT64_MAX / 2)
                        ring->next_seq = newest + 1;
        }
        return find_end(ring, buffer);
}

/* ---- another capacity ---- */

/* Copies the records FROM->next_seq - n .. as they are: a damaged one stays one. */
static int copy_records(const Ring *from, const Ring *to)
{
        _cleanup_free_ Buffer *buffer = malloc(sizeof *buffer);

        if (!buffer)
                return -ENOMEM;
        for (uint64_t seq = ring_first_seq(to); seq < from->next_seq;) {
                uint64_t room = to->capacity - (seq - 1) % to->capacity;
                ssize_t n = read_from(from, buffer, seq);

                if (n < 0)
                        return (int) n;
                if ((uint64_t) n > room)
                        n = (ssize_t) room;
                if ((uint64_t) n > from->next_seq - seq)
                        n = (ssize_t) (from->next_seq - seq);
                int r = ring_pwrite(to->fd, buffer, (size_t) n * RECORD_BYTES, ring_offset(to, seq));
                if (r < 0)
                        return r;
                seq += (uint64_t) n;
        }
        return 0;
}

/* Makes the file TEMPORARY with what RING keeps of its newest, for CAPACITY records. */
static int write_resized(const Ring *ring, int dir_fd, const char *temporary, uint64_t capacity, Ring *ret)
{
        Ring resized = { .capacity = capacity,
                         .first_seq = ring_first_seq(ring),
                         .next_seq = ring->next_seq };

        resized.first_seq = ring_first_seq(&resized);
        _cleanup_close_ int fd =
                openat(dir_fd, temporary, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640);
        if (fd < 0)
                return -errno;
        resized.fd = fd;
        int r = lock_file(fd);
        if (r >= 0)
                r = ring_write_header(&resized);
        if (r >= 0)
                r = ring_write_checkpoint(&resized);
        if (r >= 0)
                r = copy_records(ring, &resized);
        if (r < 0)
                return r;
        resized.fd = TAKE_FD(fd);
        *ret = resized;
        return 0;
}

static int resize(Ring *ring, int dir_fd, const char *name, const char *temporary, uint64_t capacity)
{
        Ring resized = { .fd = -1 };

        int r = write_resized(ring, dir_fd, temporary, capacity, &resized);
        if (r >= 0 && renameat(dir_fd, temporary, dir_fd, name) < 0) {
                r = -errno;
                (void) close(resized.fd);
        }
        if (r < 0) {
                (void) unlinkat(dir_fd, temporary, 0);
                return r;
        }
        (void) close(ring->fd);
        *ring = resized;
        return 0;
}

/* ---- opening ---- */

static bool header_is_valid(const DiskHeader *header)
{
        return memcmp(header->magic, HEADER_MAGIC, sizeof header->magic) == 0 &&
               header->byte_order == HEADER_BYTE_ORDER && header->record_bytes == RECORD_BYTES &&
               header->capacity >= RING_CAPACITY_MIN && header->capacity <= RING_CAPACITY_MAX &&
               header->first_seq >= 1 && header->first_seq < UINT64_MAX / 2 &&
               header->checksum == ring_checksum(header, offsetof(DiskHeader, checksum));
}

/* Opens or makes the file and locks it. -EBADMSG: something else is there. -ESTALE: it was replaced
 * meanwhile. */
static int open_locked(int dir_fd, const char *name, int *ret_fd, off_t *ret_size)
{
        struct stat opened, named;

        _cleanup_close_ int fd =
                openat(dir_fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0640);
        if (fd < 0)
                return errno == ELOOP || errno == EISDIR || errno == ENXIO ? -EBADMSG : -errno;
        if (fstat(fd, &opened) < 0)
                return -errno;
        if (!S_ISREG(opened.st_mode))
                return -EBADMSG;
        int r = lock_file(fd);
        if (r < 0)
                return r;
        if (fstatat(dir_fd, name, &named, AT_SYMLINK_NOFOLLOW) < 0)
                return errno == ENOENT ? -ESTALE : -errno;
        if (named.st_ino != opened.st_ino || named.st_dev != opened.st_dev)
                return -ESTALE;
        *ret_size = opened.st_size;
        *ret_fd = TAKE_FD(fd);
        return 0;
}

/* Takes the file for what it says, or makes it a new ring when it is empty. -EBADMSG: it is no ring. */
static int load(Ring *ring, off_t size, uint64_t capacity)
{
        DiskHeader header;

        if (size == 0) {
                ring->capacity = capacity;
                ring->first_seq = ring->next_seq = 1;
                int r = ring_write_header(ring);
                return r < 0 ? r : ring_write_checkpoint(ring);
        }
        ssize_t n = ring_pread(ring->fd, &header, sizeof header, 0);
        if (n < 0)
                return (int) n;
        if (n != sizeof header || !header_is_valid(&header))
                return -EBADMSG;
        ring->capacity = header.capacity;
        ring->first_seq = header.first_seq;
        return recover(ring);
}

static int open_once(Ring *ring, int dir_fd, const char *name, uint64_t capacity)
{
        off_t size = 0;

        int r = open_locked(dir_fd, name, &ring->fd, &size);
        if (r >= 0)
                r = load(ring, size, capacity);
        if (r < 0 && ring->fd >= 0) {
                (void) close(ring->fd);
                ring->fd = -1;
        }
        return r;
}

int ring_open(Ring **ret, int dir_fd, const char *name, uint64_t capacity, bool *ret_damaged)
{
        bool damaged = false;
        int r = -ESTALE;

        if (capacity < RING_CAPACITY_MIN || capacity > RING_CAPACITY_MAX || !name[0] || strchr(name, '/'))
                return -EINVAL;
        _cleanup_(ring_freep) Ring *ring = calloc(1, sizeof *ring);
        _cleanup_free_ char *temporary = path_format("%s.new", name);
        if (!ring || !temporary)
                return -ENOMEM;
        ring->fd = -1;
        for (unsigned i = 0; i < OPEN_ATTEMPTS && (r == -ESTALE || r == -EBADMSG); i++) {
                r = open_once(ring, dir_fd, name, capacity);
                if (r == -EBADMSG) {
                        int aside = set_aside_at(dir_fd, name);
                        if (aside < 0)
                                return aside;
                        damaged = true;
                }
        }
        if (r < 0)
                return r;

        (void) unlinkat(dir_fd, temporary, 0); /* of a resize that was cut short */
        /* Without space for the copy the old capacity is better than no history. */
        if (ring->capacity != capacity)
                (void) resize(ring, dir_fd, name, temporary, capacity);
        if (ret_damaged)
                *ret_damaged = damaged;
        *ret = TAKE_PTR(ring);
        return 0;
}
