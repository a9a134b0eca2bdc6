/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses to listen on. The only file of the room that makes sockets. */

#include "address.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/file.h"
#include "tierprobe/units.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define BACKLOG 1024 /* a flood must not make the next client wait for its kernel to try again */
#define SEND_BUFFER (128 << 10)

static int parse_unix(const char *path, Address *ret)
{
        Address address = { .un.sun_family = AF_UNIX, .size = sizeof(struct sockaddr_un) };
        size_t length = strlen(path);

        if (*path != '/' || length >= sizeof address.un.sun_path)
                return -EINVAL;
        memcpy(address.un.sun_path, path, length + 1);
        *ret = address;
        return 0;
}

int address_parse(const char *text, Address *ret)
{
        Address address = { 0 };
        char host[INET6_ADDRSTRLEN + 2];
        uint64_t port = 0;

        if (strncmp(text, "unix:", 5) == 0)
                return parse_unix(text + 5, ret);

        const char *colon = strrchr(text, ':');
        if (!colon || (size_t) (colon - text) >= sizeof host || colon == text)
                return -EINVAL;
        if (parse_u64(colon + 1, &port) < 0 || port > UINT16_MAX)
                return -EINVAL;
        size_t length = (size_t) (colon - text);
        memcpy(host, text, length);
        host[length] = '\0';

        if (host[0] == '[' && host[length - 1] == ']') {
                host[length - 1] = '\0';
                if (inet_pton(AF_INET6, host + 1, &address.in6.sin6_addr) != 1)
                        return -EINVAL;
                address.in6.sin6_family = AF_INET6;
                address.in6.sin6_port = htons((uint16_t) port);
                address.size = sizeof address.in6;
        } else {
                const char *name = strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;

                if (inet_pton(AF_INET, name, &address.in.sin_addr) != 1)
                        return -EINVAL;
                address.in.sin_family = AF_INET;
                address.in.sin_port = htons((uint16_t) port);
                address.size = sizeof address.in;
        }
        *ret = address;
        return 0;
}

void address_format(const Address *address, char buf[ADDRESS_TEXT_SIZE])
{
        char host[INET6_ADDRSTRLEN] = "";

        switch (address->any.sa_family) {
        case AF_INET:
                (void) inet_ntop(AF_INET, &address->in.sin_addr, host, sizeof host);
                (void) snprintf(buf, ADDRESS_TEXT_SIZE, "%s:%u", host,
                                (unsigned) ntohs(address->in.sin_port));
                break;
        case AF_INET6:
                (void) inet_ntop(AF_INET6, &address->in6.sin6_addr, host, sizeof host);
                (void) snprintf(buf, ADDRESS_TEXT_SIZE, "[%s]:%u", host,
                                (unsigned) ntohs(address->in6.sin6_port));
                break;
        case AF_UNIX:
                (void) snprintf(buf, ADDRESS_TEXT_SIZE, "unix:%.*s", (int) sizeof address->un.sun_path,
                                address->un.sun_path);
                break;
        default:
                (void) snprintf(buf, ADDRESS_TEXT_SIZE, "unknown");
        }
}

/* The IPv4 address in host byte order, also one inside an IPv6 one. */
static bool ipv4_of(const Address *address, uint32_t *ret)
{
        uint32_t network = 0;

        if (address->any.sa_family == AF_INET) {
                network = address->in.sin_addr.s_addr;
        } else if (address->any.sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&address->in6.sin6_addr)) {
                memcpy(&network, address->in6.sin6_addr.s6_addr + 12, sizeof network);
        } else {
                return false;
        }
        *ret = ntohl(network);
        return true;
}

bool address_is_loopback(const Address *address)
{
        uint32_t ipv4 = 0;

        if (address->any.sa_family == AF_UNIX)
                return true;
        if (ipv4_of(address, &ipv4))
                return ipv4 >> 24 == 127;
        return address->any.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&address->in6.sin6_addr);
}

bool address_same_host(const Address *a, const Address *b)
{
        uint32_t a4 = 0, b4 = 0;

        if (ipv4_of(a, &a4) && ipv4_of(b, &b4))
                return a4 == b4 && a4 != INADDR_ANY;
        return a->any.sa_family == AF_INET6 && b->any.sa_family == AF_INET6 &&
               !IN6_IS_ADDR_UNSPECIFIED(&a->in6.sin6_addr) &&
               IN6_ARE_ADDR_EQUAL(&a->in6.sin6_addr, &b->in6.sin6_addr);
}

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
        /* The group may talk to us, nobody else; set before the name exists. */
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
