/* SPDX-License-Identifier: Apache-2.0 */
/* Documents that many ask for. */

#include "cached.h"

#include "accept.h"

#include "tierprobe/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIFE_NS NS_PER_S

/* FNV-1a: a tag must differ when the text does, nothing more. */
static uint64_t hash(const char *text, size_t size)
{
        uint64_t value = UINT64_C(0xcbf29ce484222325);

        for (size_t i = 0; i < size; i++)
                value = (value ^ (unsigned char) text[i]) * UINT64_C(0x100000001b3);
        return value;
}

#define N_HEADERS 3

static const char *caching(const CachedKind *kind, const Cached *cached, ReplyHeader headers[N_HEADERS])
{
        headers[0] = (ReplyHeader){ MHD_HTTP_HEADER_ETAG, *cached->etag ? cached->etag : NULL };
        headers[1] = (ReplyHeader){ MHD_HTTP_HEADER_VARY, kind->vary };
        headers[2] = (ReplyHeader){ NULL, NULL };
        return kind->etag == ETAG_NONE ? CACHE_NEVER : CACHE_REVALIDATE;
}

static void set_etag(Cached *cached, const HttpServer *server, const CachedKind *kind)
{
        switch (kind->etag) {
        case ETAG_NONE:
                break;
        case ETAG_STATE:
                (void) snprintf(cached->etag, sizeof cached->etag, "\"%08" PRIx32 "-%" PRIu64 "\"",
                                server->start_random, cached->generation);
                break;
        case ETAG_CONTENT:
                (void) snprintf(cached->etag, sizeof cached->etag, "\"%016" PRIx64 "\"",
                                hash(cached->text, cached->size));
                break;
        }
}

static bool renew(const HttpServer *server, Cached *cached, const CachedKind *kind, uint64_t generation)
{
        ReplyHeader headers[N_HEADERS];
        Text text = { 0 };
        size_t size = 0;

        cached_done(cached);
        kind->make(server, &text);
        char *data = text_take(&text, &size);
        if (!data)
                return false;
        *cached = (Cached){
                .text = data, .size = size, .generation = generation, .made_ns = clock_ns(CLOCK_MONOTONIC)
        };
        set_etag(cached, server, kind);
        const char *cache = caching(kind, cached, headers);
        struct MHD_Response *response = MHD_create_response_from_buffer(size, data, MHD_RESPMEM_MUST_FREE);
        if (!response)
                free(data);
        cached->response = reply_prepare(response, kind->type, cache, headers);
        return cached->response != NULL;
}

enum MHD_Result reply_cached(Request *request, Cached *cached, const CachedKind *kind)
{
        const HttpServer *server = request->server;
        uint64_t generation = server->service->generation(server->service->userdata);
        ReplyHeader headers[N_HEADERS];

        if ((!cached->response || cached->generation != generation ||
             clock_ns(CLOCK_MONOTONIC) - cached->made_ns >= LIFE_NS) &&
            !renew(server, cached, kind, generation))
                return MHD_NO;
        /* For a 304 the library leaves out the body, and needs the response for its headers. */
        unsigned status =
                *cached->etag && accept_etag(request->head.if_none_match.value, cached->etag) ? 304 : 200;
        if (!connection_is_due(request->connection))
                return reply_shared(request, status, cached->response);
        /* An answer of its own says that the connection ends. */
        const char *cache = caching(kind, cached, headers);
        return reply_send(request, status,
                          MHD_create_response_from_buffer(cached->size, cached->text, MHD_RESPMEM_MUST_COPY),
                          kind->type, cache, headers);
}

void cached_done(Cached *cached)
{
        if (cached->response)
                MHD_destroy_response(
                        cached->response); /* frees the text, with the last answer that needs it */
        *cached = (Cached){ .response = NULL };
}
