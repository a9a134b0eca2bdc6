/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server: listeners on the event loop, the guard in front of the routes, the routes.
 *
 * The only room that knows libmicrohttpd. Reads the daemon through service.h. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "tierprobe/address.h"
#include "tierprobe/service.h"

typedef struct HttpServer HttpServer;

typedef struct HttpOptions {
        const Address *listen; /* port 0: one that the kernel chooses */
        size_t n_listen;
        const char *allowed_hosts;   /* space separated names beside the loopback ones; NULL none */
        const Service *service;      /* must outlive the server */
        unsigned idle_timeout_s;     /* of a connection on which nothing moves; 0: 15 s */
        uint64_t request_timeout_ns; /* for a request from its first byte, or the last reply, to its end; 0:
                                        30 s */
} HttpOptions;

/* Binds and listens on all addresses, serving on EVENT. On failure *RET_ERROR is a sentence that names the
 * address and what to do ("127.0.0.1:7620: address in use; is tierprobed running already?"), owned by the
 * caller. Returns 0 or negative errno; nothing listens on failure. */
int http_server_new(HttpServer **ret, sd_event *event, const HttpOptions *options, char **ret_error);
HttpServer *http_server_free(HttpServer *server);
void http_server_freep(HttpServer **server);

/* The address listener INDEX is bound to, with the real port where 0 was asked for: "127.0.0.1:40123". NULL
 * past the end. */
const char *http_server_address(const HttpServer *server, size_t index);

/* Requests answered since start, by method and status: fills RET_METHOD, RET_STATUS and RET_COUNT for the
 * INDEX-th pair that occurred. 0, or -ENOENT past the end. */
int http_server_request_count(const HttpServer *server, size_t index, const char **ret_method,
                              unsigned *ret_status, uint64_t *ret_count);
