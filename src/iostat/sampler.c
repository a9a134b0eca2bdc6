/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler: reads the rows of one device, and when. May read below the two roots it is given.
 *
 * Attributes of a real sysfs stay open: reading one again costs a pread(), and the descriptor of a device
 * that went away answers ENODEV even when another took its name. Elsewhere (a copied tree) an open descriptor
 * would go on showing a file that was replaced, so there each read opens anew. */

#include "tierprobe/iostat.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/file.h"
#include "tierprobe/units.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>

#define MAX_ROWS 64
#define STAT_SIZE 1024 /* 17 numbers of 20 digits are 357 bytes */

typedef struct Row {
        char name[DEVICE_NAME_SIZE];           /* as in /sys: "cciss!c0d0" */
        char diskstats_name[DEVICE_NAME_SIZE]; /* as in diskstats: "cciss/c0d0" */
        int stat_fd, diskseq_fd;               /* -1: not open; diskseq: or not there */
        bool stays_open;
        uint32_t major, minor;
        bool has_last;
        Snapshot last; /* with several rows only: the series of this one */
} Row;

struct Sampler {
        char *procfs, *sysfs;
        size_t n_rows;
        Row rows[];
};

/* The text of diskstats, read at most once for all the rows of one snapshot that need it. */
typedef struct DiskstatsText {
        bool tried;
        int error;
        char *text;
        size_t size;
} DiskstatsText;

static bool is_row_name(const char *name)
{
        size_t size = strlen(name);

        return size > 0 && size < DEVICE_NAME_SIZE && !strchr(name, '/') && strcmp(name, ".") != 0 &&
               strcmp(name, "..") != 0;
}

int sampler_new(Sampler **ret, const char *procfs, const char *sysfs, const char *const *names,
                size_t n_names)
{
        if (n_names < 1 || n_names > MAX_ROWS)
                return -EINVAL;
        for (size_t i = 0; i < n_names; i++)
                if (!is_row_name(names[i]))
                        return -EINVAL;

        Sampler *sampler = calloc(1, sizeof *sampler + n_names * sizeof(Row));
        if (!sampler)
                return -ENOMEM;
        for (; sampler->n_rows < n_names; sampler->n_rows++) {
                Row *row = &sampler->rows[sampler->n_rows];
                const char *name = names[sampler->n_rows];

                row->stat_fd = row->diskseq_fd = -1;
                memcpy(row->name, name, strlen(name));
                memcpy(row->diskstats_name, name, strlen(name));
                name_to_diskstats(row->diskstats_name);
        }
        sampler->procfs = strdup(procfs);
        sampler->sysfs = strdup(sysfs);
        if (!sampler->procfs || !sampler->sysfs) {
                (void) sampler_free(sampler);
                return -ENOMEM;
        }
        *ret = sampler;
        return 0;
}

static void row_close(Row *row)
{
        close_fdp(&row->stat_fd);
        close_fdp(&row->diskseq_fd);
        row->stat_fd = row->diskseq_fd = -1;
}

Sampler *sampler_free(Sampler *sampler)
{
        if (!sampler)
                return NULL;
        for (size_t i = 0; i < sampler->n_rows; i++)
                row_close(&sampler->rows[i]);
        free(sampler->procfs);
        free(sampler->sysfs);
        free(sampler);
        return NULL;
}

void sampler_freep(Sampler **sampler)
{
        *sampler = sampler_free(*sampler);
}

/* "254:0" */
static int parse_major_minor(char *text, uint32_t *ret_major, uint32_t *ret_minor)
{
        uint64_t major = 0, minor = 0;
        char *colon = strchr(text, ':');

        if (!colon)
                return -EINVAL;
        *colon = '\0';
        if (parse_u64(text, &major) < 0 || parse_u64(colon + 1, &minor) < 0 || major > UINT32_MAX ||
            minor > UINT32_MAX)
                return -EINVAL;
        *ret_major = (uint32_t) major;
        *ret_minor = (uint32_t) minor;
        return 0;
}

static int open_device_dir(const char *sysfs, const char *name)
{
        /* class/block has partitions too, but came later (2.6.25). */
        static const char *const places[] = { "class/block", "block" };

        for (size_t i = 0; i < ELEMENTSOF(places); i++) {
                _cleanup_free_ char *path = path_format("%s/%s/%s", sysfs, places[i], name);
                if (!path)
                        return -ENOMEM;
                int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
                if (fd >= 0)
                        return fd;
                if (errno != ENOENT && errno != ENOTDIR)
                        return -errno;
        }
        return -ENOENT;
}

/* Everything is opened below one directory descriptor, so that all of it is of the same device. */
static int row_open(Row *row, const char *sysfs)
{
        char text[64];
        struct statfs fs;
        const int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;

        _cleanup_close_ int dir_fd = open_device_dir(sysfs, row->name);
        if (dir_fd < 0)
                return dir_fd;
        _cleanup_close_ int stat_fd = openat(dir_fd, "stat", flags);
        if (stat_fd < 0)
                return -errno;
        row->major = row->minor = 0;
        if (read_attribute_at(dir_fd, "dev", text, sizeof text) > 0)
                (void) parse_major_minor(text, &row->major, &row->minor);
        /* A partition lives and dies with its disk, which has the number. */
        row->diskseq_fd = openat(dir_fd, "diskseq", flags);
        if (row->diskseq_fd < 0 && faccessat(dir_fd, "partition", F_OK, 0) == 0)
                row->diskseq_fd = openat(dir_fd, "../diskseq", flags);
        row->stays_open = fstatfs(stat_fd, &fs) == 0 && fs.f_type == SYSFS_MAGIC;
        row->stat_fd = TAKE_FD(stat_fd);
        return 0;
}

/* Reads a file of which SIZE - 1 bytes are certainly enough. */
static ssize_t read_again(int fd, char *buf, size_t size)
{
        ssize_t n;

        do
                n = pread(fd, buf, size, 0);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        return (size_t) n == size ? -EFBIG : n;
}

static int row_read_open(Row *row, Snapshot *ret)
{
        char text[STAT_SIZE], number[32];

        ssize_t n = read_again(row->stat_fd, text, sizeof text);
        if (n < 0)
                return (int) n;
        int r = counters_parse(text, (size_t) n, &ret->counters);
        if (r < 0)
                return r;
        ret->diskseq = 0;
        if (row->diskseq_fd >= 0) {
                n = read_again(row->diskseq_fd, number, sizeof number);
                if (n < 0)
                        return (int) n;
                number[n] = '\0';
                number[strcspn(number, "\n")] = '\0';
                if (parse_u64(number, &ret->diskseq) < 0)
                        return -EINVAL;
        }
        ret->major = row->major;
        ret->minor = row->minor;
        return 0;
}

static bool is_absent(int error)
{
        return error == -ENOENT || error == -ENODEV || error == -ENXIO || error == -ENOTDIR;
}

static int row_read_sysfs(Row *row, const char *sysfs, Snapshot *ret)
{
        int r;

        if (row->stat_fd >= 0) {
                r = row_read_open(row, ret);
                if (!is_absent(r))
                        return r;
                row_close(row); /* that device is gone; its name may have another one */
        }
        r = row_open(row, sysfs);
        if (r >= 0)
                r = row_read_open(row, ret);
        if (r < 0 || !row->stays_open)
                row_close(row);
        return r;
}

static int row_read_diskstats(const Row *row, const char *procfs, DiskstatsText *diskstats, Snapshot *ret)
{
        DiskstatsRow found;

        if (!diskstats->tried) {
                diskstats->tried = true;
                diskstats->error = diskstats_read(procfs, &diskstats->text, &diskstats->size);
        }
        if (diskstats->error < 0)
                return diskstats->error;

        Diskstats rest = { .text = diskstats->text, .size = diskstats->size };
        while (diskstats_next(&rest, &found))
                if (strcmp(found.name, row->diskstats_name) == 0) {
                        ret->major = found.major;
                        ret->minor = found.minor;
                        ret->diskseq = 0;
                        ret->counters = found.counters;
                        return 0;
                }
        return -ENOENT;
}

static void row_read(Sampler *sampler, Row *row, DiskstatsText *diskstats, Snapshot *ret)
{
        uint64_t before_ns = clock_ns(CLOCK_MONOTONIC);
        int r = row_read_sysfs(row, sampler->sysfs, ret);
        if (is_absent(r)) {
                before_ns = clock_ns(CLOCK_MONOTONIC);
                r = row_read_diskstats(row, sampler->procfs, diskstats, ret);
        }
        ret->bracket_ns = clock_ns(CLOCK_MONOTONIC) - before_ns;
        ret->mono_ns = before_ns + ret->bracket_ns / 2;
        ret->gap = r >= 0 ? GAP_NONE : is_absent(r) ? GAP_ABSENT : GAP_UNREADABLE;
}

static void counters_add(Counters *sum, const Counters *c)
{
        sum->r_ios += c->r_ios;
        sum->r_merges += c->r_merges;
        sum->r_sectors += c->r_sectors;
        sum->w_ios += c->w_ios;
        sum->w_merges += c->w_merges;
        sum->w_sectors += c->w_sectors;
        sum->d_ios += c->d_ios;
        sum->d_merges += c->d_merges;
        sum->d_sectors += c->d_sectors;
        sum->f_ios += c->f_ios;
        /* Modulo 2^32 like their parts: a part's wrap is then none of the sum, and a wrap of the sum is as
         * plausible as any other. */
        sum->r_ms += c->r_ms;
        sum->w_ms += c->w_ms;
        sum->d_ms += c->d_ms;
        sum->f_ms += c->f_ms;
        sum->io_ms += c->io_ms;
        sum->queue_ms += c->queue_ms;
        /* One suspect row makes the sum suspect: no other row may hide its sign. */
        if (sum->in_flight >= 0 && c->in_flight >= 0) {
                if (__builtin_add_overflow(sum->in_flight, c->in_flight, &sum->in_flight))
                        sum->in_flight = INT32_MAX;
        } else if (c->in_flight < 0) {
                sum->in_flight = c->in_flight;
        }
        if (c->n_fields < sum->n_fields)
                sum->n_fields = c->n_fields;
}

/* What the row's own series says of this read. Clocks are the sum's business. */
static Gap row_gap(const Row *row, const Snapshot *now)
{
        Delta unused;

        if (!row->has_last)
                return now->gap;
        Gap gap = delta_compute(&row->last, now, &unused);
        return gap == GAP_CLOCK || gap == GAP_SUSPENDED ? GAP_NONE : gap;
}

void sampler_read(Sampler *sampler, Snapshot *ret)
{
        DiskstatsText diskstats = { 0 };
        Snapshot sum = { 0 };
        uint64_t begin_ns = 0, end_ns = 0;

        for (size_t i = 0; i < sampler->n_rows; i++) {
                Row *row = &sampler->rows[i];
                Snapshot now = { 0 };

                row_read(sampler, row, &diskstats, &now);
                now.boot_ns = now.mono_ns; /* of no account within a row's series */
                if (i == 0)
                        begin_ns = now.mono_ns - now.bracket_ns / 2;
                end_ns = now.mono_ns + (now.bracket_ns + 1) / 2;
                if (sampler->n_rows == 1) {
                        sum = now;
                        break;
                }
                Gap gap = row_gap(row, &now);
                row->last = now;
                row->has_last = true;
                if (sum.gap == GAP_NONE)
                        sum.gap = gap;
                if (i == 0) {
                        sum.major = now.major;
                        sum.minor = now.minor;
                        sum.diskseq = now.diskseq;
                        sum.counters = now.counters;
                } else {
                        counters_add(&sum.counters, &now.counters);
                }
        }
        snapshot_stamp(&sum, begin_ns, end_ns);
        free(diskstats.text);
        *ret = sum;
}
