/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of samples: what is appended is what is read, whatever happens to the process, the file and the
 * disk in between; a damaged record is missing, never wrong. */

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/history.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "pidfd.h"

#include "seeds.h"
#define FOLDER_NAME "ring"
#include "folder.h"

#define NAME "cache.ring"
#define HEADER 4096
#define RECORD 256

static uint64_t mix(uint64_t x)
{
        x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
        return x ^ (x >> 31);
}

/* A record out of a number, different in every field. */
static RingRecord make_record(uint64_t payload)
{
        RingRecord record = { .snapshot = { .mono_ns = mix(payload),
                                            .boot_ns = mix(payload + 1),
                                            .real_ns = (int64_t) mix(payload + 2),
                                            .bracket_ns = mix(payload + 3),
                                            .diskseq = mix(payload + 4),
                                            .major = (uint32_t) mix(payload + 5),
                                            .minor = (uint32_t) mix(payload + 6),
                                            .gap = (Gap) (mix(payload + 7) % _GAP_MAX) } };
        Counters *c = &record.snapshot.counters;
        uint64_t *const wide[] = { &c->r_ios,     &c->r_merges, &c->r_sectors, &c->w_ios,     &c->w_merges,
                                   &c->w_sectors, &c->d_ios,    &c->d_merges,  &c->d_sectors, &c->f_ios };
        uint32_t *const narrow[] = { &c->r_ms,  &c->w_ms,     &c->d_ms,    &c->f_ms,
                                     &c->io_ms, &c->queue_ms, &c->n_fields };

        for (size_t i = 0; i < ELEMENTSOF(wide); i++)
                *wide[i] = mix(payload + 10 + i);
        for (size_t i = 0; i < ELEMENTSOF(narrow); i++)
                *narrow[i] = (uint32_t) mix(payload + 30 + i);
        c->in_flight = (int32_t) mix(payload + 40);
        (void) snprintf(record.device, sizeof record.device, "sd%llu", (unsigned long long) payload);
        if (payload % 3)
                (void) snprintf(record.run_id, sizeof record.run_id, "run-%llu",
                                (unsigned long long) payload % 1000);
        return record;
}

static void assert_record(const RingRecord *record, uint64_t seq, uint64_t payload)
{
        RingRecord wanted = make_record(payload);

        assert_int_equal(record->seq, seq);
        assert_memory_equal(&record->snapshot.counters, &wanted.snapshot.counters,
                            sizeof wanted.snapshot.counters);
        assert_true(record->snapshot.mono_ns == wanted.snapshot.mono_ns &&
                    record->snapshot.boot_ns == wanted.snapshot.boot_ns &&
                    record->snapshot.real_ns == wanted.snapshot.real_ns &&
                    record->snapshot.bracket_ns == wanted.snapshot.bracket_ns &&
                    record->snapshot.diskseq == wanted.snapshot.diskseq &&
                    record->snapshot.major == wanted.snapshot.major &&
                    record->snapshot.minor == wanted.snapshot.minor &&
                    record->snapshot.gap == wanted.snapshot.gap);
        assert_string_equal(record->device, wanted.device);
        assert_string_equal(record->run_id, wanted.run_id);
}

/* Waits for the rewriting to end, if there is one. */
static void finish(Ring *ring)
{
        uint64_t deadline_ns = clock_ns(CLOCK_MONOTONIC) + 60 * NS_PER_S;

        while (ring_work(ring)) {
                assert_true(clock_ns(CLOCK_MONOTONIC) < deadline_ns);
                (void) usleep(100);
        }
}

static Ring *open_ring(uint64_t capacity)
{
        Ring *ring = NULL;
        bool damaged = true;

        assert_int_equal(ring_open(&ring, dir_fd, NAME, capacity, &damaged), 0);
        assert_false(damaged);
        finish(ring);
        return ring;
}

static void close_ring(Ring **ring)
{
        *ring = ring_free(*ring);
}

static void append(Ring *ring, uint64_t payload)
{
        RingRecord record = make_record(payload);
        uint64_t next = ring_next_seq(ring);

        assert_int_equal(ring_append(ring, &record), 0);
        assert_int_equal(record.seq, next);
        assert_int_equal(ring_next_seq(ring), next + 1);
}

/* Payloads are the numbers themselves. */
static void append_numbered(Ring *ring, uint64_t n)
{
        for (uint64_t i = 0; i < n; i++)
                append(ring, ring_next_seq(ring));
}

static void assert_all_numbered(const Ring *ring)
{
        RingRecord record;

        for (uint64_t seq = ring_first_seq(ring); seq < ring_next_seq(ring); seq++) {
                assert_int_equal(ring_read(ring, seq, &record), 0);
                assert_record(&record, seq, seq);
        }
}

static void write_at(off_t offset, const void *data, size_t size)
{
        _cleanup_close_ int fd = openat(dir_fd, NAME, O_WRONLY | O_CLOEXEC);

        assert_true(fd >= 0);
        assert_int_equal(pwrite(fd, data, size, offset), size);
}

static void flip_at(off_t offset)
{
        unsigned char byte = 0;
        _cleanup_close_ int fd = openat(dir_fd, NAME, O_RDWR | O_CLOEXEC);

        assert_true(fd >= 0);
        assert_int_equal(pread(fd, &byte, 1, offset), 1);
        byte ^= (unsigned char) (1 + random() % 255);
        assert_int_equal(pwrite(fd, &byte, 1, offset), 1);
}

static off_t file_size(void)
{
        struct stat st;

        assert_int_equal(fstatat(dir_fd, NAME, &st, 0), 0);
        return st.st_size;
}

static void truncate_file(off_t size)
{
        _cleanup_close_ int fd = openat(dir_fd, NAME, O_WRONLY | O_CLOEXEC);

        assert_true(fd >= 0);
        assert_int_equal(ftruncate(fd, size), 0);
}

static bool exists(const char *name)
{
        return faccessat(dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* ---- cases ---- */

static void test_append_read_wrap(void **state)
{
        RingRecord record;
        Ring *nothing = NULL;

        (void) state;
        assert_int_equal(ring_open(&nothing, dir_fd, NAME, 1, NULL), -EINVAL);
        assert_int_equal(ring_open(&nothing, dir_fd, NAME, 10000001, NULL), -EINVAL);
        assert_int_equal(ring_open(&nothing, dir_fd, "a/b", 10, NULL), -EINVAL);
        assert_null(nothing);

        _cleanup_(ring_freep) Ring *ring = open_ring(10);
        assert_int_equal(ring_capacity(ring), 10);
        assert_int_equal(ring_first_seq(ring), 1);
        assert_int_equal(ring_next_seq(ring), 1);
        assert_int_equal(ring_read(ring, 1, &record), -ENOENT);
        assert_int_equal(ring_read(ring, 0, &record), -ENOENT);
        append_numbered(ring, 10);
        assert_int_equal(ring_first_seq(ring), 1);
        assert_all_numbered(ring);
        append_numbered(ring, 25);
        assert_int_equal(ring_first_seq(ring), 26);
        assert_int_equal(ring_next_seq(ring), 36);
        assert_all_numbered(ring);
        assert_int_equal(ring_read(ring, 25, &record), -ENOENT);
        assert_int_equal(ring_read(ring, 36, &record), -ENOENT);
        assert_int_equal(file_size(), HEADER + 10 * RECORD);
}

/* The head is found at every distance from the last checkpoint, at the ring's edges and after many laps. */
static void test_reopen_at_every_length(void **state)
{
        (void) state;
        for (uint64_t capacity = 2; capacity < 1500; capacity = capacity * 3 + 1) {
                (void) unlinkat(dir_fd, NAME, 0);
                for (uint64_t n = 1; n < seeds_of(3000); n += 1 + n / 7) {
                        _cleanup_(ring_freep) Ring *ring = open_ring(capacity);
                        uint64_t next = ring_next_seq(ring);

                        append_numbered(ring, n % 700);
                        next += n % 700;
                        close_ring(&ring);
                        ring = open_ring(capacity);
                        assert_int_equal(ring_next_seq(ring), next);
                        assert_int_equal(ring_first_seq(ring), next > capacity ? next - capacity : 1);
                        assert_all_numbered(ring);
                }
        }
}

static void test_capacity_change(void **state)
{
        NEEDS_PIDFD();
        uint64_t kept_from = 1;

        (void) state;
        srandom(3);
        for (int i = 0; i < 300; i++) {
                uint64_t capacity = 2 + (uint64_t) random() % (i % 10 ? 50 : 5000);
                _cleanup_(ring_freep) Ring *ring = open_ring(capacity);
                uint64_t next = ring_next_seq(ring);

                if (next > capacity && next - capacity > kept_from)
                        kept_from = next - capacity;
                assert_int_equal(ring_capacity(ring), capacity);
                assert_int_equal(ring_first_seq(ring), kept_from);
                assert_all_numbered(ring);
                append_numbered(ring, (uint64_t) random() % 100);
                assert_all_numbered(ring);
                kept_from = ring_first_seq(ring);
                assert_false(exists(NAME ".new"));
        }
}

/* While the file is rewritten it is read and written as before, however long that takes; when it is not
 * brought to an end, nothing has changed. */
static void test_used_while_rewritten(void **state)
{
        NEEDS_PIDFD();
        (void) state;
        for (unsigned seed = 0; seed < seeds_of(200); seed++) {
                uint64_t before = 2 + (uint64_t) seed * 53 % 6000, after = 2 + (uint64_t) seed * 97 % 6000;
                _cleanup_(ring_freep) Ring *ring = NULL;
                bool more = true;

                srandom(seed);
                (void) unlinkat(dir_fd, NAME, 0);
                ring = open_ring(before);
                append_numbered(ring, (uint64_t) random() % 7000);
                close_ring(&ring);
                assert_int_equal(ring_open(&ring, dir_fd, NAME, after, NULL), 0);
                for (int i = 0; more && i < 3; i++) {
                        assert_int_equal(ring_capacity(ring), before);
                        append_numbered(ring, (uint64_t) random() % 50);
                        assert_all_numbered(ring);
                        more = ring_work(ring);
                }
                uint64_t next = ring_next_seq(ring), first = ring_first_seq(ring);
                if (random() % 2 && more) { /* the daemon ends in the middle */
                        close_ring(&ring);
                        assert_false(exists(NAME ".new"));
                        ring = open_ring(before);
                        assert_int_equal(ring_first_seq(ring), first);
                } else {
                        finish(ring);
                        assert_int_equal(ring_capacity(ring), after);
                        /* What the old file has lost meanwhile may be in the new one. */
                        assert_true(ring_first_seq(ring) <= (next - first > after ? next - after : first));
                }
                assert_int_equal(ring_next_seq(ring), next);
                assert_all_numbered(ring);
                assert_false(exists(NAME ".new"));
        }
}

static void test_set_aside(void **state)
{
        static const char *const rubbish[] = { "x", "TIERPROBE",
                                               "TPRING1\n and then nothing that fits here" };

        (void) state;
        for (int kind = 0; kind < 8; kind++) {
                _cleanup_(ring_freep) Ring *ring = NULL;
                bool damaged = false;
                char path[128];

                (void) unlinkat(dir_fd, NAME, 0);
                (void) snprintf(path, sizeof path, "%s/%s", folder, NAME);
                switch (kind) {
                case 0:
                        assert_int_equal(mkdirat(dir_fd, NAME, 0700), 0);
                        break;
                case 1:
                        (void) unlinkat(dir_fd, NAME ".damaged", AT_REMOVEDIR);
                        assert_int_equal(symlinkat("/etc/passwd", dir_fd, NAME), 0);
                        break;
                case 2:
                        assert_int_equal(mkfifo(path, 0600), 0);
                        break;
                case 3:
                case 4:
                case 5:
                        close((openat(dir_fd, NAME, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)));
                        write_at(0, rubbish[kind - 3], strlen(rubbish[kind - 3]));
                        break;
                case 6: /* longer than a header */
                        close((openat(dir_fd, NAME, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)));
                        write_at(100000, "x", 1);
                        break;
                default: /* another version */
                        ring = open_ring(10);
                        close_ring(&ring);
                        write_at(6, "2", 1);
                }
                assert_int_equal(ring_open(&ring, dir_fd, NAME, 10, &damaged), 0);
                assert_true(damaged);
                assert_true(exists(NAME ".damaged"));
                append_numbered(ring, 12);
                assert_all_numbered(ring);
        }
}

/* An empty file is what a crash between making it and its first write leaves: no damage. */
static void test_empty_file_is_new(void **state)
{
        (void) state;
        close((openat(dir_fd, NAME, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)));
        _cleanup_(ring_freep) Ring *ring = open_ring(10);
        append_numbered(ring, 3);
        assert_all_numbered(ring);
}

/* One byte flipped anywhere, at any fill: that record is missing, all others are right, and the numbers go
 * on (but for the newest record, whose number may be given out again). */
static void test_one_flipped_byte(void **state)
{
        (void) state;
        for (unsigned seed = 0; seed < seeds_of(1500); seed++) {
                uint64_t missing = 0;
                bool damaged = false;
                RingRecord record;

                srandom(seed);
                uint64_t capacity = 2 + (uint64_t) random() % 40, n = 1 + (uint64_t) random() % 900;
                (void) unlinkat(dir_fd, NAME, 0);
                _cleanup_(ring_freep) Ring *ring = open_ring(capacity);
                append_numbered(ring, n);
                uint64_t first = ring_first_seq(ring), next = ring_next_seq(ring);
                uint64_t hurt = first + (uint64_t) random() % (next - first);
                close_ring(&ring);
                off_t offset = HEADER + (off_t) ((hurt - 1) % capacity) * RECORD;
                flip_at(offset + random() % RECORD);

                assert_int_equal(ring_open(&ring, dir_fd, NAME, capacity, &damaged), 0);
                assert_false(damaged);
                if (hurt == next - 1)
                        assert_true(ring_next_seq(ring) == next || ring_next_seq(ring) == next - 1);
                else
                        assert_int_equal(ring_next_seq(ring), next);
                for (uint64_t seq = ring_first_seq(ring); seq < ring_next_seq(ring); seq++) {
                        int r = ring_read(ring, seq, &record);

                        if (r == 0)
                                assert_record(&record, seq, seq);
                        else
                                missing++;
                        assert_true(r == 0 || (r == -ENODATA && (seq == hurt || seq < first)));
                }
                assert_true(missing <= 2);
        }
}

/* Whoever reads ahead sees what one record after the other shows, from wherever he begins. */
static void assert_read_ahead(const Ring *ring)
{
        RingReader reader = { .n = 0 };
        uint64_t kept = ring_next_seq(ring) - ring_first_seq(ring);
        uint64_t from = ring_first_seq(ring) + (kept > 0 ? (uint64_t) random() % kept : 0);

        for (uint64_t seq = from > 1 ? from - 1 : 1; seq <= ring_next_seq(ring);
             seq += 1 + (random() % 50 == 0)) {
                RingRecord record;
                Delta delta = { 0 }, expected = { 0 };
                Gap gap = _GAP_MAX, expected_gap = _GAP_MAX;

                int r = ring_read_delta(ring, seq, &record, &expected, &expected_gap);
                assert_int_equal(ring_read_next(ring, &reader, seq, &delta, &gap), r);
                assert_int_equal(gap, expected_gap);
                assert_int_equal(delta.interval_ns, expected.interval_ns);
                assert_int_equal(delta.w_ios, expected.w_ios);
                assert_int_equal(reader.record.seq, r >= 0 ? seq : 0);
                if (r >= 0) {
                        assert_int_equal(reader.record.snapshot.mono_ns, record.snapshot.mono_ns);
                        assert_int_equal(reader.record.snapshot.counters.w_ios,
                                         record.snapshot.counters.w_ios);
                        assert_string_equal(reader.record.run_id, record.run_id);
                }
        }
}

/* The model of what may be read: the payload last appended under each number. */
#define MODEL_MAX 20000

/* Anything at once, thousands of times: appends, reopening, other capacities, flips, truncation, stray
 * blocks. What is read is what was appended under that number last. */
static void test_random_damage(void **state)
{
        NEEDS_PIDFD();
        static uint64_t model[MODEL_MAX];
        uint64_t read_back = 0, set_asides = 0;

        (void) state;
        for (unsigned seed = 0; seed < seeds_of(1000); seed++) {
                uint64_t payload = 1;

                srandom(seed + 1000);
                uint64_t capacity = 2 + (uint64_t) random() % 300;
                (void) unlinkat(dir_fd, NAME, 0);
                memset(model, 0, sizeof model);
                for (int step = 0; step < 12; step++) {
                        _cleanup_(ring_freep) Ring *ring = NULL;
                        RingRecord record;
                        bool damaged = false;

                        if (random() % 8 == 0)
                                capacity = 2 + (uint64_t) random() % 300;
                        assert_int_equal(ring_open(&ring, dir_fd, NAME, capacity, &damaged), 0);
                        finish(ring);
                        if (damaged) {
                                memset(model, 0, sizeof model);
                                set_asides++;
                        }
                        assert_true(ring_next_seq(ring) - ring_first_seq(ring) <= capacity);
                        for (long n = random() % 600; n > 0; n--, payload++) {
                                assert_true(ring_next_seq(ring) < MODEL_MAX);
                                model[ring_next_seq(ring)] = payload;
                                append(ring, payload);
                                if (random() % 2000 == 0) /* under the open ring */
                                        truncate_file(random() % file_size());
                        }
                        for (uint64_t seq = ring_first_seq(ring); seq < ring_next_seq(ring); seq++) {
                                int r = ring_read(ring, seq, &record);

                                assert_true(r == 0 || r == -ENODATA);
                                if (r == 0) {
                                        assert_record(&record, seq, model[seq]);
                                        read_back++;
                                }
                        }
                        assert_read_ahead(ring);
                        close_ring(&ring);
                        off_t size = file_size();
                        char block[700];

                        switch (random() % 7) {
                        case 0:
                                truncate_file(random() % (size + 1));
                                break;
                        case 1:
                                for (long n = random() % 20; n > 0; n--)
                                        flip_at(random() % size);
                                break;
                        case 2:
                                memset(block, (int) (random() % 256), sizeof block);
                                write_at(HEADER + random() % (size < HEADER ? HEADER : size - HEADER + 1),
                                         block, (size_t) random() % sizeof block);
                                break;
                        case 4:
                                if (size > 40)
                                        flip_at(random() % 40);
                                break;
                        case 3: /* both checkpoints */
                                if (size > 1200) {
                                        flip_at(512);
                                        flip_at(1024);
                                }
                                break;
                        default:
                                break;
                        }
                }
        }
        assert_true(read_back > seeds_of(1000000));
        assert_true(set_asides > seeds_of(1000) / 10);
}

/* Without checkpoints the whole file tells. */
static void test_lost_checkpoints(void **state)
{
        (void) state;
        for (uint64_t n = 1; n < seeds_of(9000); n += 977) {
                (void) unlinkat(dir_fd, NAME, 0);
                _cleanup_(ring_freep) Ring *ring = open_ring(4000);
                append_numbered(ring, n);
                close_ring(&ring);
                flip_at(512 + random() % 16);
                flip_at(1024 + random() % 16);
                ring = open_ring(4000);
                assert_int_equal(ring_next_seq(ring), n + 1);
                assert_all_numbered(ring);
        }
}

/* ---- other processes ---- */

static int wait_for(pid_t pid)
{
        int status = 0;

        assert_int_equal(waitpid(pid, &status, 0), pid);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Opens the ring in a child; its errno. */
static int open_elsewhere(void)
{
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
                Ring *ring = NULL;
                int r = ring_open(&ring, dir_fd, NAME, 10, NULL);
                _exit(-r);
        }
        return wait_for(pid);
}

static void test_one_process_at_a_time(void **state)
{
        NEEDS_PIDFD();
        (void) state;
        _cleanup_(ring_freep) Ring *ring = open_ring(10);
        assert_int_equal(open_elsewhere(), EBUSY);
        close_ring(&ring);
        ring = open_ring(20); /* rewritten: the lock is on the new file */
        assert_int_equal(open_elsewhere(), EBUSY);

        /* A child that outlives us must not hold it. */
        int ends[2];
        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        pid_t pid = fork();
        if (pid == 0) {
                char c = 0;
                close(ends[1]);
                _exit((int) read(ends[0], &c, 1));
        }
        close_ring(&ring);
        assert_int_equal(open_elsewhere(), 0);
        close(ends[0]);
        close(ends[1]);
        (void) wait_for(pid);
}

/* SIGKILL in the middle of appending loses at most the record being appended. */
static void test_kill(void **state)
{
        (void) state;
        for (int i = 0; i < 60; i++) {
                uint64_t seq = 0, told = 0;
                int ends[2];

                assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
                pid_t pid = fork();
                assert_true(pid >= 0);
                if (pid == 0) {
                        Ring *ring = NULL;

                        if (ring_open(&ring, dir_fd, NAME, 500, NULL) < 0)
                                _exit(1);
                        for (;;) {
                                RingRecord record = make_record(ring_next_seq(ring));
                                if (ring_append(ring, &record) < 0 ||
                                    write(ends[1], &record.seq, sizeof record.seq) != sizeof record.seq)
                                        _exit(1);
                        }
                }
                close(ends[1]);
                for (int n = 0; n < 1 + i * 37; n++) {
                        assert_int_equal(read(ends[0], &seq, sizeof seq), sizeof seq);
                        told = seq;
                }
                assert_int_equal(kill(pid, SIGKILL), 0);
                (void) wait_for(pid);
                while (read(ends[0], &seq, sizeof seq) == sizeof seq)
                        told = seq;
                close(ends[0]);

                _cleanup_(ring_freep) Ring *ring = open_ring(500);
                assert_in_range(ring_next_seq(ring), told + 1, told + 2);
                assert_all_numbered(ring);
        }
}

/* ---- a full disk: the limit on a file's size stands in for it ---- */

static void limit_file_size(rlim_t bytes)
{
        struct rlimit limit;

        assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
        limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void test_full_disk(void **state)
{
        (void) state;
        (void) signal(SIGXFSZ, SIG_IGN);
        _cleanup_(ring_freep) Ring *ring = open_ring(10000);
        append_numbered(ring, 100);
        limit_file_size(HEADER + 100 * RECORD + 100); /* the next one is torn */
        RingRecord record = make_record(0);
        for (uint64_t i = 0; i < 5000; i++) {
                assert_int_equal(ring_append(ring, &record), -EFBIG);
                assert_int_equal(record.seq, 101 + i); /* used up */
        }
        limit_file_size(RLIM_INFINITY);
        append_numbered(ring, 3);
        assert_int_equal(ring_read(ring, 100, &record), 0);
        assert_int_equal(ring_read(ring, 101, &record), -ENODATA);
        assert_int_equal(ring_read(ring, 5100, &record), -ENODATA);
        assert_int_equal(ring_read(ring, 5101, &record), 0);
        close_ring(&ring);

        /* However long the hole was, the end is found behind it. */
        ring = open_ring(10000);
        assert_int_equal(ring_next_seq(ring), 5104);
        assert_int_equal(ring_read(ring, 5103, &record), 0);
}

/* ---- written behind ---- */

static Ring *open_behind(uint64_t capacity)
{
        Ring *ring = NULL;
        bool damaged = true;

        assert_int_equal(ring_open(&ring, dir_fd, NAME, capacity, &damaged), 0);
        assert_false(damaged);
        assert_int_equal(ring_write_behind(ring), 0);
        return ring;
}

/* Whatever is in memory and whatever in the file, all that was appended is read, and is there when the ring
 * is opened again. */
static void test_behind(void **state)
{
        NEEDS_PIDFD();
        (void) state;
        for (unsigned seed = 0; seed < seeds_of(60); seed++) {
                uint64_t capacity = RING_CAPACITY_MIN, next = 1;

                srandom(seed);
                close_folder(NULL);
                open_folder(NULL);
                _cleanup_(ring_freep) Ring *ring = open_behind(capacity);
                for (int step = 0; step < 30; step++) {
                        switch (random() % 6) {
                        case 0:
                                assert_int_equal(ring_finish(ring, 60000), 0);
                                close_ring(&ring);
                                capacity = RING_CAPACITY_MIN + (uint64_t) random() % 100;
                                ring = open_behind(capacity);
                                break;
                        case 1:
                                assert_int_equal(ring_finish(ring, 60000), 0);
                                break;
                        case 2:
                                (void) ring_work(ring);
                                break;
                        default:
                                append_numbered(ring, (uint64_t) random() % 300);
                                assert_int_equal(ring_save(ring), 0);
                                break;
                        }
                        if (ring_next_seq(ring) < next)
                                fail_msg("seed %u: records were lost", seed);
                        next = ring_next_seq(ring);
                        assert_all_numbered(ring);
                        assert_read_ahead(ring);
                }
        }
}

static void test_behind_on_a_full_disk(void **state)
{
        NEEDS_PIDFD();
        (void) state;
        (void) signal(SIGXFSZ, SIG_IGN);
        _cleanup_(ring_freep) Ring *ring = open_behind(20000);
        limit_file_size(HEADER + 100 * RECORD + 100);
        append_numbered(ring, 5000);
        assert_true(ring_finish(ring, 60000) >= 5000);
        assert_int_equal(ring_save(ring), -EFBIG);
        assert_all_numbered(ring);
        limit_file_size(RLIM_INFINITY);
        assert_int_equal(ring_finish(ring, 60000), 0);
        close_ring(&ring);
        ring = open_ring(20000);
        assert_int_equal(ring_next_seq(ring), 5001);
        assert_all_numbered(ring);

        /* More than may wait is a hole, as on any full disk. */
        close_ring(&ring);
        ring = open_behind(20000);
        int r = 0;
        for (uint64_t i = 0; i < 10000 && r >= 0; i++) {
                RingRecord record = make_record(0);

                r = ring_append(ring, &record);
        }
        assert_int_equal(r, -ENOBUFS);
        assert_int_equal(ring_finish(ring, 60000), 0);
}

static void test_no_space_for_another_capacity(void **state)
{
        Ring *nothing = NULL;

        (void) state;
        (void) signal(SIGXFSZ, SIG_IGN);
        _cleanup_(ring_freep) Ring *ring = open_ring(100);
        append_numbered(ring, 250);
        close_ring(&ring);
        limit_file_size(HEADER + 50 * RECORD);
        ring = open_ring(1000);
        limit_file_size(RLIM_INFINITY);
        assert_int_equal(ring_capacity(ring), 100);
        assert_int_equal(ring_first_seq(ring), 151);
        assert_all_numbered(ring);
        assert_false(exists(NAME ".new"));
        append_numbered(ring, 7);
        assert_all_numbered(ring);

        limit_file_size(0);
        assert_int_equal(ring_open(&nothing, dir_fd, "other.ring", 10, NULL), -EFBIG);
        limit_file_size(RLIM_INFINITY);
}

static void test_truncated_while_open(void **state)
{
        RingRecord record;

        (void) state;
        _cleanup_(ring_freep) Ring *ring = open_ring(1000);
        append_numbered(ring, 500);
        truncate_file(0);
        assert_int_equal(ring_read(ring, 500, &record), -ENODATA);
        append_numbered(ring, 300); /* over a checkpoint: the header is back */
        assert_int_equal(ring_read(ring, 501, &record), 0);
        close_ring(&ring);
        ring = open_ring(1000);
        assert_int_equal(ring_next_seq(ring), 801);
        assert_int_equal(ring_read(ring, 500, &record), -ENODATA);
        assert_int_equal(ring_read(ring, 501, &record), 0);
}

static void test_leftover_of_a_resize(void **state)
{
        (void) state;
        close((openat(dir_fd, NAME ".new", O_CREAT | O_WRONLY | O_CLOEXEC, 0600)));
        _cleanup_(ring_freep) Ring *ring = open_ring(10);
        append_numbered(ring, 1);
        assert_false(exists(NAME ".new"));
}

/* ---- intervals ---- */

static void append_tick(Ring *ring, uint64_t second, const char *device, Gap gap)
{
        RingRecord record = { .snapshot = { .mono_ns = second * NS_PER_S,
                                            .boot_ns = second * NS_PER_S,
                                            .major = 8,
                                            .gap = gap,
                                            .counters = { .w_ios = 100 * second, .n_fields = 17 } } };

        (void) snprintf(record.device, sizeof record.device, "%s", device);
        assert_int_equal(ring_append(ring, &record), 0);
}

static void test_delta(void **state)
{
        RingRecord record;
        Delta delta = { 0 };
        Gap gap = _GAP_MAX;

        (void) state;
        _cleanup_(ring_freep) Ring *ring = open_ring(10);
        append_tick(ring, 1, "sda", GAP_NONE);
        append_tick(ring, 2, "sda", GAP_NONE);
        append_tick(ring, 3, "sda", GAP_ABSENT);
        append_tick(ring, 4, "sda", GAP_NONE);
        append_tick(ring, 5, "sda+sdb", GAP_NONE);
        append_tick(ring, 6, "sda+sdb", GAP_NONE);

        assert_int_equal(ring_read_delta(ring, 7, &record, &delta, &gap), -ENOENT);
        assert_int_equal(gap, _GAP_MAX);
        assert_int_equal(ring_read_delta(ring, 1, &record, &delta, &gap), 0);
        assert_int_equal(gap, GAP_FIRST);
        assert_int_equal(ring_read_delta(ring, 2, &record, &delta, &gap), 0);
        assert_int_equal(gap, GAP_NONE);
        assert_int_equal(record.seq, 2);
        assert_int_equal(delta.interval_ns, NS_PER_S);
        assert_int_equal(delta.w_ios, 100);
        assert_int_equal(ring_read_delta(ring, 3, &record, &delta, &gap), 0);
        assert_int_equal(gap, GAP_ABSENT);
        assert_int_equal(ring_read_delta(ring, 4, &record, &delta, &gap), 0);
        assert_int_equal(gap, GAP_RETURNED);
        assert_int_equal(ring_read_delta(ring, 5, &record, &delta, &gap), 0);
        assert_int_equal(gap, GAP_REPLACED);

        flip_at(HEADER + 4 * RECORD + 20);
        assert_int_equal(ring_read_delta(ring, 5, &record, &delta, &gap), -ENODATA);
        assert_int_equal(ring_read_delta(ring, 6, &record, &delta, &gap), 0);
        assert_int_equal(gap, GAP_FIRST);
}

#define test_case(f) cmocka_unit_test_setup_teardown(f, open_folder, close_folder)

int main(void)
{
        const struct CMUnitTest tests[] = {
                test_case(test_append_read_wrap),
                test_case(test_reopen_at_every_length),
                test_case(test_capacity_change),
                test_case(test_used_while_rewritten),
                test_case(test_set_aside),
                test_case(test_empty_file_is_new),
                test_case(test_one_flipped_byte),
                test_case(test_random_damage),
                test_case(test_lost_checkpoints),
                test_case(test_one_process_at_a_time),
                test_case(test_kill),
                test_case(test_full_disk),
                test_case(test_behind),
                test_case(test_behind_on_a_full_disk),
                test_case(test_no_space_for_another_capacity),
                test_case(test_truncated_while_open),
                test_case(test_leftover_of_a_resize),
                test_case(test_delta),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
