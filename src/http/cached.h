/* SPDX-License-Identifier: Apache-2.0 */
/* Documents that many ask for: made once for each state of the daemon, not once for each request. Private to
 * src/http. */
#pragma once

#include "growing-text.h"
#include "reply.h"

typedef enum EtagKind {
        ETAG_NONE,
        ETAG_STATE,   /* of the daemon's state: what moves by itself (ages, the uptime) does not change it */
        ETAG_CONTENT, /* of the document */
} EtagKind;

/* How a document is made. */
typedef struct CachedKind {
        const char *type; /* Content-Type */
        EtagKind etag;
        const char *vary; /* NULL: nothing of the request decides what it is */
        void (*make)(const HttpServer *server, Text *out);
} CachedKind;

/* Answers with CACHED as it is, or after making it anew when the daemon's state has changed since, or a
 * second has passed. 304 where the client has it already. */
enum MHD_Result reply_cached(Request *request, Cached *cached, const CachedKind *kind);

void cached_done(Cached *cached);
