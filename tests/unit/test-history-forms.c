/* SPDX-License-Identifier: Apache-2.0 */
/* Rings of other releases: the first one's as it was written, and files whose records have other fields, in
 * other places, of other sizes. What a file has is read, what it lacks is not known; and what this release
 * writes the first one could read. */

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/file.h"
#include "tierprobe/history.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "pidfd.h"

#include "seeds.h"
#define FOLDER_NAME "forms"
#include "folder.h"

#define NAME "cache.ring"
#define PAGE 4096

static Ring *open_ring(uint64_t capacity)
{
        Ring *ring = NULL;
        bool damaged = true;

        assert_int_equal(ring_open(&ring, dir_fd, NAME, capacity, &damaged), 0);
        assert_false(damaged);
        return ring;
}

static void finish(Ring *ring)
{
        uint64_t deadline_ns = clock_ns(CLOCK_MONOTONIC) + 60 * NS_PER_S;

        while (ring_work(ring)) {
                assert_true(clock_ns(CLOCK_MONOTONIC) < deadline_ns);
                (void) usleep(100);
        }
}

/* ---- a disk that does not read ---- */

static bool read_fails;

ssize_t __real_pread64(int fd, void *buf, size_t size, off_t offset);
ssize_t __wrap_pread64(int fd, void *buf, size_t size, off_t offset);
ssize_t __wrap_pread64(int fd, void *buf, size_t size, off_t offset)
{
        if (read_fails) {
                errno = EIO;
                return -1;
        }
        return __real_pread64(fd, buf, size, offset);
}

ssize_t __real_pread(int fd, void *buf, size_t size, off_t offset);
ssize_t __wrap_pread(int fd, void *buf, size_t size, off_t offset);
ssize_t __wrap_pread(int fd, void *buf, size_t size, off_t offset)
{
        return __wrap_pread64(fd, buf, size, offset);
}

static uint64_t fnv(const void *data, size_t size)
{
        const unsigned char *p = data;
        uint64_t hash = UINT64_C(14695981039346656037);

        for (size_t i = 0; i < size; i++) {
                hash ^= p[i];
                hash *= UINT64_C(1099511628211);
        }
        return hash;
}

static char *read_file(size_t *ret_size)
{
        char *text = NULL;

        assert_int_equal(read_file_at(dir_fd, NAME, 1 << 24, &text, ret_size), 0);
        return text;
}

static void copy_corpus(const char *name)
{
        const char *data = getenv("TIERPROBE_TEST_DATA"); /* NOLINT(concurrency-mt-unsafe): one thread */
        _cleanup_free_ char *path = path_format("%s/state/release-1/%s", data ? data : "tests/data", name);
        _cleanup_free_ char *text = NULL;
        size_t size = 0;

        assert_int_equal(read_file_at(AT_FDCWD, path, 1 << 20, &text, &size), 0);
        assert_int_equal(write_file_atomic_at(dir_fd, NAME, text, size, 0600), 0);
}

/* ---- the rules of release 1 ---- */

typedef struct OldRecord {
        uint64_t checksum, seq;
        uint64_t mono_ns, boot_ns, bracket_ns, diskseq;
        int64_t real_ns;
        uint64_t wide[10]; /* r_ios ... f_ios */
        uint32_t ms[6];
        int32_t in_flight;
        uint32_t n_fields, major, minor, gap, reserved;
        char device[32], run_id[24], unused[16];
} OldRecord;

_Static_assert(sizeof(OldRecord) == 256, "as release 1 had it");

static uint64_t number_at(const char *data, size_t offset)
{
        uint64_t value = 0;

        memcpy(&value, data + offset, sizeof value);
        return value;
}

/* Reads the file as release 1 did; the number of records that it would have served, with the sum of all their
 * bytes. It accepts nothing that release 1 did not. */
static size_t read_as_release_1(uint64_t *ret_next, uint64_t *ret_sum)
{
        size_t size = 0, n = 0;
        _cleanup_free_ char *file = read_file(&size);
        uint32_t words[2];

        assert_true(size >= 1040 && memcmp(file, "TPRING1\n", 8) == 0);
        memcpy(words, file + 8, sizeof words);
        assert_int_equal(words[0], 0x01020304);
        assert_int_equal(words[1], sizeof(OldRecord));
        uint64_t capacity = number_at(file, 16), next = number_at(file, 24);
        assert_true(number_at(file, 32) == fnv(file, 32));
        for (size_t place = 512; place <= 1024; place += 512)
                if (number_at(file, place + 8) == fnv(file + place, 8) && number_at(file, place) > next)
                        next = number_at(file, place);
        *ret_sum = 0;
        for (uint64_t slot = 0; slot < capacity && PAGE + (slot + 1) * sizeof(OldRecord) <= size; slot++) {
                OldRecord record;

                memcpy(&record, file + PAGE + slot * sizeof record, sizeof record);
                if (record.checksum != fnv((char *) &record + 8, sizeof record - 8) || record.gap > 8 ||
                    record.seq == 0 || (record.seq - 1) % capacity != slot)
                        continue;
                next = record.seq >= next ? record.seq + 1 : next;
                n++;
                *ret_sum += fnv(&record, sizeof record);
        }
        *ret_next = next;
        return n;
}

/* ---- release 1 ---- */

static void test_release_1(void **state)
{
        NEEDS_PIDFD();
        static const struct {
                const char *name, *device;
                size_t n;
        } files[] = { { "cache.ring", "loop1", 120 }, { "slow.ring", "loop3", 120 }, { "none.ring", "", 0 } };

        (void) state;
        for (size_t i = 0; i < ELEMENTSOF(files); i++) {
                uint64_t old_next = 0, old_sum = 0, next = 0, sum = 0;
                RingRecord record;

                copy_corpus(files[i].name);
                size_t n_old = read_as_release_1(&old_next, &old_sum);
                assert_int_equal(n_old, files[i].n);
                _cleanup_(ring_freep) Ring *ring = open_ring(120);
                assert_int_equal(ring_next_seq(ring), old_next);
                assert_int_equal(ring_next_seq(ring) - ring_first_seq(ring), files[i].n);
                for (uint64_t seq = ring_first_seq(ring); seq < ring_next_seq(ring); seq++) {
                        assert_int_equal(ring_read(ring, seq, &record), 0);
                        assert_string_equal(record.device, files[i].device);
                        assert_int_equal(record.snapshot.counters.n_fields, 17);
                }
                /* Back to release 1: it sees what it wrote, and what this one has added. */
                assert_int_equal(read_as_release_1(&next, &sum), n_old);
                assert_true(next == old_next && sum == old_sum);
                for (int j = 0; j < 300; j++) {
                        record = (RingRecord){ .snapshot = { .mono_ns = (uint64_t) j + 1 } };
                        assert_int_equal(ring_append(ring, &record), 0);
                }
                assert_int_equal(read_as_release_1(&next, &sum), 120);
                assert_true(next == old_next + 300);
                ring = ring_free(ring);
                ring = open_ring(50); /* rewritten */
                finish(ring);
                assert_int_equal(read_as_release_1(&next, &sum), 50);
                assert_true(next == old_next + 300);
        }
}

/* ---- files of releases to come ---- */

/* Every field of this release, what its absence makes unknown, and strangers among them. */
typedef struct Known {
        const char *name;
        char type, lack; /* "r" rates, "d" discards, "f" flushes */
} Known;

static const Known known[] = {
        { "mono_ns", 'u', 'r' },   { "boot_ns", 'u', 0 },     { "bracket_ns", 'u', 0 },
        { "diskseq", 'u', 0 },     { "real_ns", 'i', 0 },     { "r_ios", 'u', 'r' },
        { "r_merges", 'u', 'r' },  { "r_sectors", 'u', 'r' }, { "w_ios", 'u', 'r' },
        { "w_merges", 'u', 'r' },  { "w_sectors", 'u', 'r' }, { "d_ios", 'u', 'd' },
        { "d_merges", 'u', 'd' },  { "d_sectors", 'u', 'd' }, { "f_ios", 'u', 'f' },
        { "r_ms", 'u', 'r' },      { "w_ms", 'u', 'r' },      { "d_ms", 'u', 'd' },
        { "f_ms", 'u', 'f' },      { "io_ms", 'u', 'r' },     { "queue_ms", 'u', 'r' },
        { "in_flight", 'i', 'r' }, { "n_fields", 'u', 0 },    { "major", 'u', 0 },
        { "minor", 'u', 0 },       { "gap", 'u', 0 },         { "device", 't', 0 },
        { "run_id", 't', 0 },
};
#define N_KNOWN ELEMENTSOF(known)

typedef struct Place {
        bool present;
        size_t offset, size;
} Place;

typedef struct Form {
        size_t record_bytes;
        Place places[N_KNOWN];
        uint64_t capacity, n_records;
} Form;

static Form form;

static uint64_t value_of(uint64_t seq, size_t field)
{
        uint64_t x = (seq * N_KNOWN + field + 1) * UINT64_C(0x9e3779b97f4a7c15);

        if (strcmp(known[field].name, "gap") == 0)
                return x % 3 ? 0 : x % 20; /* some that this release does not know */
        if (strcmp(known[field].name, "n_fields") == 0)
                return 17;
        return x;
}

static void choose_form(void)
{
        size_t at = 16, order[N_KNOWN];

        for (size_t i = 0; i < N_KNOWN; i++)
                order[i] = i;
        for (size_t i = N_KNOWN - 1; i > 0; i--) {
                size_t j = (size_t) random() % (i + 1), swapped = order[i];

                order[i] = order[j];
                order[j] = swapped;
        }
        memset(&form, 0, sizeof form);
        for (size_t i = 0; i < N_KNOWN; i++) {
                Place *place = &form.places[order[i]];

                if (random() % 12 == 0)
                        continue;
                place->present = true;
                place->offset = at;
                place->size =
                        known[order[i]].type == 't' ? 8 + (size_t) random() % 40 : (size_t) 1 << random() % 4;
                at += place->size + (size_t) random() % 3; /* strangers and padding lie between */
        }
        form.record_bytes = (at + 7 + (size_t) random() % 64) / 8 * 8;
        form.capacity = 2 + (uint64_t) random() % 60;
        form.n_records = (uint64_t) random() % 150;
}

static void put_number(char *to, size_t size, uint64_t value)
{
        const uint8_t u8 = (uint8_t) value;
        const uint16_t u16 = (uint16_t) value;
        const uint32_t u32 = (uint32_t) value;
        const void *from = size == 1   ? (const void *) &u8
                           : size == 2 ? (const void *) &u16
                           : size == 4 ? (const void *) &u32
                                       : (const void *) &value;

        memcpy(to, from, size);
}

static void put_entry(char *entry, const char *name, size_t offset, size_t size, char type)
{
        memset(entry, 0, 32);
        memcpy(entry, name, strlen(name));
        put_number(entry + 20, 2, offset);
        entry[22] = (char) size;
        entry[23] = type;
}

/* A release with entries of 32 bytes in its table, which has more to say of a field than this one. */
static void write_header(char *page)
{
        char *entry = page + 1560;
        uint32_t n = 0;

        memset(page, 0, PAGE);
        memcpy(page, "TPRING1\n", 8);
        put_number(page + 8, 4, 0x01020304);
        put_number(page + 12, 4, form.record_bytes);
        put_number(page + 16, 8, form.capacity);
        put_number(page + 24, 8, 1);
        put_number(page + 32, 8, fnv(page, 32));
        memcpy(page + 1536, "FIELDS1\n", 8);
        for (size_t i = 0; i < N_KNOWN; i++) {
                const Place *place = &form.places[i];

                if (random() % 4 == 0) {
                        put_entry(entry, "of_the_future", 16, 8, "ud"[random() % 2]);
                        entry += 32;
                        n++;
                }
                if (!place->present)
                        continue;
                put_entry(entry, known[i].name, place->offset, place->size, known[i].type);
                entry += 32;
                n++;
        }
        put_number(page + 1544, 4, n);
        put_number(page + 1548, 4, 32);
        memcpy(entry, page + 1544, 8); /* what is summed up are the numbers and then the entries */
        char all[PAGE];
        memcpy(all, page + 1544, 8);
        memcpy(all + 8, page + 1560, (size_t) n * 32);
        memset(entry, 0, 8);
        put_number(page + 1552, 8, fnv(all, 8 + (size_t) n * 32));
}

static void write_record(char *record, uint64_t seq)
{
        for (size_t i = 0; i < form.record_bytes; i++)
                record[i] = (char) random();
        put_number(record + 8, 8, seq);
        for (size_t i = 0; i < N_KNOWN; i++) {
                const Place *place = &form.places[i];

                if (!place->present)
                        continue;
                if (known[i].type == 't')
                        (void) snprintf(record + place->offset, place->size, "%s-%llu", known[i].name,
                                        (unsigned long long) seq);
                else
                        put_number(record + place->offset, place->size, value_of(seq, i));
        }
        put_number(record, 8, fnv(record + 8, form.record_bytes - 8));
}

static void write_file(void)
{
        size_t size = PAGE + form.capacity * form.record_bytes;
        _cleanup_free_ char *file = calloc(1, size);

        write_header(file);
        for (uint64_t seq = 1; seq <= form.n_records; seq++)
                write_record(file + PAGE + (seq - 1) % form.capacity * form.record_bytes, seq);
        assert_int_equal(write_file_atomic_at(dir_fd, NAME, file, size, 0600), 0);
}

/* What must come of the field: VALUE cut to what the file holds of it. */
static uint64_t wanted_number(uint64_t seq, size_t field)
{
        const Place *place = &form.places[field];
        uint64_t value = value_of(seq, field);
        unsigned bits = place->size >= 8 ? 0 : 64 - 8 * (unsigned) place->size;

        if (!place->present)
                return 0;
        return known[field].type == 'i' ? (uint64_t) ((int64_t) (value << bits) >> bits)
                                        : value << bits >> bits;
}

static void assert_record(const RingRecord *record, uint64_t seq)
{
        const Snapshot *s = &record->snapshot;
        const Counters *c = &s->counters;
        const uint64_t mono_ns = wanted_number(seq, 0);
        const uint64_t wide[] = { c->r_ios,     c->r_merges, c->r_sectors, c->w_ios,     c->w_merges,
                                  c->w_sectors, c->d_ios,    c->d_merges,  c->d_sectors, c->f_ios };
        const uint32_t narrow[] = { c->r_ms, c->w_ms, c->d_ms, c->f_ms, c->io_ms, c->queue_ms };
        uint32_t n_fields = 17;
        bool no_rates = false;
        char text[64];

        assert_true(record->seq == seq && s->mono_ns == mono_ns);
        assert_true(s->boot_ns == (form.places[1].present ? wanted_number(seq, 1) : mono_ns));
        assert_true(s->real_ns == (int64_t) wanted_number(seq, 4));
        for (size_t i = 0; i < ELEMENTSOF(wide); i++)
                assert_true(wide[i] == wanted_number(seq, 5 + i));
        for (size_t i = 0; i < ELEMENTSOF(narrow); i++)
                assert_true(narrow[i] == (uint32_t) wanted_number(seq, 15 + i));
        assert_true(c->in_flight == (int32_t) wanted_number(seq, 21));
        for (size_t i = 0; i < N_KNOWN; i++)
                if (!form.places[i].present) {
                        no_rates = no_rates || known[i].lack == 'r';
                        if (known[i].lack == 'd')
                                n_fields = 11;
                        else if (known[i].lack == 'f' && n_fields > 15)
                                n_fields = 15;
                }
        assert_int_equal(c->n_fields, n_fields);
        uint64_t gap = wanted_number(seq, 25);
        if (gap >= _GAP_MAX || (gap == GAP_NONE && no_rates))
                gap = GAP_UNREADABLE;
        assert_int_equal(s->gap, gap);
        (void) snprintf(text, form.places[26].size < 32 ? form.places[26].size : 32, "device-%llu",
                        (unsigned long long) seq);
        assert_string_equal(record->device, form.places[26].present ? text : "");
        (void) snprintf(text, form.places[27].size < 24 ? form.places[27].size : 24, "run_id-%llu",
                        (unsigned long long) seq);
        assert_string_equal(record->run_id, form.places[27].present ? text : "");
}

static void assert_all(const Ring *ring)
{
        RingRecord record;

        assert_int_equal(ring_next_seq(ring), form.n_records + 1);
        for (uint64_t seq = ring_first_seq(ring); seq < ring_next_seq(ring); seq++) {
                assert_int_equal(ring_read(ring, seq, &record), 0);
                assert_record(&record, seq);
        }
}

static void test_other_forms(void **state)
{
        NEEDS_PIDFD();
        (void) state;
        for (unsigned seed = 0; seed < seeds_of(2000); seed++) {
                uint64_t next = 0, sum = 0, kept = 0;

                srandom(seed);
                choose_form();
                write_file();
                _cleanup_(ring_freep) Ring *ring = open_ring(form.capacity);
                kept = form.n_records < form.capacity ? form.n_records : form.capacity;
                assert_int_equal(ring_next_seq(ring) - ring_first_seq(ring), kept);
                assert_all(ring);
                if (seed % 4)
                        continue; /* a child and a sync each: some will do */
                finish(ring);
                assert_all(ring);
                /* Release 1 does not know every reason for a gap, but it would read the others. */
                assert_in_range(read_as_release_1(&next, &sum), 0, kept);
                ring = ring_free(ring);
                ring = open_ring(form.capacity);
                assert_false(ring_work(ring)); /* once is enough */
                assert_all(ring);
        }
}

/* As long as the file is of another form it is written in that form. */
static void test_append_to_other_forms(void **state)
{
        (void) state;
        for (unsigned seed = 0; seed < seeds_of(1000); seed++) {
                RingRecord record = { .snapshot = { .mono_ns = 200,
                                                    .boot_ns = 300,
                                                    .counters = { .w_ios = 100, .n_fields = 17 } } },
                           back;

                srandom(seed);
                choose_form();
                write_file();
                (void) strcpy(record.device, "sda");
                _cleanup_(ring_freep) Ring *ring = open_ring(form.capacity);
                assert_int_equal(ring_append(ring, &record), 0);
                for (int again = 0; again < 2; again++) {
                        assert_int_equal(ring_read(ring, form.n_records + 1, &back), 0);
                        assert_int_equal(back.snapshot.mono_ns, form.places[0].present ? 200 : 0);
                        assert_int_equal(back.snapshot.counters.w_ios, form.places[8].present ? 100 : 0);
                        assert_string_equal(back.device, form.places[26].present ? "sda" : "");
                        ring = ring_free(ring);
                        ring = open_ring(form.capacity);
                        assert_int_equal(ring_next_seq(ring), form.n_records + 2);
                }
        }
}

/* ---- damage to the table ---- */

/* A header that is not whole is set aside with all that follows, under a name of its own, and never read as
 * something else: what is read of a flipped file is what was written, or the file starts anew. */
static void test_damaged_header(void **state)
{
        unsigned n_aside = 0;

        (void) state;
        for (unsigned seed = 0; seed < seeds_of(3000); seed++) {
                _cleanup_(ring_freep) Ring *ring = NULL;
                size_t size = 0;
                bool damaged = false;

                srandom(seed);
                choose_form();
                write_file();
                _cleanup_free_ char *file = read_file(&size);
                size_t at = random() % 3 ? (size_t) random() % 2600 : (size_t) random() % 40;
                file[at] ^= (char) (1 << random() % 8);
                if (random() % 10 == 0)
                        size = 1 + (size_t) random() % PAGE;
                assert_int_equal(write_file_atomic_at(dir_fd, NAME, file, size, 0600), 0);
                assert_int_equal(ring_open(&ring, dir_fd, NAME, form.capacity, &damaged), 0);
                if (damaged) {
                        n_aside++;
                        assert_int_equal(ring_next_seq(ring), 1);
                } else if (size > PAGE) {
                        assert_all(ring);
                }
                assert_int_equal(count_set_aside_at(dir_fd), n_aside);
        }
        assert_true(n_aside > seeds_of(1000));
}

/* A file cut within its first page is damaged now or not at all: what is appended to it is found again. */
static void test_cut_header(void **state)
{
        size_t size = 0, n_whole = 0;

        (void) state;
        _cleanup_(ring_freep) Ring *first = open_ring(20);
        first = ring_free(first);
        _cleanup_free_ char *file = read_file(&size);
        for (size_t cut = 1; cut <= PAGE; cut++) {
                _cleanup_(ring_freep) Ring *ring = NULL;
                RingRecord record = { .snapshot = { .mono_ns = cut } }, back;
                bool damaged = false;

                assert_int_equal(write_file_atomic_at(dir_fd, NAME, file, cut, 0600), 0);
                assert_int_equal(ring_open(&ring, dir_fd, NAME, 20, &damaged), 0);
                n_whole += !damaged;
                assert_int_equal(ring_append(ring, &record), 0);
                ring = ring_free(ring);
                ring = open_ring(20); /* which is not damaged */
                assert_int_equal(ring_read(ring, record.seq, &back), 0);
                assert_int_equal(back.snapshot.mono_ns, cut);
                ring = ring_free(ring);
        }
        assert_true(n_whole > 1000 && n_whole < PAGE);
}

/* A read error is not damage: the file stays what and where it is, and is there again when the disk is. */
static void test_unreadable(void **state)
{
        Ring *nothing = NULL;
        RingRecord record;
        bool damaged = false;

        (void) state;
        copy_corpus("cache.ring");
        read_fails = true;
        assert_int_equal(ring_open(&nothing, dir_fd, NAME, 120, &damaged), -EIO);
        read_fails = false;
        assert_null(nothing);
        assert_false(damaged);
        assert_int_equal(count_set_aside_at(dir_fd), 0);
        _cleanup_(ring_freep) Ring *ring = open_ring(120);
        uint64_t first = ring_first_seq(ring), next = ring_next_seq(ring);
        assert_int_equal(next - first, 120);
        read_fails = true;
        assert_int_equal(ring_read(ring, first, &record), -ENODATA);
        read_fails = false;
        assert_int_equal(ring_read(ring, first, &record), 0);
}

#define test_case(f) cmocka_unit_test_setup_teardown(f, open_folder, close_folder)

int main(void)
{
        const struct CMUnitTest tests[] = {
                test_case(test_release_1),
                test_case(test_other_forms),
                test_case(test_append_to_other_forms),
                test_case(test_damaged_header),
                test_case(test_cut_header),
                test_case(test_unreadable),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
