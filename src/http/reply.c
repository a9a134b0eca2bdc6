/* SPDX-License-Identifier: Apache-2.0 */
/* Replies. The one place that queues a response. */

#include "reply.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/json.h"

#include <stdio.h>
#include <string.h>

#define TYPE_PROBLEM "application/problem+json"

const unsigned http_statuses[N_STATUSES] = { 200, 202, 204, 304, 400, 401, 403, 404, 405, 409,
                                             411, 413, 414, 415, 429, 500, 501, 503, 0 };
const char *const http_methods[_METHOD_MAX] = {
        [METHOD_GET] = "GET",       [METHOD_HEAD] = "HEAD",       [METHOD_POST] = "POST",
        [METHOD_DELETE] = "DELETE", [METHOD_OPTIONS] = "OPTIONS", [METHOD_OTHER] = "other",
};

static void count(Request *request, unsigned status)
{
        size_t s = 0;

        while (http_statuses[s] && http_statuses[s] != status)
                s++;
        request->server->counts[request->method][s]++;
}

struct MHD_Response *reply_prepare(struct MHD_Response *response, const char *type, const char *cache,
                                   const ReplyHeader *headers)
{
        enum MHD_Result result = MHD_YES;

        if (!response)
                return NULL;
        if (type)
                result = MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
        if (result == MHD_YES)
                result = MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, cache);
        if (result == MHD_YES)
                result = MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
        for (; result == MHD_YES && headers && headers->name; headers++)
                if (headers->value)
                        result = MHD_add_response_header(response, headers->name, headers->value);
        if (result == MHD_YES)
                return response;
        MHD_destroy_response(response);
        return NULL;
}

enum MHD_Result reply_shared(Request *request, unsigned status, struct MHD_Response *response)
{
        enum MHD_Result result = MHD_queue_response(request->mhd, status, response);

        if (result == MHD_YES)
                count(request, status);
        return result;
}

enum MHD_Result reply_send(Request *request, unsigned status, struct MHD_Response *response, const char *type,
                           const char *cache, const ReplyHeader *headers)
{
        enum MHD_Result result = MHD_YES;

        response = reply_prepare(response, type, cache, headers);
        /* MHD_NO to the library closes the connection: all that can be done without memory. */
        if (!response)
                return MHD_NO;
        if (connection_is_due(request->connection) &&
            !MHD_get_response_header(response, MHD_HTTP_HEADER_CONNECTION))
                result = MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
        if (result == MHD_YES)
                result = reply_shared(request, status, response);
        MHD_destroy_response(response);
        return result;
}

static struct MHD_Response *response_from_text(char *text, size_t size)
{
        if (!text)
                return NULL;
        struct MHD_Response *response = MHD_create_response_from_buffer(size, text, MHD_RESPMEM_MUST_FREE);
        if (!response)
                free(text);
        return response;
}

enum MHD_Result reply_text(Request *request, unsigned status, char *text, size_t size, const char *cache,
                           const ReplyHeader *headers)
{
        return reply_send(request, status, response_from_text(text, size), TYPE_JSON, cache, headers);
}

enum MHD_Result reply_json(Request *request, unsigned status, json_t *document, const char *cache,
                           const ReplyHeader *headers)
{
        size_t size = 0;
        char *text = document ? json_document(document, &size) : NULL;

        json_decref(document);
        return reply_text(request, status, text, size, cache, headers);
}

enum MHD_Result reply_problem_with(Request *request, const Problem *problem, const char *key, json_t *member)
{
        json_t *document = json_problem(problem->status, MHD_get_reason_phrase_for(problem->status),
                                        problem->code, problem->detail, key, member);
        char retry_after[24];
        size_t size = 0;
        char *text = document ? json_document(document, &size) : NULL;

        json_decref(document);
        (void) snprintf(retry_after, sizeof retry_after, "%lu", problem->retry_after_s);
        const ReplyHeader headers[] = {
                { MHD_HTTP_HEADER_ALLOW, problem->allow },
                { MHD_HTTP_HEADER_WWW_AUTHENTICATE, problem->authenticate },
                { MHD_HTTP_HEADER_RETRY_AFTER, problem->retry_after_s ? retry_after : NULL },
                { MHD_HTTP_HEADER_CONNECTION, problem->close ? "close" : NULL },
                { NULL, NULL },
        };
        return reply_send(request, problem->status, response_from_text(text, size), TYPE_PROBLEM, CACHE_NEVER,
                          headers);
}

enum MHD_Result reply_problem(Request *request, const Problem *problem)
{
        return reply_problem_with(request, problem, NULL, NULL);
}

enum MHD_Result reply_empty(Request *request, unsigned status, const ReplyHeader *headers)
{
        return reply_send(request, status, MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT),
                          NULL, CACHE_NEVER, headers);
}
