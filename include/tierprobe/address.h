/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of sockets: text to address and back. Knows libc. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
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
 * are never looked up. Returns 0, or -EINVAL with what is wrong in RET_WHY (may be NULL), static text to
 * stand behind the address: "has no port; 127.0.0.1:7620 has one". */
int address_parse(const char *text, Address *ret, const char **ret_why);

/* Of TCP; 0 for a Unix socket. */
uint16_t address_port(const Address *address);

/* Writes it in the form address_parse() reads. */
void address_format(const Address *address, char buf[ADDRESS_TEXT_SIZE]);

/* Reached from this host alone: 127.0.0.0/8, ::1, or a Unix socket. */
bool address_is_loopback(const Address *address);

/* Whether the two are the same, port included. */
bool address_equal(const Address *a, const Address *b);

/* Whether the two are the same IP address, whatever the ports; IPv4 inside IPv6 is IPv4. Never true for the
 * unspecified address. */
bool address_same_host(const Address *a, const Address *b);
