/* SPDX-License-Identifier: Apache-2.0 */
/* Small files: bounded reads, atomic writes, and out of the way with what is damaged. */

#include "tierprobe/file.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Waits for something to read, or the end. */
static int wait_for_input(int fd, uint64_t timeout_ns)
{
        struct pollfd poll = { .fd = fd, .events = POLLIN };
        struct timespec timeout = { .tv_sec = (time_t) (timeout_ns / NS_PER_S),
                                    .tv_nsec = (long) (timeout_ns % NS_PER_S) };

        int r = ppoll(&poll, 1, &timeout, NULL);
        return r < 0 ? -errno : r == 0 ? -ETIMEDOUT : 0;
}

/* Reads until SIZE bytes are there or the end; waits for each piece when TIMEOUT_NS is not 0. */
static ssize_t read_full(int fd, char *buf, size_t size, uint64_t timeout_ns)
{
        size_t got = 0;

        while (got < size) {
                int r = timeout_ns ? wait_for_input(fd, timeout_ns) : 0;
                ssize_t n = r < 0 ? 0 : read(fd, buf + got, size - got);
                if (n < 0)
                        r = -errno;
                if (r == -EINTR)
                        continue;
                if (r < 0)
                        return r;
                if (n == 0)
                        break;
                got += (size_t) n;
        }
        return (ssize_t) got;
}

static int read_all(int fd, size_t max_bytes, uint64_t timeout_ns, char **ret_text, size_t *ret_size)
{
        _cleanup_free_ char *text = NULL;
        size_t size = 0, allocated = 0;

        /* Files of /proc and /sys say size 0: read until the end, growing, whatever stat() says. */
        for (;;) {
                if (allocated - size < 2) {
                        size_t wanted = allocated ? allocated * 2 : 4096;
                        if (wanted > max_bytes + 2)
                                wanted = max_bytes + 2;
                        if (wanted <= allocated)
                                return -EFBIG;
                        char *grown = realloc(text, wanted);
                        if (!grown)
                                return -ENOMEM;
                        text = grown;
                        allocated = wanted;
                }
                ssize_t n = read_full(fd, text + size, allocated - size - 1, timeout_ns);
                if (n < 0)
                        return (int) n;
                size += (size_t) n;
                if (size > max_bytes)
                        return -EFBIG;
                if (size < allocated - 1)
                        break;
        }
        text[size] = '\0';
        *ret_text = TAKE_PTR(text);
        if (ret_size)
                *ret_size = size;
        return 0;
}

#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)

int read_file_at(int dir_fd, const char *path, size_t max_bytes, char **ret_text, size_t *ret_size)
{
        _cleanup_close_ int fd = openat(dir_fd, path, OPEN_FLAGS);

        return fd < 0 ? -errno : read_all(fd, max_bytes, 0, ret_text, ret_size);
}

int read_file_waiting(const char *path, size_t max_bytes, uint64_t timeout_ns, char **ret_text,
                      size_t *ret_size)
{
        _cleanup_close_ int fd = open(path, OPEN_FLAGS);

        return fd < 0 ? -errno : read_all(fd, max_bytes, timeout_ns, ret_text, ret_size);
}

ssize_t read_attribute_at(int dir_fd, const char *path, char *buf, size_t size)
{
        char line[4096];

        _cleanup_close_ int fd = openat(dir_fd, path, OPEN_FLAGS);
        if (fd < 0)
                return -errno;
        ssize_t n = read_full(fd, line, sizeof line, 0);
        if (n < 0)
                return n;
        while (n > 0 &&
               (line[n - 1] == '\n' || line[n - 1] == ' ' || line[n - 1] == '\t' || line[n - 1] == '\0'))
                n--;
        if ((size_t) n >= size || (size_t) n == sizeof line)
                return -ENOBUFS;
        memcpy(buf, line, (size_t) n);
        buf[n] = '\0';
        return n;
}

static int write_full(int fd, const char *data, size_t size)
{
        while (size > 0) {
                ssize_t n = write(fd, data, size);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                data += n;
                size -= (size_t) n;
        }
        return 0;
}

static int replace_file(int dir_fd, const char *path, const void *data, size_t size, mode_t mode, bool synced)
{
        _cleanup_free_ char *temporary = path_format("%s.new", path);
        if (!temporary)
                return -ENOMEM;

        /* The name is fixed, so that what a crash left behind is overwritten, not collected. */
        _cleanup_close_ int fd =
                openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
        if (fd < 0)
                return -errno;
        int r = write_full(fd, data, size);
        if (r >= 0 && synced && fsync(fd) < 0)
                r = -errno;
        if (r >= 0 && renameat(dir_fd, temporary, dir_fd, path) < 0)
                r = -errno;
        if (r < 0)
                (void) unlinkat(dir_fd, temporary, 0);
        return r;
}

int write_file_atomic_at(int dir_fd, const char *path, const void *data, size_t size, mode_t mode)
{
        return replace_file(dir_fd, path, data, size, mode, false);
}

int write_file_synced_at(int dir_fd, const char *path, const void *data, size_t size, mode_t mode)
{
        int r = replace_file(dir_fd, path, data, size, mode, true);
        if (r < 0)
                return r;
        /* The name is on the disk when the directory is. */
        _cleanup_close_ int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 || fsync(fd) < 0)
                return -errno;
        return 0;
}

/* ---- setting aside ---- */

#define ASIDE ".damaged"
#define MAX_ASIDE 100000

static int rename_to_new(int dir_fd, const char *from, const char *to)
{
        if (renameat2(dir_fd, from, dir_fd, to, RENAME_NOREPLACE) == 0)
                return 0;
        /* Some file systems lack RENAME_NOREPLACE; the directory has no other writer. */
        if (errno != EINVAL && errno != ENOSYS)
                return -errno;
        if (faccessat(dir_fd, to, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
                return -EEXIST;
        return renameat(dir_fd, from, dir_fd, to) < 0 ? -errno : 0;
}

int set_aside_at(int dir_fd, const char *name)
{
        for (unsigned i = 0; i < MAX_ASIDE; i++) {
                _cleanup_free_ char *aside =
                        i == 0 ? path_format("%s" ASIDE, name) : path_format("%s" ASIDE ".%u", name, i);

                if (!aside)
                        return -ENOMEM;
                int r = rename_to_new(dir_fd, name, aside);
                if (r != -EEXIST)
                        return r;
        }
        return -EEXIST;
}

static bool is_set_aside(const char *name)
{
        const char *suffix = strstr(name, ASIDE);

        if (!suffix)
                return false;
        suffix += strlen(ASIDE);
        return !*suffix || (*suffix == '.' && suffix[1] && !suffix[1 + strspn(suffix + 1, "0123456789")]);
}

ssize_t count_set_aside_at(int dir_fd)
{
        const struct dirent *entry = NULL;
        ssize_t n = 0;

        _cleanup_close_ int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        _cleanup_closedir_ DIR *dir = fdopendir(fd);
        if (!dir)
                return -errno;
        (void) TAKE_FD(fd);
        while ((entry = readdir(dir))) /* NOLINT(concurrency-mt-unsafe): one thread */
                n += is_set_aside(entry->d_name);
        return n;
}

char *path_format(const char *format, ...)
{
        char *path = NULL;
        va_list ap;

        va_start(ap, format);
        if (vasprintf(&path, format, ap) < 0)
                path = NULL;
        va_end(ap);
        return path;
}

int path_absolute(const char *path, char **ret)
{
        char folder[PATH_MAX];

        if (path[0] == '/') {
                *ret = strdup(path);
                return *ret ? 0 : -ENOMEM;
        }
        if (!getcwd(folder, sizeof folder))
                return -errno;
        for (;;) {
                path += strspn(path, "/");
                size_t length = strcspn(path, "/");

                if (length == 2 && strncmp(path, "..", 2) == 0)
                        *strrchr(folder, '/') = '\0';
                else if (length != 1 || *path != '.')
                        break;
                if (!strchr(folder, '/'))
                        strcpy(folder, "/"); /* NOLINT(clang-analyzer-security.insecureAPI.strcpy): fits */
                path += length;
        }
        return asprintf(ret, "%s/%s", folder, path) < 0 ? -ENOMEM : 0;
}
