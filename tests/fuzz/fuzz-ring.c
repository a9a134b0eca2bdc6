/* SPDX-License-Identifier: Apache-2.0 */
/* Opens any bytes as a ring's file, reads all of it, appends to it and opens it again. The first byte says
 * which checksums are made right before: without that the fuzzer would hardly get past them. Seeds: rings of
 * tests/data/state with a byte 7 in front. */

#include "tierprobe/cleanup.h"
#include "tierprobe/history.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NAME "fuzz.ring"
#define MAX_SIZE 65536

enum { MEND_HEADER = 1, MEND_FIELDS = 2, MEND_RECORDS = 4 };

static char folder[] = "/dev/shm/fuzz-ring-XXXXXX";
static int dir_fd = -1;

static void remove_all(void)
{
        (void) unlinkat(dir_fd, NAME, 0);
        (void) unlinkat(dir_fd, NAME ".damaged", 0);
        (void) unlinkat(dir_fd, NAME ".new", 0);
}

static void remove_folder(void)
{
        remove_all();
        (void) rmdir(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
        (void) argc;
        (void) argv;
        if (!mkdtemp(folder))
                err(1, "%s", folder);
        dir_fd = open(folder, O_DIRECTORY | O_CLOEXEC);
        if (dir_fd < 0 || atexit(remove_folder) != 0)
                err(1, "%s", folder);
        return 0;
}

static uint64_t fnv(const void *data, size_t size)
{
        const unsigned char *p = data;
        uint64_t hash = UINT64_C(0xcbf29ce484222325);

        for (size_t i = 0; i < size; i++)
                hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
        return hash;
}

static void put_checksum(char *to, const void *data, size_t size)
{
        uint64_t checksum = fnv(data, size);

        memcpy(to, &checksum, sizeof checksum);
}

/* Makes the checksums right that FLAGS asks for, as far as they lie within the file. */
static void mend(char *file, size_t size, uint8_t flags)
{
        uint32_t record_bytes = 0, fields[2] = { 0 };

        if ((flags & MEND_HEADER) && size >= 40)
                put_checksum(file + 32, file, 32);
        if ((flags & MEND_FIELDS) && size >= 4096) {
                char all[4096];

                memcpy(fields, file + 1544, sizeof fields);
                size_t n = (size_t) fields[0] * fields[1];
                if (n <= 4096 - 1560) {
                        memcpy(all, fields, 8);
                        memcpy(all + 8, file + 1560, n);
                        put_checksum(file + 1552, all, 8 + n);
                }
        }
        if (size < 4096 || !(flags & MEND_RECORDS))
                return;
        memcpy(&record_bytes, file + 12, sizeof record_bytes);
        for (size_t at = 4096; record_bytes >= 16 && at + record_bytes <= size; at += record_bytes)
                put_checksum(file + at, file + at + 8, record_bytes - 8);
}

static void write_file(const char *file, size_t size)
{
        _cleanup_close_ int fd = openat(dir_fd, NAME, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        if (fd < 0 || write(fd, file, size) != (ssize_t) size)
                err(1, "write");
}

/* Every record is there whole, or it is said not to be. */
static void read_all(const Ring *ring)
{
        uint64_t next = ring_next_seq(ring), first = ring_first_seq(ring);

        if (first > next || next - first > ring_capacity(ring))
                abort();
        for (uint64_t seq = next - first > 4096 ? next - 4096 : first; seq < next; seq++) {
                RingRecord record;
                Delta delta;
                Gap gap = GAP_NONE;
                int r = ring_read_delta(ring, seq, &record, &delta, &gap);

                if (r != 0 && r != -ENODATA)
                        abort();
                if (r == 0 && (record.seq != seq || record.snapshot.gap >= _GAP_MAX || gap >= _GAP_MAX ||
                               !memchr(record.device, '\0', sizeof record.device) ||
                               !memchr(record.run_id, '\0', sizeof record.run_id)))
                        abort();
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static char file[MAX_SIZE];
        RingRecord record = { .device = "sda", .snapshot = { .mono_ns = 1, .boot_ns = 1 } };

        if (size < 1 || size > sizeof file)
                return -1;
        remove_all();
        memcpy(file, data + 1, size - 1);
        mend(file, size - 1, data[0]);
        write_file(file, size - 1);
        for (int again = 0; again < 2; again++) {
                _cleanup_(ring_freep) Ring *ring = NULL;
                bool damaged = false;

                /* The capacity of the seeds: nothing is rewritten for its sake. */
                if (ring_open(&ring, dir_fd, NAME, 120, &damaged) < 0 || (again && damaged))
                        abort();
                read_all(ring);
                uint64_t next = ring_next_seq(ring);
                if (ring_append(ring, &record) < 0 || ring_next_seq(ring) != next + 1)
                        continue; /* beyond the largest file there may be */
                read_all(ring);
        }
        return 0;
}
