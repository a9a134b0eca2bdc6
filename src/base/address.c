/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of sockets as text. */

#include "tierprobe/address.h"

#include "tierprobe/units.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *parse_unix(const char *path, Address *ret)
{
        size_t length = strlen(path);

        if (*path != '/')
                return "has no absolute path; unix:/run/tierprobe.sock has one";
        if (length >= sizeof ret->un.sun_path)
                return "is longer than a socket's path may be (107 bytes)";
        ret->un.sun_family = AF_UNIX;
        memcpy(ret->un.sun_path, path, length + 1);
        ret->size = sizeof ret->un;
        return NULL;
}

static const char *parse_tcp(const char *text, Address *ret)
{
        char host[INET6_ADDRSTRLEN + 2] = "";
        uint64_t port = 0;
        const char *colon = strrchr(text, ':');

        if (!colon)
                return "has no port; 127.0.0.1:7620 has one";
        size_t length = (size_t) (colon - text);
        if (text[0] == '[' && (length < 2 || text[length - 1] != ']'))
                return "is not of the form [ADDR]:PORT";
        if (parse_u64(colon + 1, &port) < 0 || port > UINT16_MAX)
                return "has no port from 1 to 65535";
        if (length < sizeof host)
                memcpy(host, text, length); /* a longer one is no address, nor is "" */

        if (host[0] == '[') {
                host[length - 1] = '\0';
                if (inet_pton(AF_INET6, host + 1, &ret->in6.sin6_addr) != 1)
                        return "has no IPv6 address in its brackets";
                ret->in6.sin6_family = AF_INET6;
                ret->in6.sin6_port = htons((uint16_t) port);
                ret->size = sizeof ret->in6;
                return NULL;
        }
        if (inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, &ret->in.sin_addr) != 1)
                return "has no numeric IPv4 address; 0.0.0.0:7620 is every IPv4 address of this host, "
                       "[::]:7620 every IPv6 one";
        ret->in.sin_family = AF_INET;
        ret->in.sin_port = htons((uint16_t) port);
        ret->size = sizeof ret->in;
        return NULL;
}

int address_parse(const char *text, Address *ret, const char **ret_why)
{
        Address address = { 0 };

        const char *why =
                strncmp(text, "unix:", 5) == 0 ? parse_unix(text + 5, &address) : parse_tcp(text, &address);
        if (why) {
                if (ret_why)
                        *ret_why = why;
                return -EINVAL;
        }
        *ret = address;
        return 0;
}

uint16_t address_port(const Address *address)
{
        switch (address->any.sa_family) {
        case AF_INET:
                return ntohs(address->in.sin_port);
        case AF_INET6:
                return ntohs(address->in6.sin6_port);
        default:
                return 0;
        }
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

bool address_equal(const Address *a, const Address *b)
{
        char texts[2][ADDRESS_TEXT_SIZE];

        address_format(a, texts[0]);
        address_format(b, texts[1]);
        return strcmp(texts[0], texts[1]) == 0;
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
