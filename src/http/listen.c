/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets that listen. The only file of the room that makes any. */

#include "listen.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define BACKLOG 1024 /* a flood must not make the next client wait for its kernel to try again */
#define SEND_BUFFER (128 << 10)

/* Makes room for our own socket: what a daemon left behind that was killed may go, everything else stays. */
static int remove_stale_socket(const Address *address)
{
        struct stat st;

        if (lstat(address->un.sun_path, &st) < 0)
                return errno == ENOENT ? 0 : -errno;
        if (!S_ISSOCK(st.st_mode))
                return -EEXIST;
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        /* Anything but a refusal (no one listens) may mean a living server: EAGAIN is a full backlog. */
        if (connect(fd, &address->any, address->size) == 0 || errno != ECONNREFUSED)
                return -EADDRINUSE;
        return unlink(address->un.sun_path) < 0 ? -errno : 0;
}

static int bind_unix(int fd, const Address *address)
{
        int r = remove_stale_socket(address);
        if (r < 0)
                return r;
        /* Mode 0660: owner and group may connect. The umask, since the mode must hold from the first moment.
         */
        mode_t mask = umask(0117);
        r = bind(fd, &address->any, address->size) < 0 ? -errno : 0;
        (void) umask(mask);
        return r;
}

static int bind_tcp(int fd, const Address *address)
{
        int on = 1;

        /* A restart must not wait for the connections of the last one to time out. */
        if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0)
                return -errno;
        /* What is written is what is bound: "[::]" beside "0.0.0.0" is no conflict. */
        if (address->any.sa_family == AF_INET6 &&
            setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) < 0)
                return -errno;
        return bind(fd, &address->any, address->size) < 0 ? -errno : 0;
}

static char *explain(const Address *address, int error)
{
        char text[ADDRESS_TEXT_SIZE];

        address_format(address, text);
        switch (error) {
        case -EADDRINUSE:
                return path_format("%s: address in use; is tierprobed running already?", text);
        case -EEXIST:
                return path_format("%s: there is a file of this name that is not a socket; remove it, or "
                                   "choose another path",
                                   text);
        case -EADDRNOTAVAIL:
                return path_format("%s: no interface of this host has this address", text);
        case -EACCES:
                return path_format("%s: permission denied; ports below 1024 and foreign folders need rights "
                                   "that tierprobed does not have",
                                   text);
        case -ENOENT:
                return path_format("%s: the folder of the socket does not exist", text);
        default:
                return path_format("%s: cannot listen: %s", text, strerror(-error));
        }
}

int address_listen(Address *address, char **ret_error)
{
        bool is_unix = address->any.sa_family == AF_UNIX;
        int r = 0;

        _cleanup_close_ int fd =
                socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                r = -errno;
        if (r == 0)
                r = is_unix ? bind_unix(fd, address) : bind_tcp(fd, address);
        /* Inherited by every connection: a client that asks for much and reads nothing must not fill
         * megabytes of kernel memory, which count as ours. A smaller limit of the system is as good. */
        if (r == 0)
                (void) setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){ SEND_BUFFER }, sizeof(int));
        if (r == 0 && listen(fd, BACKLOG) < 0)
                r = -errno;
        if (r == 0 && !is_unix && getsockname(fd, &address->any, &(socklen_t){ sizeof address->storage }) < 0)
                r = -errno;
        if (r < 0) {
                *ret_error = explain(address, r);
                return r;
        }
        return TAKE_FD(fd);
}
