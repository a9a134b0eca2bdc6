/* SPDX-License-Identifier: Apache-2.0 */
/* An nbdkit plugin: a disk that behaves as the control file says, at this moment.
 *
 * Used by the system tests through tests/lab. The control file is a mapped array of 64 bit numbers that a
 * test writes while the disk is in use; the bytes live in a plain file. Knows nbdkit and libc. */
#define NBDKIT_API_VERSION 2
#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <nbdkit-plugin.h>

/* control.py has the same names in the same order; N_FIELDS is compared at start. */
enum {
        /* Set by the test. */
        WRITE_DELAY_US,   /* each write takes so much longer, side by side */
        RATE,             /* bytes/s of all writes together; 0: as fast as it goes */
        CLIFF_AFTER,      /* after so many bytes since the mark ... */
        CLIFF_RATE,       /* ... only so many bytes/s; 0: no cliff */
        STALL_AFTER,      /* at so many bytes since the mark ... */
        STALL_US,         /* ... nothing completes for so long, once; 0: no stall */
        HANG,             /* while not 0, nothing completes */
        HANG_AFTER,       /* HANG sets itself at so many bytes since the mark; 0: it does not */
        ERROR,            /* errno of writes, 0: none */
        ERROR_AFTER,      /* ... but only beyond so many bytes since the mark */
        SLOW_PERIOD_US,   /* of each such period since the mark ... */
        SLOW_PART_US,     /* ... the last part ... */
        SLOW_RATE,        /* ... is limited to so many bytes/s */
        FIRST_WRITE_RATE, /* bytes/s where nothing was written before; 0: no difference */
        VOLATILE_CACHE,   /* what was not flushed is lost when the power is cut ... */
        KEEP_PERCENT,     /* ... but for so many of its blocks of 4 KiB, taken at random */
        MARK_US,          /* CLOCK_MONOTONIC of the mark */
        POWER,            /* 0: there is; 1: cut, nothing works; 2: back, with what the disk has kept */
        LOST_BLOCKS,      /* by the last cut */
        /* Told by the plugin; the test sets them to 0 at the mark. */
        WRITTEN, /* bytes, by completed writes */
        WRITES,
        STALL_END_US, /* when the stall under way ends; 0: not yet begun */
        WAITING,      /* requests that a hang holds */
        N_FIELDS,
};

#define CHUNK 65536
#define BLOCK 4096

static char *data_file, *control_file;
static uint64_t fields_expected;
static int data_fd = -1;
static uint64_t data_size;
static volatile uint64_t *control;
static unsigned char *touched; /* one byte a chunk */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned char **stable; /* of each block that was written and not flushed: what it was before */
static uint64_t free_at_us;    /* when the rate limit lets the next write begin */

static uint64_t now_us(void)
{
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t) ts.tv_sec * 1000000 + (uint64_t) ts.tv_nsec / 1000;
}

static void sleep_until_us(uint64_t when)
{
        struct timespec ts = { .tv_sec = (time_t) (when / 1000000),
                               .tv_nsec = (long) (when % 1000000) * 1000 };

        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
                ;
}

static int lab_config(const char *key, const char *value)
{
        if (strcmp(key, "file") == 0)
                data_file = nbdkit_realpath(value);
        else if (strcmp(key, "control") == 0)
                control_file = nbdkit_realpath(value);
        else if (strcmp(key, "fields") == 0)
                return nbdkit_parse_uint64_t("fields", value, &fields_expected);
        else {
                nbdkit_error("unknown parameter %s", key);
                return -1;
        }
        return 0;
}

static int lab_get_ready(void)
{
        struct stat st;
        int fd;

        if (!data_file || !control_file || fields_expected != N_FIELDS) {
                nbdkit_error("file=, control= and fields=%d are needed", (int) N_FIELDS);
                return -1;
        }
        data_fd = open(data_file, O_RDWR | O_CLOEXEC);
        fd = open(control_file, O_RDWR | O_CLOEXEC);
        if (data_fd < 0 || fd < 0 || fstat(data_fd, &st) < 0) {
                nbdkit_error("cannot open the data or control file: %m");
                return -1;
        }
        data_size = (uint64_t) st.st_size;
        control = mmap(NULL, N_FIELDS * sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
        touched = calloc(1, data_size / CHUNK + 1);
        stable = calloc(data_size / BLOCK + 1, sizeof *stable);
        if (control == MAP_FAILED || !touched || !stable) {
                nbdkit_error("cannot map the control file: %m");
                return -1;
        }
        return 0;
}

static void *lab_open(int readonly)
{
        (void) readonly;
        return NBDKIT_HANDLE_NOT_NEEDED;
}

static int64_t lab_get_size(void *handle)
{
        (void) handle;
        return (int64_t) data_size;
}

static int lab_can_multi_conn(void *handle)
{
        (void) handle;
        return 1;
}

static void wait_while_hung(void)
{
        if (!control[HANG])
                return;
        __atomic_add_fetch(&control[WAITING], 1, __ATOMIC_RELAXED);
        while (control[HANG])
                sleep_until_us(now_us() + 2000);
        __atomic_sub_fetch(&control[WAITING], 1, __ATOMIC_RELAXED);
}

static uint64_t slower(uint64_t a, uint64_t b)
{
        if (!a || !b)
                return a ? a : b;
        return a < b ? a : b;
}

/* Called with the lock held: what holds for this write, and when it may be over at the earliest. */
static uint64_t plan_write(uint64_t offset, uint32_t count, uint64_t now)
{
        uint64_t before = control[WRITTEN], after = before + count, rate = control[RATE], end = now;
        bool first = false;

        control[WRITTEN] = after;
        control[WRITES]++;

        for (uint64_t i = offset / CHUNK; i <= (offset + count - 1) / CHUNK; i++) {
                first = first || !touched[i];
                touched[i] = 1;
        }
        if (first)
                rate = slower(rate, control[FIRST_WRITE_RATE]);
        if (control[CLIFF_RATE] && after > control[CLIFF_AFTER])
                rate = slower(rate, control[CLIFF_RATE]);
        if (control[SLOW_PERIOD_US] && (now - control[MARK_US]) % control[SLOW_PERIOD_US] >=
                                               control[SLOW_PERIOD_US] - control[SLOW_PART_US])
                rate = slower(rate, control[SLOW_RATE]);
        if (rate) {
                if (free_at_us < now)
                        free_at_us = now;
                free_at_us += (uint64_t) count * 1000000 / rate;
                end = free_at_us;
        }

        if (control[HANG_AFTER] && after > control[HANG_AFTER]) {
                control[HANG] = 1;
                control[HANG_AFTER] = 0;
        }
        if (control[STALL_US] && !control[STALL_END_US] && after > control[STALL_AFTER])
                control[STALL_END_US] = now + control[STALL_US];
        if (end < control[STALL_END_US])
                end = control[STALL_END_US];
        return end;
}

/* ---- power ---- */

static void remember_blocks(uint64_t offset, uint32_t count)
{
        for (uint64_t i = offset / BLOCK; i <= (offset + count - 1) / BLOCK; i++) {
                unsigned char *block = stable[i] ? NULL : malloc(BLOCK);

                if (block && pread(data_fd, block, BLOCK, (off_t) (i * BLOCK)) > 0)
                        stable[i] = block;
                else
                        free(block);
        }
}

static void forget_blocks(void)
{
        for (uint64_t i = 0; i <= data_size / BLOCK; i++) {
                free(stable[i]);
                stable[i] = NULL;
        }
}

static void lose_blocks(void)
{
        control[LOST_BLOCKS] = 0;
        for (uint64_t i = 0; i <= data_size / BLOCK; i++) {
                if (!stable[i] || (uint64_t) random() % 100 < control[KEEP_PERCENT])
                        continue;
                if (pwrite(data_fd, stable[i], BLOCK, (off_t) (i * BLOCK)) == BLOCK)
                        control[LOST_BLOCKS]++;
        }
        forget_blocks();
}

/* With the cache's lock held. Whether nothing works. */
static bool power_is_cut(void)
{
        if (control[POWER] == 2) {
                lose_blocks();
                control[POWER] = 0;
        }
        if (control[POWER] == 0)
                return false;
        nbdkit_set_error(EIO);
        return true;
}

static int write_all(const void *buffer, uint32_t count, uint64_t offset)
{
        while (count > 0) {
                ssize_t n = pwrite(data_fd, buffer, count, (off_t) offset);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0) {
                        nbdkit_error("pwrite: %m");
                        return -1;
                }
                buffer = (const char *) buffer + n;
                offset += (uint64_t) n;
                count -= (uint32_t) n;
        }
        return 0;
}

static int write_to_cache(const void *buffer, uint32_t count, uint64_t offset)
{
        int r = -1;

        pthread_mutex_lock(&cache_lock);
        if (!power_is_cut()) {
                remember_blocks(offset, count);
                r = write_all(buffer, count, offset);
        }
        pthread_mutex_unlock(&cache_lock);
        return r;
}

/* ---- requests ---- */

static int lab_pwrite(void *handle, const void *buffer, uint32_t count, uint64_t offset, uint32_t flags)
{
        uint64_t start = now_us(), end, written;

        (void) handle;
        (void) flags;

        pthread_mutex_lock(&lock);
        end = plan_write(offset, count, start);
        written = control[WRITTEN];
        pthread_mutex_unlock(&lock);

        if (control[WRITE_DELAY_US] && end < start + control[WRITE_DELAY_US])
                end = start + control[WRITE_DELAY_US];
        if (end > start)
                sleep_until_us(end);
        wait_while_hung();

        if (control[ERROR] && written > control[ERROR_AFTER]) {
                nbdkit_set_error((int) control[ERROR]);
                return -1;
        }
        return control[VOLATILE_CACHE] ? write_to_cache(buffer, count, offset)
                                       : write_all(buffer, count, offset);
}

/* For what only reads, or makes all stable. */
static bool refuses(bool flush)
{
        bool cut;

        if (!control[VOLATILE_CACHE])
                return false;
        pthread_mutex_lock(&cache_lock);
        cut = power_is_cut();
        if (!cut && flush)
                forget_blocks();
        pthread_mutex_unlock(&cache_lock);
        return cut;
}

static int lab_pread(void *handle, void *buffer, uint32_t count, uint64_t offset, uint32_t flags)
{
        (void) handle;
        (void) flags;

        wait_while_hung();
        if (refuses(false))
                return -1;
        while (count > 0) {
                ssize_t n = pread(data_fd, buffer, count, (off_t) offset);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0) {
                        nbdkit_error("pread: %m");
                        return -1;
                }
                buffer = (char *) buffer + n;
                offset += (uint64_t) n;
                count -= (uint32_t) n;
        }
        return 0;
}

static int lab_flush(void *handle, uint32_t flags)
{
        (void) handle;
        (void) flags;

        wait_while_hung();
        return refuses(true) ? -1 : 0;
}

static struct nbdkit_plugin plugin = {
        .name = "lab",
        .config = lab_config,
        .get_ready = lab_get_ready,
        .open = lab_open,
        .get_size = lab_get_size,
        .can_multi_conn = lab_can_multi_conn,
        .pread = lab_pread,
        .pwrite = lab_pwrite,
        .flush = lab_flush,
};

NBDKIT_REGISTER_PLUGIN(plugin)
