/* SPDX-License-Identifier: Apache-2.0 */
/* Files with secrets. */

#include "secret.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

void secret_free(char *text, size_t size)
{
        if (text)
                explicit_bzero(text, size);
        free(text);
}

/* What is wrong with a file of these attributes, NULL: nothing. */
static const char *fault_of(const struct stat *st)
{
        if (!S_ISREG(st->st_mode))
                return "it is not a regular file";
        if (st->st_uid != 0 && st->st_uid != geteuid())
                return "it belongs to another user; make it root's, or of the user that tierprobed runs as";
        if (st->st_mode & (S_IROTH | S_IWOTH | S_IXOTH))
                return "others may read or write it; chmod o= it";
        if (st->st_mode & S_IWGRP)
                return "its group may write it; chmod g-w it";
        if (st->st_size > (off_t) SECRET_MAX_BYTES)
                return "it is larger than 1 MiB";
        return NULL;
}

int secret_read(const char *path, char **ret, size_t *ret_size, char **ret_error)
{
        size_t size = 0;
        struct stat st;
        int r = 0;

        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (fd < 0 || fstat(fd, &st) < 0) {
                r = -errno;
                *ret_error = path_format("%s: cannot be read: %s", path, strerror(-r));
                return r;
        }
        const char *fault = fault_of(&st);
        if (fault) {
                *ret_error = path_format("%s: %s", path, fault);
                return -EPERM;
        }
        /* One more byte than it has, so that one that grows meanwhile is noticed. */
        size = (size_t) st.st_size;
        char *text = malloc(size + 2);
        if (!text)
                return -ENOMEM;
        ssize_t n = pread(fd, text, size + 1, 0);
        if (n != (ssize_t) size) {
                r = n < 0 ? -errno : -EAGAIN;
                *ret_error = path_format("%s: cannot be read: %s", path,
                                         n < 0 ? strerror(-r) : "it was being changed; try again");
                secret_free(text, size + 2);
                return r;
        }
        text[size] = '\0';
        *ret = text;
        *ret_size = size;
        return 0;
}
