/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the ring: its file's form as structs, and what its parts share. What the form is and promises stands
 * in history.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tierprobe/background.h"
#include "tierprobe/history.h"

#define HEADER_BYTES 4096
#define HEADER_MAGIC "TPRING1\n"
#define HEADER_BYTE_ORDER UINT32_C(0x01020304)

/* What never changes while the file lives. */
typedef struct DiskHeader {
        char magic[8];
        uint32_t byte_order, record_bytes;
        uint64_t capacity;
        uint64_t first_seq; /* nothing older was ever in this file */
        uint64_t checksum;  /* of the above */
} DiskHeader;

#define RECORD_BYTES_MIN 64
#define RECORD_BYTES_MAX 4096

/* Where writing had got to, so that opening need not read the whole file. Written every CHECKPOINT_EVERY
 * records, in turn to two places in sectors of their own: a torn one leaves the one before. */
typedef struct DiskCheckpoint {
        uint64_t next_seq;
        uint64_t checksum; /* of the above */
} DiskCheckpoint;

#define CHECKPOINT_EVERY 256
#define CHECKPOINT_PLACES 2
#define CHECKPOINT_OFFSET(place) (512 * ((off_t) (place) + 1))

/* What a record consists of. A file without it is of release 1, whose records are as DiskRecord is. */
typedef struct DiskField {
        char name[20]; /* NUL-padded */
        uint16_t offset;
        uint8_t size;
        char type; /* 'u' unsigned, 'i' signed whole number of 1, 2, 4 or 8 bytes; 't' text, NUL-padded */
} DiskField;

_Static_assert(sizeof(DiskField) == 24, "the file's form");

typedef struct DiskFields {
        char magic[8];
        uint32_t n_fields,
                field_bytes; /* field_bytes: of one entry; more than sizeof(DiskField) is skipped */
        uint64_t checksum;   /* of the numbers above and the entries */
} DiskFields;

#define FIELDS_MAGIC "FIELDS1\n"
#define FIELDS_OFFSET 1536
#define FIELDS_BYTES_MAX (HEADER_BYTES - FIELDS_OFFSET - sizeof(DiskFields))

/* A record of this release, which is that of release 1. */
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

#define RECORD_BYTES sizeof(DiskRecord)
_Static_assert(RECORD_BYTES == 256, "the file's form");

/* The fields that this release knows; ring-format.c has a row for each. */
#define N_FIELDS 28

/* Where they are in the records of one file. */
typedef struct RingLayout {
        size_t record_bytes;
        bool is_ours; /* records are DiskRecords as they are */
        struct {
                bool present;
                size_t offset, size;
                char type;
        } fields[N_FIELDS];
} RingLayout;

/* One file: what is written and read is in here. */
struct Ring {
        int fd;
        RingLayout layout;
        uint64_t capacity;
        uint64_t first_seq; /* of the file; the oldest kept may be later */
        uint64_t next_seq;
        uint64_t checkpoint_seq; /* what the last checkpoint said */
        unsigned checkpoint_place;
        struct Rewrite *rewrite; /* NULL: the file is as it should be */
        struct Behind *behind;   /* NULL: what is written goes to the file at once */
};

static inline off_t ring_offset(const Ring *ring, uint64_t seq)
{
        return HEADER_BYTES + (off_t) (((seq - 1) % ring->capacity) * ring->layout.record_bytes);
}

/* ---- ring-format.c ---- */

/* FNV-1a of 64 bits: a changed byte always changes it. */
uint64_t ring_checksum(const void *data, size_t size);

void ring_layout_of_this_release(RingLayout *ret);

/* Reads what the header page, filled up with zeros where the file is shorter, says of capacity, first number
 * and layout. -EBADMSG: it is none. */
int ring_header_read(const char page[HEADER_BYTES], Ring *ring);

/* The header page, but for the checkpoints. */
void ring_header_make(const Ring *ring, char page[HEADER_BYTES]);

/* Whether the record at DATA is a whole one of the number SEQ. */
bool ring_record_is(const RingLayout *layout, const void *data, uint64_t seq);

/* Between a file's form and ours. What one of the two lacks is left out, or unknown. */
void ring_record_decode(const RingLayout *layout, const void *data, RingRecord *ret);
void ring_record_encode(const RingLayout *layout, const RingRecord *record, void *ret);

/* N records in a row, of the numbers from SEQ on; one that is not whole gets seq 0. */
void ring_records_decode(const RingLayout *layout, const char *data, size_t n, uint64_t seq, RingRecord *ret);

/* ---- ring-bytes.c ---- */

/* A lock of the process, not of the open file: that would live on in children that are forked for the write
 * test, and one that hangs in the kernel would keep the next daemon out. 0, -EBUSY, or another errno. */
int ring_lock_file(int fd);

/* Reads at most SIZE bytes, less at the end of the file; the number read, or negative errno. */
ssize_t ring_pread(int fd, void *data, size_t size, off_t offset);

/* Writes all or fails: 0 or negative errno. */
int ring_pwrite(int fd, const void *data, size_t size, off_t offset);

/* ---- ring-file.c ---- */

/* Writes the header, and a checkpoint at next_seq. */
int ring_write_header(Ring *ring);
int ring_write_checkpoint(Ring *ring);

/* Reads records SEQ.. up to the end of the ring's slots, at most N, into DATA. What is not in the file reads
 * as zeros, like a hole in it. Returns how many, or negative errno. */
ssize_t ring_read_raw(const Ring *ring, void *data, uint64_t seq, size_t n);

/* ---- ring-behind.c ---- */

/* As ring_pwrite() and ring_pread(), by way of what waits in memory if the ring is one that is written
 * behind. -ENOBUFS: as much waits as may. */
int ring_write(Ring *ring, const void *data, size_t size, off_t offset);
ssize_t ring_read_bytes(const Ring *ring, void *data, size_t size, off_t offset);

/* Forgets all that waits. */
void ring_behind_clear(Ring *ring);

/* ---- ring-rewrite.c ---- */

/* Begins to rewrite the file NAME below DIR_FD for CAPACITY records of this release's form. */
int ring_rewrite_begin(Ring *ring, int dir_fd, const char *name, uint64_t capacity);
void ring_rewrite_end(Ring *ring);
