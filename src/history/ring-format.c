/* SPDX-License-Identifier: Apache-2.0 */
/* The ring's file: what its header says, and how a record of it is read and written. Pure. */

#include "ring-internal.h"

#include "tierprobe/cleanup.h"

#include <errno.h>
#include <string.h>

#define FNV_BASIS UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME UINT64_C(0x100000001b3)

uint64_t ring_checksum(const void *data, size_t size)
{
        const unsigned char *p = data;
        uint64_t hash = FNV_BASIS;

        for (size_t i = 0; i < size; i++)
                hash = (hash ^ p[i]) * FNV_PRIME;
        return hash;
}

/* Of four stretches, STRIDE bytes apart. Each byte's step waits for the one before, so four at once take
 * little longer than one. */
#define LANES 4
static void four_checksums(const char *data, size_t stride, size_t size, uint64_t ret[LANES])
{
        uint64_t hash[LANES] = { FNV_BASIS, FNV_BASIS, FNV_BASIS, FNV_BASIS };

        for (size_t i = 0; i < size; i++)
                for (size_t lane = 0; lane < LANES; lane++)
                        hash[lane] = (hash[lane] ^ (unsigned char) data[lane * stride + i]) * FNV_PRIME;
        memcpy(ret, hash, sizeof hash);
}

/* ---- the fields of this release ---- */

/* What cannot be known of a record of a file that has not got the field. */
typedef enum Lack {
        LACKS_NOTHING,  /* zero says the same */
        LACKS_SLEEP,    /* whether the machine slept */
        LACKS_RATES,    /* any rate */
        LACKS_DISCARDS, /* what the columns of discards say */
        LACKS_FLUSHES,
        LACKS_N_FIELDS, /* what the kernel had */
} Lack;

typedef struct FieldRow {
        const char *name;
        size_t offset, size; /* in DiskRecord */
        char type;
        Lack lack;
} FieldRow;

#define ROW(name, type, lack)                                                                 \
        {                                                                                     \
#name, offsetof(DiskRecord, name), sizeof((DiskRecord){ 0 }.name), type, lack \
        }

static const FieldRow rows[N_FIELDS] = {
        ROW(mono_ns, 'u', LACKS_RATES),      ROW(boot_ns, 'u', LACKS_SLEEP),
        ROW(bracket_ns, 'u', LACKS_NOTHING), ROW(diskseq, 'u', LACKS_NOTHING),
        ROW(real_ns, 'i', LACKS_NOTHING),    ROW(r_ios, 'u', LACKS_RATES),
        ROW(r_merges, 'u', LACKS_RATES),     ROW(r_sectors, 'u', LACKS_RATES),
        ROW(w_ios, 'u', LACKS_RATES),        ROW(w_merges, 'u', LACKS_RATES),
        ROW(w_sectors, 'u', LACKS_RATES),    ROW(d_ios, 'u', LACKS_DISCARDS),
        ROW(d_merges, 'u', LACKS_DISCARDS),  ROW(d_sectors, 'u', LACKS_DISCARDS),
        ROW(f_ios, 'u', LACKS_FLUSHES),      ROW(r_ms, 'u', LACKS_RATES),
        ROW(w_ms, 'u', LACKS_RATES),         ROW(d_ms, 'u', LACKS_DISCARDS),
        ROW(f_ms, 'u', LACKS_FLUSHES),       ROW(io_ms, 'u', LACKS_RATES),
        ROW(queue_ms, 'u', LACKS_RATES),     ROW(in_flight, 'i', LACKS_RATES),
        ROW(n_fields, 'u', LACKS_N_FIELDS),  ROW(major, 'u', LACKS_NOTHING),
        ROW(minor, 'u', LACKS_NOTHING),      ROW(gap, 'u', LACKS_NOTHING),
        ROW(device, 't', LACKS_NOTHING),     ROW(run_id, 't', LACKS_NOTHING),
};

void ring_layout_of_this_release(RingLayout *ret)
{
        *ret = (RingLayout){ .record_bytes = RECORD_BYTES, .is_ours = true };
        for (size_t i = 0; i < N_FIELDS; i++) {
                ret->fields[i].present = true;
                ret->fields[i].offset = rows[i].offset;
                ret->fields[i].size = rows[i].size;
                ret->fields[i].type = rows[i].type;
        }
}

/* ---- the header ---- */

static uint64_t fields_checksum(const DiskFields *table, const char *entries)
{
        char all[HEADER_BYTES];
        size_t size = table->n_fields * (size_t) table->field_bytes;

        memcpy(all, &table->n_fields, sizeof table->n_fields);
        memcpy(all + 4, &table->field_bytes, sizeof table->field_bytes);
        memcpy(all + 8, entries, size);
        return ring_checksum(all, 8 + size);
}

static bool is_number(const DiskField *field)
{
        return (field->type == 'u' || field->type == 'i') &&
               (field->size == 1 || field->size == 2 || field->size == 4 || field->size == 8);
}

/* Takes the entry for the field that it is of. One that is not known here is a stranger's; one that does not
 * lie within the records is damage. */
static int take_field(RingLayout *layout, const DiskField *field)
{
        if (field->offset < offsetof(DiskRecord, mono_ns) ||
            (size_t) field->offset + field->size > layout->record_bytes)
                return -EBADMSG;
        for (size_t i = 0; i < N_FIELDS; i++) {
                if (strncmp(field->name, rows[i].name, sizeof field->name) != 0)
                        continue;
                if (rows[i].type == 't' ? field->type != 't' || field->size == 0 : !is_number(field))
                        continue; /* the name is the same, the meaning is not */
                layout->fields[i].present = true;
                layout->fields[i].offset = field->offset;
                layout->fields[i].size = field->size;
                layout->fields[i].type = field->type;
        }
        return 0;
}

static bool is_ours(const RingLayout *layout)
{
        RingLayout ours;

        ring_layout_of_this_release(&ours);
        if (layout->record_bytes != ours.record_bytes)
                return false;
        for (size_t i = 0; i < N_FIELDS; i++)
                if (!layout->fields[i].present || layout->fields[i].offset != ours.fields[i].offset ||
                    layout->fields[i].size != ours.fields[i].size ||
                    layout->fields[i].type != ours.fields[i].type)
                        return false;
        return true;
}

static int read_fields(const char page[HEADER_BYTES], RingLayout *layout)
{
        static const char none[sizeof((DiskFields){ 0 }.magic)];
        DiskFields table = { 0 };
        const char *entries = page + FIELDS_OFFSET + sizeof table;

        memcpy(&table, page + FIELDS_OFFSET, sizeof table);
        if (memcmp(table.magic, none, sizeof none) == 0 && layout->record_bytes == RECORD_BYTES) {
                ring_layout_of_this_release(layout); /* release 1 had no table, and left the place empty */
                return 0;
        }
        if (memcmp(table.magic, FIELDS_MAGIC, sizeof table.magic) != 0 ||
            table.field_bytes < sizeof(DiskField) || table.n_fields > FIELDS_BYTES_MAX / table.field_bytes ||
            fields_checksum(&table, entries) != table.checksum)
                return -EBADMSG;
        for (size_t i = 0; i < table.n_fields; i++) {
                DiskField field;

                memcpy(&field, entries + i * table.field_bytes, sizeof field);
                int r = take_field(layout, &field);
                if (r < 0)
                        return r;
        }
        layout->is_ours = is_ours(layout);
        return 0;
}

int ring_header_read(const char page[HEADER_BYTES], Ring *ring)
{
        DiskHeader header;
        RingLayout layout;

        memcpy(&header, page, sizeof header);
        if (memcmp(header.magic, HEADER_MAGIC, sizeof header.magic) != 0 ||
            header.byte_order != HEADER_BYTE_ORDER || header.record_bytes < RECORD_BYTES_MIN ||
            header.record_bytes > RECORD_BYTES_MAX || header.record_bytes % 8 != 0 ||
            header.capacity < RING_CAPACITY_MIN || header.capacity > RING_CAPACITY_MAX ||
            header.first_seq < 1 || header.first_seq >= UINT64_MAX / 2 ||
            header.checksum != ring_checksum(&header, offsetof(DiskHeader, checksum)))
                return -EBADMSG;
        layout = (RingLayout){ .record_bytes = header.record_bytes };
        int r = read_fields(page, &layout);
        if (r < 0)
                return r;
        ring->capacity = header.capacity;
        ring->first_seq = header.first_seq;
        ring->layout = layout;
        return 0;
}

void ring_header_make(const Ring *ring, char page[HEADER_BYTES])
{
        const RingLayout *layout = &ring->layout;
        DiskHeader header = { .magic = HEADER_MAGIC,
                              .byte_order = HEADER_BYTE_ORDER,
                              .record_bytes = (uint32_t) layout->record_bytes,
                              .capacity = ring->capacity,
                              .first_seq = ring->first_seq };
        DiskFields table = { .magic = FIELDS_MAGIC, .field_bytes = sizeof(DiskField) };
        char *entries = page + FIELDS_OFFSET + sizeof table;

        memset(page, 0, HEADER_BYTES);
        header.checksum = ring_checksum(&header, offsetof(DiskHeader, checksum));
        memcpy(page, &header, sizeof header);
        for (size_t i = 0; i < N_FIELDS; i++) {
                DiskField field = { .offset = (uint16_t) layout->fields[i].offset,
                                    .size = (uint8_t) layout->fields[i].size,
                                    .type = layout->fields[i].type };

                if (!layout->fields[i].present)
                        continue;
                memcpy(field.name, rows[i].name, strlen(rows[i].name));
                memcpy(entries + table.n_fields++ * sizeof field, &field, sizeof field);
        }
        table.checksum = fields_checksum(&table, entries);
        memcpy(page + FIELDS_OFFSET, &table, sizeof table);
}

/* ---- records ---- */

/* Records of every release begin so: the checksum of the rest, and the number. */
static bool begins_with(const void *data, uint64_t checksum, uint64_t seq)
{
        uint64_t begin[2];

        memcpy(begin, data, sizeof begin);
        return begin[0] == checksum && begin[1] == seq;
}

#define UNSUMMED sizeof(uint64_t) /* at the begin of a record */

bool ring_record_is(const RingLayout *layout, const void *data, uint64_t seq)
{
        return begins_with(
                data, ring_checksum((const char *) data + UNSUMMED, layout->record_bytes - UNSUMMED), seq);
}

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
                        /* A reason that this release does not know is one all the same. */
                        .gap = disk->gap < _GAP_MAX ? (Gap) disk->gap : GAP_UNREADABLE,
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

static uint64_t read_number(const char *from, size_t size, char type)
{
        uint8_t u8 = 0;
        uint16_t u16 = 0;
        uint32_t u32 = 0;
        uint64_t u64 = 0;

        switch (size) {
        case 1:
                memcpy(&u8, from, size);
                return type == 'i' ? (uint64_t) (int8_t) u8 : u8;
        case 2:
                memcpy(&u16, from, size);
                return type == 'i' ? (uint64_t) (int16_t) u16 : u16;
        case 4:
                memcpy(&u32, from, size);
                return type == 'i' ? (uint64_t) (int32_t) u32 : u32;
        default:
                memcpy(&u64, from, size);
                return u64;
        }
}

/* What does not fit loses its upper bits: that is what counters do in the kernel. */
static void write_number(char *to, size_t size, uint64_t value)
{
        const uint8_t u8 = (uint8_t) value;
        const uint16_t u16 = (uint16_t) value;
        const uint32_t u32 = (uint32_t) value;

        switch (size) {
        case 1:
                memcpy(to, &u8, size);
                break;
        case 2:
                memcpy(to, &u16, size);
                break;
        case 4:
                memcpy(to, &u32, size);
                break;
        default:
                memcpy(to, &value, size);
        }
}

/* Copies a field's value to a place of another size. */
static void copy_value(char *to, size_t to_size, const char *from, size_t from_size, char from_type)
{
        if (from_type == 't') {
                memset(to, 0, to_size);
                memcpy(to, from, to_size < from_size ? to_size : from_size);
        } else {
                write_number(to, to_size, read_number(from, from_size, from_type));
        }
}

/* What the file does not have of the record is not known. */
static void mark_unknown(const RingLayout *layout, DiskRecord *disk)
{
        uint32_t n_fields = 17;
        bool no_rates = false;

        for (size_t i = 0; i < N_FIELDS; i++) {
                if (layout->fields[i].present)
                        continue;
                switch (rows[i].lack) {
                case LACKS_NOTHING:
                        break;
                case LACKS_SLEEP:
                        disk->boot_ns = disk->mono_ns;
                        break;
                case LACKS_RATES:
                        no_rates = true;
                        break;
                case LACKS_DISCARDS:
                        n_fields = 11;
                        break;
                case LACKS_FLUSHES:
                        n_fields = n_fields > 15 ? 15 : n_fields;
                        break;
                case LACKS_N_FIELDS:
                        disk->n_fields = 17;
                        break;
                }
        }
        if (disk->n_fields > n_fields)
                disk->n_fields = n_fields;
        if (no_rates && disk->gap == GAP_NONE)
                disk->gap = GAP_UNREADABLE;
}

void ring_record_decode(const RingLayout *layout, const void *data, RingRecord *ret)
{
        DiskRecord disk = { 0 };

        if (layout->is_ours) {
                memcpy(&disk, data, sizeof disk);
        } else {
                memcpy(&disk.seq, (const char *) data + offsetof(DiskRecord, seq), sizeof disk.seq);
                for (size_t i = 0; i < N_FIELDS; i++)
                        if (layout->fields[i].present)
                                copy_value((char *) &disk + rows[i].offset, rows[i].size,
                                           (const char *) data + layout->fields[i].offset,
                                           layout->fields[i].size, layout->fields[i].type);
                mark_unknown(layout, &disk);
        }
        record_from_disk(&disk, ret);
}

void ring_records_decode(const RingLayout *layout, const char *data, size_t n, uint64_t seq, RingRecord *ret)
{
        size_t size = layout->record_bytes;
        uint64_t checksums[LANES];

        for (size_t i = 0; i < n; i++) {
                const char *record = data + i * size;

                if (i % LANES == 0 && n - i >= LANES)
                        four_checksums(record + UNSUMMED, size, size - UNSUMMED, checksums);
                bool whole = i / LANES * LANES + LANES <= n
                                     ? begins_with(record, checksums[i % LANES], seq + i)
                                     : ring_record_is(layout, record, seq + i);
                if (whole)
                        ring_record_decode(layout, record, &ret[i]);
                else
                        ret[i].seq = 0;
        }
}

void ring_record_encode(const RingLayout *layout, const RingRecord *record, void *ret)
{
        DiskRecord disk;
        char *out = ret;
        uint64_t checksum = 0;

        record_to_disk(record, &disk);
        memset(out, 0, layout->record_bytes);
        if (layout->is_ours) {
                memcpy(out, &disk, sizeof disk);
        } else {
                memcpy(out + offsetof(DiskRecord, seq), &disk.seq, sizeof disk.seq);
                for (size_t i = 0; i < N_FIELDS; i++)
                        if (layout->fields[i].present)
                                copy_value(out + layout->fields[i].offset, layout->fields[i].size,
                                           (const char *) &disk + rows[i].offset, rows[i].size, rows[i].type);
        }
        checksum = ring_checksum(out + sizeof checksum, layout->record_bytes - sizeof checksum);
        memcpy(out, &checksum, sizeof checksum);
}
