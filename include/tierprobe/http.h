/* The HTTP server: listeners on the event loop, the guard in front of the routes, the routes.
 *
 * The only room that knows libmicrohttpd. Reads the daemon through service.h. */
#pragma once

#include <stddef.h>
#include <systemd/sd-event.h>

#include "tierprobe/service.h"

typedef struct HttpServer HttpServer;

typedef struct HttpOptions {
        const char *const *listen; /* "ADDR:PORT", "[ADDR]:PORT", "unix:/path" */
        size_t n_listen;
        const char *allowed_hosts; /* space separated names beside the loopback ones; NULL none */
        const Service *service;    /* must outlive the server */
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
