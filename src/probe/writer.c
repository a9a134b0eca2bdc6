/* SPDX-License-Identifier: Apache-2.0 */
/* One stream: the child process that writes. Touches the tested path, its socket and shared memory; runs
 * nothing else of the parent's. */

#include "writer.h"

#include "denial.h"

#include "pattern.h"
#include "test-file.h"
#include "tierprobe/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define SPACE_TRIES 10
#define SPACE_PAUSE_US 50000

typedef struct Writer {
        PatternSource pattern;
        const ProbePlan *plan;
        ProbeShared *shared;
        StreamShared *own;
        Sampler *sampler; /* of the row, for the last reading; NULL: the plan names none */
        char *block;
        uint64_t offset; /* in the present file */
        unsigned stream;
        int socket, dir_fd, file_fd;
        int zero_fd; /* /dev/zero; -1: blocks are not read anew */
} Writer;

static void say(const Writer *writer, char message)
{
        if (send(writer->socket, &message, 1, MSG_NOSIGNAL) != 1)
                _exit(EXIT_FAILURE); /* the parent has closed its end */
}

static void await(const Writer *writer, char message)
{
        char got;
        ssize_t n;

        do {
                n = recv(writer->socket, &got, 1, 0);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        _exit(EXIT_FAILURE);
        } while (n != 1 || got != message);
}

/* As dd's buffer: plain pages, touched one after another, with no advice on huge ones, since how contiguous
 * they are decides into how many requests a write is split. Touched even for zeros: otherwise all would be
 * the kernel's one zero page, which stays in the cache as no real data does. */
static int make_block(Writer *writer)
{
        size_t size = writer->plan->block_size;
        void *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (block == MAP_FAILED)
                return -errno;
        memset(block, 0, size);
        writer->block = block;
        if (writer->plan->as_dd && writer->plan->pattern == PATTERN_ZERO) {
                writer->zero_fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
                return writer->zero_fd < 0 ? -errno : 0;
        }
        if (writer->plan->pattern != PATTERN_RANDOM)
                return 0;
        int r = pattern_seed(&writer->pattern);
        if (r >= 0)
                pattern_fill(&writer->pattern, block, size);
        return r;
}

/* xfs gives the space of removed files back in the background: the file of a test that has just ended may
 * still count. */
static ProbeOutcome await_space(Writer *writer, uint64_t needed_bytes, int *ret_error)
{
        const ProbePlan *plan = writer->plan;
        StreamShared *own = writer->own;
        ProbeOutcome outcome;

        for (unsigned i = 0;; i++) {
                outcome = test_file_check_space(writer->dir_fd, needed_bytes, plan->min_free_bytes,
                                                plan->min_free_ratio, &own->free_bytes, &own->needed_bytes,
                                                ret_error);
                if (outcome != PROBE_NO_SPACE || i == SPACE_TRIES || shared_load(&writer->shared->stop))
                        return outcome;
                (void) usleep(SPACE_PAUSE_US);
        }
}

/* Opens the row's files, so that reading it in the end takes no time. */
static int open_row(Writer *writer)
{
        const ProbePlan *plan = writer->plan;
        Snapshot snapshot;

        if (plan->n_rows == 0)
                return 0;
        int r = sampler_new(&writer->sampler, plan->procfs, plan->sysfs, plan->rows, plan->n_rows);
        if (r >= 0)
                sampler_read(writer->sampler, &snapshot);
        return r;
}

static ProbeOutcome prepare(Writer *writer, uint64_t needed_bytes, int *ret_error)
{
        dev_t dev;

        ProbeOutcome outcome = test_file_open(writer->plan->path, &writer->dir_fd, &dev, ret_error);
        if (outcome != PROBE_OK)
                return outcome;
        writer->own->dev = dev;
        outcome = await_space(writer, needed_bytes, ret_error);
        if (outcome != PROBE_OK)
                return outcome;
        int r = make_block(writer);
        if (r >= 0)
                r = open_row(writer);
        if (r < 0) {
                *ret_error = -r;
                return PROBE_INTERNAL;
        }
        bool had_name = false;
        outcome = test_file_create(writer->dir_fd, &writer->file_fd, &had_name, ret_error);
        if (outcome == PROBE_OK && had_name && writer->stream == 0)
                shared_store(&writer->shared->swept, test_file_sweep(writer->dir_fd));
        return outcome;
}

/* Writes one block, over short writes. */
static ProbeOutcome write_block(Writer *writer, int *ret_error)
{
        StreamShared *own = writer->own;
        size_t size = writer->plan->block_size, done = 0;

        while (done < size) {
                ssize_t n = write(writer->file_fd, writer->block + done, size - done);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0) {
                        *ret_error = n < 0 ? errno : ENOSPC;
                        return test_file_judge_write(writer->file_fd, *ret_error,
                                                     shared_load(&own->bytes) == 0, done > 0, size - done);
                }
                done += (size_t) n;
                writer->offset += (uint64_t) n;
                shared_store(&own->bytes, shared_load(&own->bytes) + (uint64_t) n);
        }
        return PROBE_OK;
}

/* The old file first: its space may be needed for the new one. */
static ProbeOutcome change_file(Writer *writer, int *ret_error)
{
        test_file_close(writer->file_fd);
        writer->file_fd = -1;
        writer->offset = 0;
        ProbeOutcome outcome = test_file_create(writer->dir_fd, &writer->file_fd, NULL, ret_error);
        /* It was writable when the test began: a file system that turns read-only gives up on its device. */
        return outcome == PROBE_NOT_WRITABLE && *ret_error == EROFS ? PROBE_WRITE_ERROR : outcome;
}

/* What is in the block next. Reading zeroes over zeroes changes nothing but the time: near a limit a dd of
 * this block size is some percent slower than the device, and what it would say is what is asked for. */
static int renew_block(Writer *writer)
{
        size_t size = writer->plan->block_size, done = 0;

        if (writer->zero_fd < 0) {
                pattern_renew(&writer->pattern, writer->block, size);
                return 0;
        }
        while (done < size) {
                ssize_t n = read(writer->zero_fd, writer->block + done, size - done);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -ENODATA;
                done += (size_t) n;
        }
        return 0;
}

static ProbeOutcome write_all(Writer *writer, int *ret_error)
{
        const ProbePlan *plan = writer->plan;
        StreamShared *own = writer->own;
        uint64_t go_ns = shared_load(&writer->shared->go_ns), now_ns = clock_ns(CLOCK_MONOTONIC);
        uint64_t limit_ns = plan->limit_ns ? plan->limit_ns : UINT64_MAX;

        for (uint64_t n = 0; n < plan->count; n++) {
                if (shared_load(&writer->shared->stop) || now_ns - go_ns >= limit_ns)
                        return PROBE_STOPPED;
                shared_store(&own->call_start_ns, now_ns);
                if (n == 0)
                        shared_store(&own->begin_ns, now_ns);

                /* Changing the file is part of the run but of no write's latency; that it takes long is
                 * seen in call_start_ns. */
                if (plan->wrap_bytes && writer->offset + plan->block_size > plan->wrap_bytes) {
                        ProbeOutcome outcome = change_file(writer, ret_error);
                        if (outcome != PROBE_OK)
                                return outcome;
                        now_ns = clock_ns(CLOCK_MONOTONIC);
                        shared_store(&own->call_start_ns, now_ns);
                }
                if (plan->pattern == PATTERN_RANDOM || writer->zero_fd >= 0) {
                        int r = renew_block(writer);
                        if (r < 0) {
                                *ret_error = -r;
                                return PROBE_INTERNAL;
                        }
                        now_ns = clock_ns(CLOCK_MONOTONIC);
                }

                uint64_t offset = writer->offset;
                ProbeOutcome outcome = write_block(writer, ret_error);
                if (outcome != PROBE_OK)
                        return outcome;

                /* One look at the clock a write: the end of this one is the start of the next. */
                uint64_t end_ns = clock_ns(CLOCK_MONOTONIC);
                histogram_add(&own->latency, end_ns - now_ns);
                slowest_add(&own->slowest, end_ns - now_ns, offset, now_ns - go_ns);
                shared_store(&own->blocks, n + 1);
                now_ns = end_ns;
        }
        return PROBE_OK;
}

/* The window ends with the last write of the last stream, and that stream itself reads the row then: whoever
 * is told of it first, and acts on it, may be late. */
static void take_last_reading(Writer *writer)
{
        ProbeShared *shared = writer->shared;

        shared_store(&writer->own->end_ns, clock_ns(CLOCK_MONOTONIC));
        shared_store(&writer->own->call_start_ns, 0);
        if (__atomic_sub_fetch(&shared->running, 1, __ATOMIC_ACQ_REL) > 0 || !writer->sampler)
                return;
        shared->last.written_bytes = shared_written_bytes(shared, writer->plan->streams);
        sampler_read(writer->sampler, &shared->last.row);
        __atomic_store_n(&shared->last_known, 1, __ATOMIC_RELEASE);
}

void writer_main(int socket, void *userdata)
{
        const WriterJob *job = userdata;
        Writer writer = {
                .plan = job->plan,
                .shared = job->shared,
                .own = &job->shared->streams[job->stream],
                .stream = job->stream,
                .socket = socket,
                .dir_fd = -1,
                .file_fd = -1,
                .zero_fd = -1,
        };
        int error = 0;

        ProbeOutcome outcome = prepare(&writer, job->needed_bytes, &error);
        if (outcome == PROBE_NOT_WRITABLE)
                path_denial_find(writer.plan->path, &writer.own->denial);
        if (outcome == PROBE_OK) {
                say(&writer, MESSAGE_READY);
                await(&writer, MESSAGE_GO);
                outcome = write_all(&writer, &error);
                if (outcome != PROBE_OK && outcome != PROBE_STOPPED) {
                        writer.own->writing_failed = true;
                        writer.own->failed_offset_bytes = writer.offset;
                }
        }
        take_last_reading(&writer);
        shared_set_outcome(writer.shared, writer.stream, outcome, error);
        say(&writer, MESSAGE_DONE);
        await(&writer, MESSAGE_RELEASE);
        if (writer.file_fd >= 0)
                test_file_close(writer.file_fd);
        _exit(EXIT_SUCCESS);
}
