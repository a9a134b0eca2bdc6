/* SPDX-License-Identifier: Apache-2.0 */
/* Text that a reader may have or not. Touches only the descriptor that it is given. */

#include "spare-output.h"

#include "tierprobe/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* O_NONBLOCK belongs to the open file, and so to the shell and everybody else who has it from the same hands:
 * the terminal or pipe is opened once more. */
static int open_again(int fd)
{
        char path[32];
        struct stat st;

        if (fstat(fd, &st) < 0 || !(S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)))
                return -1;
        (void) snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

void spare_output_begin(SpareOutput *output, int fd)
{
        int again = open_again(fd);

        *output = (SpareOutput){ .fd = again >= 0 ? again : fd, .own = again >= 0 };
}

/* What could not be opened again (a socket; somebody else's terminal after su) is asked before each write. A
 * pipe that can be written takes PIPE_BUF bytes, and a terminal a line. */
static ssize_t write_some(const SpareOutput *output)
{
        struct pollfd poll_fd = { .fd = output->fd, .events = POLLOUT };

        if (output->own)
                return write(output->fd, output->pending, output->n_pending);
        ssize_t n = send(output->fd, output->pending, output->n_pending, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n >= 0 || errno != ENOTSOCK)
                return n;
        if (poll(&poll_fd, 1, 0) <= 0) {
                errno = EAGAIN;
                return -1;
        }
        return write(output->fd, output->pending,
                     output->n_pending < PIPE_BUF ? output->n_pending : PIPE_BUF);
}

static void flush(SpareOutput *output)
{
        while (output->n_pending > 0) {
                ssize_t n = write_some(output);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno != EAGAIN)
                        n = (ssize_t) output->n_pending; /* nobody will ever read it */
                if (n <= 0)
                        return;
                output->n_pending -= (size_t) n;
                memmove(output->pending, output->pending + n, output->n_pending);
        }
}

void spare_output_write(SpareOutput *output, const char *format, ...)
{
        va_list ap;

        flush(output);
        size_t room = sizeof output->pending - output->n_pending;
        va_start(ap, format);
        int n = vsnprintf(output->pending + output->n_pending, room, format, ap);
        va_end(ap);
        if (n < 0 || (size_t) n >= room)
                return;
        output->n_pending += (size_t) n;
        flush(output);
}

void spare_output_end(SpareOutput *output)
{
        flush(output);
        if (output->own)
                close_fdp(&output->fd);
        *output = (SpareOutput){ .fd = -1 };
}
