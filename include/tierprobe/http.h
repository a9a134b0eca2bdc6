/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server: listeners on the event loop, the guard in front of the routes, the routes.
 *
 * The only room that knows libmicrohttpd. Knows the daemon by a table of calls alone. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "tierprobe/address.h"
#include "tierprobe/past-run.h"
#include "tierprobe/record.h"
#include "tierprobe/views.h"

/* What http may ask of the daemon, which fills it in. */
typedef struct Service {
        void *userdata;
        void (*get)(void *userdata, ServiceView *ret);

        /* The INDEX-th target; false past the end. */
        bool (*get_target)(void *userdata, size_t index, TargetView *ret);

        /* Counts up whenever something that /status shows has changed. */
        uint64_t (*generation)(void *userdata);

        /* Asks for a run of one target. Returns 0 with an answer, or -ENOMEM and other errors of the machine.
         */
        int (*start_run)(void *userdata, const StartOrder *order, StartAnswer *ret);

        AbortResult (*abort_run)(void *userdata, const char *id, const char *who);

        /* Runs queued and running, newest first; NULL past the end, or when there is none of this id. */
        const RunRecord *(*current_run)(void *userdata, size_t index);
        const RunRecord *(*find_current)(void *userdata, const char *id);

        /* The id of the newest past run that is older than BEFORE (NULL: of all); NULL when there is none. */
        const char *(*older_run)(void *userdata, const char *before);

        /* A past run: its fields, and its whole document; each may be NULL, and is owned by the caller. 0;
         * -ENOENT: there is none of this id; -EBADMSG: it was damaged; or the errno of reading. */
        int (*read_run)(void *userdata, const char *id, PastRun **ret, char **ret_text, size_t *ret_size);
} Service;

typedef struct HttpServer HttpServer;
typedef struct HttpAccess HttpAccess;

typedef struct HttpOptions {
        const Address *listen; /* port 0: one that the kernel chooses */
        size_t n_listen;
        const char *allowed_hosts;         /* space separated names beside the loopback ones; NULL none */
        const char *token_file;            /* "NAME TOKEN" or "TOKEN", one a line; NULL none */
        const char *credentials_directory; /* where there may be a "token" in place of it; NULL none */
        const char *tls_cert, *tls_key;    /* PEM; NULL none. All addresses but Unix sockets then speak TLS */
        const Service *service;            /* must outlive the server */
        unsigned idle_timeout_s;           /* of a connection on which nothing moves; 0: 15 s */
        uint64_t request_timeout_ns; /* for a request from its first byte, or the last reply, to its end; 0:
                                        30 s */
} HttpOptions;

/* Binds and listens on all addresses, serving on EVENT. On failure *RET_ERROR is a sentence that names the
 * address and what to do ("127.0.0.1:7620: address in use; is tierprobed running already?"), owned by the
 * caller. Returns 0 or negative errno; nothing listens on failure. */
int http_server_new(HttpServer **ret, sd_event *event, const HttpOptions *options, char **ret_error);
HttpServer *http_server_free(HttpServer *server);
void http_server_freep(HttpServer **server);

/* Reads what of OPTIONS can be renewed while serving: names, tokens, certificate. 0 or negative errno with a
 * sentence in *RET_ERROR that names the file and what is wrong with it (NULL when out of memory), owned by
 * the caller. */
int http_access_load(HttpAccess **ret, const HttpOptions *options, char **ret_error);
HttpAccess *http_access_unref(HttpAccess *access);
void http_access_unrefp(HttpAccess **access);

/* To be called whenever the generation has gone up: requests that wait for it are looked at. */
void http_server_follow(HttpServer *server);

/* Puts ACCESS, which is taken, in the place of what http_server_new() has read. That there is a certificate
 * or none decides how an address is served: that cannot be changed. */
void http_server_set_access(HttpServer *server, HttpAccess *access);

/* When the certificate expires; 0: there is none. */
int64_t http_server_certificate_expiry_real_ns(const HttpServer *server);

/* The address listener INDEX is bound to, with the real port where 0 was asked for: "127.0.0.1:40123". NULL
 * past the end. */
const char *http_server_address(const HttpServer *server, size_t index);

/* Requests answered since start, by method and status: fills RET_METHOD, RET_STATUS and RET_COUNT for the
 * INDEX-th pair that occurred. 0, or -ENOENT past the end. */
int http_server_request_count(const HttpServer *server, size_t index, const char **ret_method,
                              unsigned *ret_status, uint64_t *ret_count);
