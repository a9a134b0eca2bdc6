/* SPDX-License-Identifier: Apache-2.0 */
/* The ring's file as such: its lock, its bytes. */

#include "ring-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int ring_lock_file(int fd)
{
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

        if (fcntl(fd, F_SETLK, &lock) < 0)
                return errno == EACCES || errno == EAGAIN ? -EBUSY : -errno;
        return 0;
}

ssize_t ring_pread(int fd, void *data, size_t size, off_t offset)
{
        size_t got = 0;

        while (got < size) {
                ssize_t n = pread(fd, (char *) data + got, size - got, offset + (off_t) got);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                got += (size_t) n;
        }
        return (ssize_t) got;
}

int ring_pwrite(int fd, const void *data, size_t size, off_t offset)
{
        while (size > 0) {
                ssize_t n = pwrite(fd, data, size, offset);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                data = (const char *) data + n;
                size -= (size_t) n;
                offset += n;
        }
        return 0;
}
