/* SPDX-License-Identifier: Apache-2.0 */
/* The page for people, and its files. */

#include "route-page.h"

#include "accept.h"

#include "reply.h"
#include "routes.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/json.h"
#include "tierprobe/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define RUNS_SHOWN 20

/* Nothing but the daemon's own files is loaded, and nobody else may frame it. */
#define CONTENT_SECURITY                                                                              \
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src " \
        "'self'; "                                                                                    \
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

static const ReplyHeader page_headers[] = {
        { "Content-Security-Policy", CONTENT_SECURITY },
        { "X-Frame-Options", "DENY" },
        { "Referrer-Policy", "no-referrer" },
        { "Vary", "Accept" },
        { NULL, NULL },
};

bool route_page_is_wanted(Request *request)
{
        const char *accept = request->head.accept.value;

        return accept && accept_quality(accept, "text/html") > accept_quality(accept, "application/json");
}

/* ---- pages ---- */

static const char *host_name(char buf[256])
{
        if (gethostname(buf, 256) < 0)
                return "this host";
        buf[255] = '\0';
        return buf;
}

static enum MHD_Result reply_html(Request *request, unsigned status, FILE *out, char **text,
                                  const size_t *size)
{
        struct MHD_Response *response = NULL;

        if (fclose(out) == 0)
                response = MHD_create_response_from_buffer(*size, *text, MHD_RESPMEM_MUST_FREE);
        if (response)
                *text = NULL;
        free(*text);
        return reply_send(request, status, response, "text/html; charset=utf-8", CACHE_REVALIDATE,
                          page_headers);
}

/* The newest runs as /runs lists them: few enough that reading them does not hold up the loop. */
static json_t *newest_runs(const Service *service)
{
        json_auto_t *runs = json_array();
        char before[RUN_ID_SIZE] = "";
        const RunRecord *current = NULL;
        const char *id = NULL;

        for (size_t i = 0; (current = service->current_run(service->userdata, i)); i++)
                (void) json_array_append_new(runs, json_run(current, false));
        while (json_array_size(runs) < RUNS_SHOWN &&
               (id = service->older_run(service->userdata, *before ? before : NULL))) {
                _cleanup_(past_run_freep) PastRun *run = NULL;

                (void) snprintf(before, sizeof before, "%s", id);
                if (service->read_run(service->userdata, before, &run, NULL, NULL) >= 0)
                        (void) json_array_append_new(runs, json_loadb(run->text, run->size, 0, NULL));
        }
        return runs ? json_pack("{s:O}", "runs", runs) : NULL;
}

enum MHD_Result reply_page(Request *request)
{
        json_auto_t *status = route_status_document(request->server->service);
        json_auto_t *runs = newest_runs(request->server->service);
        char host[256], *text = NULL;
        size_t size = 0;
        FILE *out = status ? open_memstream(&text, &size) : NULL;

        if (!out)
                return MHD_NO;
        page_write_status(out, status, runs, host_name(host));
        return reply_html(request, 200, out, &text, &size);
}

enum MHD_Result reply_page_of_run(Request *request, unsigned status, json_t *document)
{
        json_auto_t *run = document;
        char host[256], *text = NULL;
        size_t size = 0;
        FILE *out = run ? open_memstream(&text, &size) : NULL;

        if (!out)
                return MHD_NO;
        page_write_run(out, run, host_name(host));
        return reply_html(request, status, out, &text, &size);
}

/* ---- files ---- */

enum MHD_Result handle_page_file(Request *request)
{
        const PageFile *file = page_file_find(request->part);
        Problem problem;

        if (!file) {
                (void) problem_set(&problem, 404, "not_found", "the page has no file of this name");
                return reply_problem(request, &problem);
        }
        bool packed = accept_gzip(request->head.accept_encoding.value);
        const ReplyHeader headers[] = { { MHD_HTTP_HEADER_ETAG, file->etag },
                                        { MHD_HTTP_HEADER_VARY, MHD_HTTP_HEADER_ACCEPT_ENCODING },
                                        { MHD_HTTP_HEADER_CONTENT_ENCODING, packed ? "gzip" : NULL },
                                        { NULL, NULL } };
        struct MHD_Response *response = MHD_create_response_from_buffer(
                packed ? file->gzip_size : file->size,
                (void *) (uintptr_t) (packed ? file->gzip : file->data), MHD_RESPMEM_PERSISTENT);
        return reply_send(request, accept_etag(request->head.if_none_match.value, file->etag) ? 304 : 200,
                          response, file->type, CACHE_REVALIDATE, headers);
}
