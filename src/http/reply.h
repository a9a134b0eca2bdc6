/* SPDX-License-Identifier: Apache-2.0 */
/* Replies: every one has its Content-Type, caching rule and nosniff, and is counted. Private to src/http. */
#pragma once

#include <jansson.h>

#include "server.h"

#define TYPE_JSON "application/json"
#define CACHE_REVALIDATE "no-cache" /* keep it, but ask each time */
#define CACHE_NEVER "no-store"

typedef struct ReplyHeader {
        const char *name, *value; /* value NULL: left out */
} ReplyHeader;

/* Gives RESPONSE its headers, for one or many answers; destroys it and returns NULL when out of memory, or
 * NULL. */
struct MHD_Response *reply_prepare(struct MHD_Response *response, const char *type, const char *cache,
                                   const ReplyHeader *headers);

/* Queues RESPONSE, which has its headers and stays the caller's. */
enum MHD_Result reply_shared(Request *request, unsigned status, struct MHD_Response *response);

/* Queues RESPONSE (whose reference is taken; NULL: out of memory). HEADERS end with a NULL name, or NULL. */
enum MHD_Result reply_send(Request *request, unsigned status, struct MHD_Response *response, const char *type,
                           const char *cache, const ReplyHeader *headers);

/* A document; its reference is taken; NULL: out of memory. */
enum MHD_Result reply_json(Request *request, unsigned status, json_t *document, const char *cache,
                           const ReplyHeader *headers);

/* TEXT of JSON, which is taken and freed. */
enum MHD_Result reply_text(Request *request, unsigned status, char *text, size_t size, const char *cache,
                           const ReplyHeader *headers);

/* RFC 9457. MEMBER (may be NULL) is added as KEY; its reference is taken. */
enum MHD_Result reply_problem(Request *request, const Problem *problem);
enum MHD_Result reply_problem_with(Request *request, const Problem *problem, const char *key, json_t *member);

/* No body. */
enum MHD_Result reply_empty(Request *request, unsigned status, const ReplyHeader *headers);
