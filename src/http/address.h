/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses to listen on: text to socket address and back, and a listening socket on it. Private to src/http.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#define ADDRESS_TEXT_SIZE 128 /* "unix:" and the 107 bytes of a socket's path */

typedef struct Address {
        union {
                struct sockaddr any;
                struct sockaddr_in in;
                struct sockaddr_in6 in6;
                struct sockaddr_un un;
                struct sockaddr_storage storage;
        };
        socklen_t size;
} Address;

/* Reads "ADDR:PORT", "[ADDR]:PORT", "localhost:PORT" or "unix:/path"; port 0 lets the kernel choose. Names
 * are never looked up. Returns 0 or -EINVAL. */
int address_parse(const char *text, Address *ret);

/* Writes it in the form address_parse() reads. */
void address_format(const Address *address, char buf[ADDRESS_TEXT_SIZE]);

/* Reached from this host alone: 127.0.0.0/8, ::1, or a Unix socket. */
bool address_is_loopback(const Address *address);

/* Whether the two are the same IP address, whatever the ports; IPv4 inside IPv6 is IPv4. Never true for the
 * unspecified address. */
bool address_same_host(const Address *a, const Address *b);

/* Binds and listens; non-blocking, close-on-exec. ADDRESS gets the real port. A Unix socket that nobody
 * answers on is replaced; it is made with mode 0660. Returns the descriptor, or negative errno with a
 * sentence in *RET_ERROR (owned by the caller; NULL when out of memory). */
int address_listen(Address *address, char **ret_error);
