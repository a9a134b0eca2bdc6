/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the ring: its file's form, and what opening shares with reading and writing.
 *
 * The file is a page of header and then records in slots: number N lives in slot (N - 1) modulo capacity, so
 * that a number says where to look, and the number in the record says whether it is still there. Byte order
 * is the machine's; another one is another format. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tierprobe/history.h"

#define RECORD_BYTES 256
#define HEADER_BYTES 4096

/* What never changes while the file lives. */
typedef struct DiskHeader {
        char magic[8];
        uint32_t byte_order, record_bytes;
        uint64_t capacity;
        uint64_t first_seq; /* nothing older was ever in this file */
        uint64_t checksum;  /* of the above */
} DiskHeader;

#define HEADER_MAGIC "TPRING1\n"
#define HEADER_BYTE_ORDER UINT32_C(0x01020304)

/* Where writing had got to, so that opening need not read the whole file. Written every CHECKPOINT_EVERY
 * records, in turn to two places in sectors of their own: a torn one leaves the one before. */
typedef struct DiskCheckpoint {
        uint64_t next_seq;
        uint64_t checksum; /* of the above */
} DiskCheckpoint;

#define CHECKPOINT_EVERY 256
#define CHECKPOINT_PLACES 2
#define CHECKPOINT_OFFSET(place) (512 * ((off_t) (place) + 1))

typedef struct DiskRecord {
        uint64_t checksum; /* of the rest */
        uint64_t seq;
        uint64_t mono_ns, boot_ns, bracket_ns, diskseq;
        int64_t real_ns;
        uint64_t r_ios, r_merges, r_sectors;
        uint64_t w_ios, w_merges, w_sectors;
        uint64_t d_ios, d_merges, d_sectors;
        uint64_t f_ios;
        uint32_t r_ms, w_ms, d_ms, f_ms, io_ms, queue_ms;
        int32_t in_flight;
        uint32_t n_fields;
        uint32_t major, minor, gap;
        uint32_t reserved;
        char device[32];
        char run_id[24];
        char unused[16];
} DiskRecord;

_Static_assert(sizeof(DiskRecord) == RECORD_BYTES, "the file's form");

struct Ring {
        int fd;
        uint64_t capacity;
        uint64_t first_seq; /* of the file; the oldest kept may be later */
        uint64_t next_seq;
        uint64_t checkpoint_seq; /* what the last checkpoint said */
        unsigned checkpoint_place;
};

static inline off_t ring_offset(const Ring *ring, uint64_t seq)
{
        return HEADER_BYTES + (off_t) ((seq - 1) % ring->capacity) * RECORD_BYTES;
}

/* FNV-1a of 64 bits: a changed byte always changes it. */
uint64_t ring_checksum(const void *data, size_t size);

/* Whether DISK is a whole record of the number SEQ. */
bool ring_record_is(const DiskRecord *disk, uint64_t seq);

/* Reads at most SIZE bytes, less at the end of the file; the number read, or negative errno. */
ssize_t ring_pread(int fd, void *data, size_t size, off_t offset);

/* Writes all or fails: 0 or negative errno. */
int ring_pwrite(int fd, const void *data, size_t size, off_t offset);

/* Writes the header, and a checkpoint at next_seq. */
int ring_write_header(Ring *ring);
int ring_write_checkpoint(Ring *ring);
