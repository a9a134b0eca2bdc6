/* SPDX-License-Identifier: Apache-2.0 */
/* The table of routes, and the route that shows it. */

#include "routes.h"
#include "cached.h"
#include "openapi.h"
#include "reply.h"
#include "route-page.h"

#include "tierprobe/json.h"

#include <stdio.h>
#include <string.h>

static enum MHD_Result handle_index(Request *request), handle_openapi(Request *request);

#define JSON(name) .status = 200, .schema = (name)

static const Route routes[] = {
        { "/",
          "the page for people, or this list",
          handle_index,
          { NULL },
          METHOD_GET,
          JSON("Routes"),
          .types = { "text/html" } },
        { "/status",
          "everything a poller needs; brief=yes for verdicts alone, whose ETag stays while they do",
          handle_status,
          { "brief" },
          METHOD_GET,
          JSON("StatusAnswer") },
        { "/history",
          "samples, oldest first; with step=SECONDS buckets of them; CSV by Accept",
          handle_history,
          { "target", "since", "limit", "run", "step", "from", "to" },
          METHOD_GET,
          JSON("History"),
          .types = { "text/csv" } },
        { "/run",
          "start a test; wait=SECONDS for its end",
          handle_start,
          { "target", "profile", "together", "wait" },
          METHOD_POST,
          .takes_body = true,
          .status = 202,
          .schema = "Started" },
        { "/runs",
          "past and current runs, newest first; before=next_cursor goes on with older ones",
          handle_runs,
          { "target", "verdict", "since", "before", "limit" },
          METHOD_GET,
          JSON("Runs") },
        { "/runs/ID",
          "one run with its evidence; wait=SECONDS for its end",
          handle_run,
          { "wait" },
          METHOD_GET,
          JSON("RunDocument"),
          .types = { "text/html" } },
        { "/runs/ID/events",
          "Server-Sent Events of a run: progress, and at its end the run",
          handle_events,
          { NULL },
          METHOD_GET,
          .status = 200,
          .types = { "text/event-stream" } },
        { "/runs/ID",
          "abort a run",
          handle_abort,
          { NULL },
          METHOD_DELETE,
          .status = 202,
          .schema = "RunDocument" },
        { "/page/FILE",
          "files of the page for people",
          handle_page_file,
          { NULL },
          METHOD_GET,
          .status = 200,
          .types = { "text/css", "text/javascript", "image/svg+xml" } },
        { "/metrics",
          "for Prometheus; OpenMetrics by Accept",
          handle_metrics,
          { NULL },
          METHOD_GET,
          .status = 200,
          .types = { "text/plain", "application/openmetrics-text" } },
        { "/healthz", "the daemon lives", handle_healthz, { NULL }, METHOD_GET, JSON("Health") },
        { "/readyz",
          "200 while every target's verdict is a fresh pass",
          handle_readyz,
          { NULL },
          METHOD_GET,
          JSON("Health") },
        { "/openapi.json",
          "this description, as OpenAPI 3.1",
          handle_openapi,
          { NULL },
          METHOD_GET,
          .status = 200,
          .types = { TYPE_JSON } },
};
#define N_ROUTES (sizeof routes / sizeof routes[0])

/* Whether PATH is one of the route's; *PART gets what stands where the route has a word in capitals. */
static bool path_match(const Route *route, const char *path, char part[NAME_SIZE])
{
        const char *pattern = route->path;

        *part = '\0';
        while (*pattern && *path) {
                if (*pattern < 'A' || *pattern > 'Z') {
                        if (*pattern++ != *path++)
                                return false;
                        continue;
                }
                size_t size = strcspn(path, "/");
                if (size == 0 || size >= NAME_SIZE)
                        return false;
                memcpy(part, path, size);
                part[size] = '\0';
                path += size;
                pattern += strspn(pattern, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
        }
        return !*pattern && !*path;
}

const Route *route_find(const char *path, Method method, char ret_part[NAME_SIZE], char ret_allow[ALLOW_SIZE])
{
        size_t at = 0;

        ret_allow[0] = '\0';
        for (size_t i = 0; i < N_ROUTES; i++) {
                const Route *route = &routes[i];

                if (!path_match(route, path, ret_part))
                        continue;
                if (method == route->method || (method == METHOD_HEAD && route->method == METHOD_GET))
                        return route;
                if (at < ALLOW_SIZE)
                        at += (size_t) snprintf(ret_allow + at, ALLOW_SIZE - at, "%s, ",
                                                route->method == METHOD_GET ? "GET, HEAD"
                                                                            : http_methods[route->method]);
        }
        if (at > 0 && at < ALLOW_SIZE)
                (void) snprintf(ret_allow + at, ALLOW_SIZE - at, "OPTIONS");
        return NULL;
}

static json_t *list_routes(void)
{
        json_auto_t *list = json_array();

        for (const Route *route = routes; list && route < routes + N_ROUTES; route++)
                if (json_array_append_new(list,
                                          json_pack("{s:s, s:s, s:s}", "method", http_methods[route->method],
                                                    "path", route->path, "meaning", route->meaning)) < 0)
                        return NULL;
        return list ? json_pack("{s:i, s:s, s:O}", "schema", JSON_SCHEMA, "service", "tierprobed", "routes",
                                list)
                    : NULL;
}

static enum MHD_Result handle_index(Request *request)
{
        return route_page_is_wanted(request) ? reply_page(request)
                                             : reply_json(request, 200, list_routes(), CACHE_NEVER, NULL);
}

static void make_openapi(const HttpServer *server, Text *out)
{
        (void) server;
        text_add_json(out, openapi_document(routes, N_ROUTES));
        text_add_string(out, "\n");
}

static enum MHD_Result handle_openapi(Request *request)
{
        static const CachedKind kind = { .type = TYPE_JSON, .etag = ETAG_CONTENT, .make = make_openapi };

        return reply_cached(request, &request->server->cached[CACHED_OPENAPI], &kind);
}
