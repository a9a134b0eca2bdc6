/* SPDX-License-Identifier: Apache-2.0 */
/* The tested directory and the files made in it. Runs in children only. */

#include "test-file.h"

#include "tierprobe/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

/* What dd's oflag=direct,dsync sets. */
#define WRITE_FLAGS (O_WRONLY | O_DIRECT | O_DSYNC | O_CLOEXEC)
#define FILE_MODE 0600

#define NAME_PREFIX ".tierprobe-"
#define NAME_DIGITS 32
#define SWEEP_MAX_NAMES 100000 /* a cache may hold millions, and reading them takes long */

/* For what fails while the directory is opened or a file is made. */
static ProbeOutcome judge_open(int error, int *ret_error)
{
        *ret_error = error;
        switch (error) {
        case ENOENT:
        case ENOTDIR:
        case ELOOP:
        case ENAMETOOLONG:
                return PROBE_PATH_MISSING;
        case EACCES:
        case EPERM:
        case EROFS:
                return PROBE_NOT_WRITABLE;
        case ENOSPC:
        case EDQUOT:
                return PROBE_NO_SPACE;
        case ENOMEM:
        case EMFILE:
        case ENFILE:
                return PROBE_INTERNAL;
        default:
                return PROBE_WRITE_ERROR;
        }
}

/* A final "/" or "/." would make the kernel follow a link before it. */
static int strip_tail(const char *path, char ret[static PATH_MAX])
{
        size_t size = strlen(path);

        while (size > 1 && (path[size - 1] == '/' || (path[size - 1] == '.' && path[size - 2] == '/')))
                size--;
        if (size == 0)
                return -ENOENT;
        if (size >= PATH_MAX)
                return -ENAMETOOLONG;
        memcpy(ret, path, size);
        ret[size] = '\0';
        return 0;
}

ProbeOutcome test_file_open(const char *path, int *ret_dir_fd, dev_t *ret_dev, int *ret_error)
{
        char stripped[PATH_MAX];
        struct stat st;

        int r = strip_tail(path, stripped);
        if (r < 0)
                return judge_open(-r, ret_error);

        /* O_DIRECTORY, so that an automount is triggered, which O_PATH alone does not do. */
        _cleanup_close_ int fd = open(stripped, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0) {
                int error = errno;

                /* ENOTDIR is said of files and of links. */
                if (error == ENOTDIR && lstat(stripped, &st) == 0 && S_ISLNK(st.st_mode)) {
                        *ret_error = ELOOP;
                        return PROBE_SYMLINK;
                }
                return judge_open(error, ret_error);
        }
        if (fstat(fd, &st) < 0)
                return judge_open(errno, ret_error);
        *ret_dev = st.st_dev;
        int work_fd = test_file_open_work_dir(fd, st.st_dev);
        *ret_dir_fd = work_fd >= 0 ? work_fd : TAKE_FD(fd);
        return PROBE_OK;
}

int test_file_open_work_dir(int dir_fd, dev_t dev)
{
        _cleanup_close_ int fd =
                openat(dir_fd, PROBE_WORK_DIR, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        struct stat st;

        return fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() && st.st_dev == dev ? TAKE_FD(fd)
                                                                                            : -1;
}

static uint64_t multiply_saturated(uint64_t a, uint64_t b)
{
        uint64_t product;

        return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

ProbeOutcome test_file_check_space(int dir_fd, uint64_t needed_bytes, uint64_t min_free_bytes,
                                   double min_free_ratio, uint64_t *ret_free_bytes,
                                   uint64_t *ret_needed_bytes, int *ret_error)
{
        struct statvfs fs;

        if (fstatvfs(dir_fd, &fs) < 0)
                return judge_open(errno, ret_error);

        uint64_t unit = fs.f_frsize ? fs.f_frsize : fs.f_bsize;
        uint64_t reserve = min_free_bytes;
        double part = ceil((double) fs.f_blocks * (double) unit * min_free_ratio);
        if (part >= 0x1p64)
                reserve = UINT64_MAX;
        else if (part > (double) reserve)
                reserve = (uint64_t) part;

        uint64_t free_bytes = multiply_saturated(fs.f_bavail, unit);
        uint64_t wanted;
        if (__builtin_add_overflow(needed_bytes, reserve, &wanted))
                wanted = UINT64_MAX;

        *ret_needed_bytes = wanted;
        *ret_free_bytes = fs.f_blocks == 0 ? 0 : free_bytes;
        if (fs.f_blocks == 0 || free_bytes >= wanted)
                return PROBE_OK;
        *ret_error = ENOSPC;
        return PROBE_NO_SPACE;
}

/* Signals that end a process wait while a file has a name; that of the parent's death becomes one that can.
 */
typedef struct HeldSignals {
        sigset_t mask;
        int death_signal;
} HeldSignals;

static void hold_signals(HeldSignals *held)
{
        sigset_t all;

        (void) sigfillset(&all);
        (void) sigprocmask(SIG_BLOCK, &all, &held->mask);
        held->death_signal = 0;
        (void) prctl(PR_GET_PDEATHSIG, &held->death_signal);
        if (held->death_signal != 0)
                (void) prctl(PR_SET_PDEATHSIG, SIGTERM);
}

static void release_signals(const HeldSignals *held)
{
        if (held->death_signal != 0)
                (void) prctl(PR_SET_PDEATHSIG, held->death_signal);
        (void) sigprocmask(SIG_SETMASK, &held->mask, NULL);
}

/* For file systems that cannot make a file without a name: it has one for a moment. */
static int create_and_unlink(int dir_fd, int flags)
{
        char name[48] = NAME_PREFIX;
        unsigned char random[NAME_DIGITS / 2];
        HeldSignals held;

        if (getrandom(random, sizeof random, 0) != (ssize_t) sizeof random)
                return -EAGAIN;
        for (size_t i = 0; i < sizeof random; i++)
                (void) snprintf(name + strlen(name), 3, "%02x", random[i]);

        hold_signals(&held);
        int fd = openat(dir_fd, name, flags | O_CREAT | O_EXCL | O_NOFOLLOW, FILE_MODE);
        int error = errno;
        /* Whoever sweeps meanwhile lets it be; if he was quicker, the name is gone as it is to be. */
        if (fd >= 0)
                (void) flock(fd, LOCK_EX | LOCK_NB);
        /* Refused flags may leave the created file behind. With 128 random bits no other can be meant. One
         * that keeps its name (a directory may take files and give none back) must not be filled. */
        if ((error != EEXIST || fd >= 0) && unlinkat(dir_fd, name, 0) < 0 && fd >= 0 && errno != ENOENT) {
                error = errno;
                close_fdp(&fd);
        }
        release_signals(&held);
        return fd < 0 ? -error : fd;
}

static int create_nameless(int dir_fd, int flags, bool *ret_had_name)
{
        int fd = openat(dir_fd, ".", flags | O_TMPFILE, FILE_MODE);

        *ret_had_name = false;
        if (fd >= 0)
                return fd;
        /* The first by file systems, the others by kernels that cannot. */
        if (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT) {
                *ret_had_name = true;
                return create_and_unlink(dir_fd, flags);
        }
        return -errno;
}

/* Held locked: its maker is at work on it. */
static bool is_leftover(int dir_fd, const char *name)
{
        struct stat st;

        if (strncmp(name, NAME_PREFIX, strlen(NAME_PREFIX)) != 0 ||
            strspn(name + strlen(NAME_PREFIX), "0123456789abcdef") != NAME_DIGITS ||
            name[strlen(NAME_PREFIX) + NAME_DIGITS] != '\0')
                return false;
        _cleanup_close_ int fd =
                openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
               st.st_nlink == 1 && st.st_size == 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
}

unsigned test_file_sweep(int dir_fd)
{
        int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        _cleanup_closedir_ DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
        const struct dirent *entry;
        unsigned removed = 0;

        if (!dir && fd >= 0)
                (void) close(fd);
        for (unsigned n = 0; dir && n < SWEEP_MAX_NAMES && (entry = readdir(dir)); n++)
                if (is_leftover(dir_fd, entry->d_name) && unlinkat(dir_fd, entry->d_name, 0) == 0)
                        removed++;
        return removed;
}

ProbeOutcome test_file_create(int dir_fd, int *ret_fd, bool *ret_had_name, int *ret_error)
{
        bool had_name = false;
        int fd = create_nameless(dir_fd, WRITE_FLAGS, &had_name);
        if (fd == -EINVAL) {
                /* O_DIRECT is refused if all is well without it. */
                _cleanup_close_ int other = create_nameless(dir_fd, WRITE_FLAGS & ~O_DIRECT, &had_name);
                if (other >= 0) {
                        *ret_error = EINVAL;
                        return PROBE_DIRECT_REFUSED;
                }
        }
        if (fd < 0)
                return judge_open(-fd, ret_error);
        *ret_fd = fd;
        if (ret_had_name)
                *ret_had_name = had_name;
        return PROBE_OK;
}

void test_file_close(int fd)
{
        struct stat st;

        if (fstat(fd, &st) == 0 && st.st_nlink > 0)
                (void) ftruncate(fd, 0);
        (void) close(fd);
}

ProbeOutcome test_file_judge_write(int fd, int error, bool first_write, bool short_before, size_t rest_bytes)
{
        struct statvfs fs;

        switch (error) {
        case ENOSPC:
        case EDQUOT:
        case EFBIG: /* a limit of the file system or process, no fault of the device */
                return PROBE_NO_SPACE;
        case ENOMEM:
                return PROBE_INTERNAL;
        case EINVAL:
                /* Some open with O_DIRECT and refuse the write. */
                if (first_write && !short_before)
                        return PROBE_DIRECT_REFUSED;
                /* After a part was written, the rest may not be aligned; most often the disk was full. */
                if (short_before && fstatvfs(fd, &fs) == 0 &&
                    multiply_saturated(fs.f_bavail, fs.f_frsize) < rest_bytes)
                        return PROBE_NO_SPACE;
                return PROBE_WRITE_ERROR;
        default:
                return PROBE_WRITE_ERROR;
        }
}
