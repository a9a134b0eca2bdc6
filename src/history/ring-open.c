/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a ring: its lock, its header, where it had got to. Knows libc.
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

/* ---- where writing had got to ---- */

static const char *record_at(const Ring *ring, const char *buffer, size_t index)
{
        return buffer + index * ring->layout.record_bytes;
}

/* The newest number in the slots from SLOT on that are where they belong, 0 when there is none. */
static uint64_t newest_in_slots(const Ring *ring, const char *buffer, size_t n, uint64_t slot)
{
        uint64_t newest = 0;

        for (size_t i = 0; i < n; i++) {
                const char *record = record_at(ring, buffer, i);
                uint64_t seq = 0;

                memcpy(&seq, record + offsetof(DiskRecord, seq), sizeof seq);
                if (seq > newest && (seq - 1) % ring->capacity == slot + i &&
                    ring_record_is(&ring->layout, record, seq))
                        newest = seq;
        }
        return newest;
}

/* Looks through the whole file; only when no checkpoint is left. */
static int find_newest(const Ring *ring, char *buffer, uint64_t *ret)
{
        uint64_t newest = 0, n_slots = ring->capacity;
        struct stat st;

        if (fstat(ring->fd, &st) < 0)
                return -errno;
        /* A capacity is what the header says; the file may be far shorter. */
        uint64_t n_in_file = st.st_size > HEADER_BYTES
                                     ? (uint64_t) (st.st_size - HEADER_BYTES) / ring->layout.record_bytes
                                     : 0;
        if (n_slots > n_in_file)
                n_slots = n_in_file;
        for (uint64_t slot = 0; slot < n_slots; slot += SCAN_RECORDS) {
                ssize_t n = ring_read_raw(ring, buffer, slot + 1, SCAN_RECORDS);
                if (n < 0)
                        return (int) n;
                uint64_t seq = newest_in_slots(ring, buffer, (size_t) n, slot);
                if (seq > newest)
                        newest = seq;
        }
        *ret = newest;
        return 0;
}

/* Goes on from ring->next_seq past all records found in the SCAN_RECORDS numbers after it. */
static int find_end(Ring *ring, char *buffer)
{
        uint64_t stop = ring->next_seq + SCAN_RECORDS;

        for (uint64_t seq = ring->next_seq; seq < stop;) {
                ssize_t n = ring_read_raw(ring, buffer, seq, SCAN_RECORDS);
                if (n < 0)
                        return (int) n;
                for (size_t i = 0; i < (size_t) n; i++)
                        if (ring_record_is(&ring->layout, record_at(ring, buffer, i), seq + i)) {
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

        _cleanup_free_ char *buffer = malloc(SCAN_RECORDS * ring->layout.record_bytes);
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

/* ---- opening ---- */

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
        int r = ring_lock_file(fd);
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
        char page[HEADER_BYTES] = { 0 };

        if (size == 0) {
                ring->capacity = capacity;
                ring->first_seq = ring->next_seq = 1;
                ring_layout_of_this_release(&ring->layout);
                int r = ring_write_header(ring);
                return r < 0 ? r : ring_write_checkpoint(ring);
        }
        ssize_t n = ring_pread(ring->fd, page, sizeof page, 0);
        if (n < 0)
                return (int) n;
        int r = ring_header_read(page, ring);
        return r < 0 ? r : recover(ring);
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

        (void) unlinkat(dir_fd, temporary, 0); /* of a rewriting that was cut short */
        /* Without space for the copy the file as it is is better than no history. */
        if (ring->capacity != capacity || !ring->layout.is_ours)
                (void) ring_rewrite_begin(ring, dir_fd, name, capacity);
        if (ret_damaged)
                *ret_damaged = damaged;
        *ret = TAKE_PTR(ring);
        return 0;
}
