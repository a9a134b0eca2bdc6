/* SPDX-License-Identifier: Apache-2.0 */
/* The server's own objects: server, listeners, connections, requests. Private to src/http. */
#pragma once

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "access.h"
#include "guard.h"
#include "head.h"
#include "peer.h"
#include "query.h"
#include "tierprobe/address.h"
#include "tierprobe/http.h"

typedef enum Method {
        METHOD_GET,
        METHOD_HEAD,
        METHOD_POST,
        METHOD_DELETE,
        METHOD_OPTIONS,
        METHOD_OTHER,
        _METHOD_MAX
} Method;

/* Every status a reply of ours can have; libmicrohttpd's own answers to what it cannot parse are not counted.
 */
#define N_STATUSES 19
extern const unsigned http_statuses[N_STATUSES];
extern const char *const http_methods[_METHOD_MAX];

/* A turn of a listener: what its library does before the event loop goes on. */
typedef struct Turn {
        uint64_t number, begin_ns;
        size_t n_passed_over, n_passed_over_before; /* streams that got nothing, in this turn and the last */
} Turn;

typedef struct Listener {
        HttpServer *server;
        struct MHD_Daemon *daemon;
        sd_event_source *io, *timer, *again;
        Turn turn;
        bool loopback, is_unix, tls;
        struct Connection *connections; /* newest first */
        size_t n_staying;               /* of those, that were not told to go */
        bool has_closed;                /* a connection, in this turn */
        bool starved;                   /* no descriptor was left for a connection */
        char text[ADDRESS_TEXT_SIZE];
        dev_t socket_dev; /* of a Unix socket's file, so that only our own is removed */
        ino_t socket_ino;
} Listener;

/* A document that many ask for, as it was made last; see cached.h. */
#define ETAG_SIZE 40
typedef struct Cached {
        struct MHD_Response *response; /* NULL: not made yet */
        uint64_t generation, made_ns;
        char etag[ETAG_SIZE]; /* empty: it has none */
        char *text;           /* the response's */
        size_t size;
} Cached;

typedef enum CachedDocument {
        CACHED_STATUS,
        CACHED_STATUS_BRIEF,
        CACHED_METRICS,
        CACHED_OPENMETRICS,
        CACHED_OPENAPI,
        _CACHED_MAX
} CachedDocument;

struct HttpServer {
        sd_event *event;
        const Service *service;
        HttpAccess *access;
        Address *addresses; /* of each listener */
        Listener *listeners;
        size_t n_listeners;
        uint32_t start_random; /* makes ETags of two runs of the daemon differ */
        unsigned idle_timeout_s;
        uint64_t request_timeout_ns;
        uint64_t n_wrong_tokens, wrong_tokens_said_ns;
        struct Request *waiting; /* those that rest */
        size_t n_events;         /* streams of events */
        bool ending;
        Cached cached[_CACHED_MAX];
        uint64_t counts[_METHOD_MAX][N_STATUSES];
};

/* One accepted connection. A request on it must be done in time: a client that sends a byte now and then is
 * never idle. */
typedef struct Connection {
        Listener *listener;
        struct Connection *previous, *next;
        int fd; /* libmicrohttpd's */
        Peer peer;
        HttpAccess *access; /* as it was when the connection began, for its certificate */
        sd_event_source *deadline;
        uint64_t opened_ns;
        uint64_t active_ns; /* when a request began, its answer moved on or ended; at first, when it was
                               opened */
        unsigned n_requests;
        bool leaving; /* was shut down; the library will find out */
        bool waits;   /* a request on it rests: it is idle for a good reason */
} Connection;

#define ALLOW_SIZE 64

struct Request;

/* A request that rests; see wait.h. */
typedef struct Wait {
        bool (*over)(const void *userdata); /* NULL: it does not rest */
        const void *userdata;
        struct Request *previous, *next;
        sd_event_source *timer;
} Wait;

/* One request, from its headers to the end of its reply. */
typedef struct Request {
        HttpServer *server;
        Connection *connection;
        struct MHD_Connection *mhd;
        RequestLine line;
        RequestHead head; /* without a path until the headers are there */
        Method method;
        char part[NAME_SIZE]; /* what stands in the path where the route has a word in capitals */
        Query query;
        const struct Route *route;
        char token[NAME_SIZE]; /* the name of the one that was shown; empty: none was needed */
        bool refused;          /* for problem */
        Problem problem;
        char allow[ALLOW_SIZE]; /* methods the path takes, for 405 and OPTIONS */
        char *body;             /* GUARD_MAX_BODY bytes once there is one */
        size_t body_size;
        Wait wait;
        uint64_t wait_until_ns; /* MONOTONIC; 0: it has not waited yet */
        void *kept;             /* by its handler while it waits; freed with the request */
} Request;

/* connection.c: for MHD_OPTION_NOTIFY_CONNECTION and _COMPLETED, and the access handler. */
void connection_notify(void *userdata, struct MHD_Connection *mhd, void **context,
                       enum MHD_ConnectionNotificationCode what);
void connection_set_deadline(Connection *connection, uint64_t after_ns);
void connection_request_begins(Connection *connection);
void connection_request_done(Connection *connection);

/* An answer has moved on: the client reads it. */
void connection_touch(Connection *connection);

/* Whether it has lived long enough or had its number of requests: the answer to come is the last. */
bool connection_is_due(const Connection *connection);

/* Long replies (streamed, or read slowly by the client) may take this long. */
#define REPLY_TIMEOUT_NS (UINT64_C(300) * 1000000000)

/* request.c: for MHD_OPTION_URI_LOG_CALLBACK, the access handler and what follows a request. */
void *request_new(void *userdata, const char *target, struct MHD_Connection *mhd);
enum MHD_Result request_handle(void *userdata, struct MHD_Connection *mhd, const char *url,
                               const char *method, const char *version, const char *upload_data,
                               size_t *upload_data_size, void **context);
void request_completed(void *userdata, struct MHD_Connection *mhd, void **context,
                       enum MHD_RequestTerminationCode why);
