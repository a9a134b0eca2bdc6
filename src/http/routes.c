/* SPDX-License-Identifier: Apache-2.0 */
/* The table of routes, and the route that shows it. */

#include "routes.h"
#include "reply.h"
#include "route-page.h"

#include "tierprobe/json.h"

#include <stdio.h>
#include <string.h>

static enum MHD_Result handle_index(Request *request);

static const Route routes[] = {
        { "/", "the page for people (text/html), or this list", handle_index, { NULL }, METHOD_GET, false },
        { "/status", "everything a poller needs", handle_status, { NULL }, METHOD_GET, false },
        { "/history",
          "samples, oldest first",
          handle_history,
          { "target", "since", "limit", "run" },
          METHOD_GET,
          false },
        { "/run", "start a test", handle_start, { "target", "profile" }, METHOD_POST, true },
        { "/runs",
          "past and current runs, newest first",
          handle_runs,
          { "target", "limit" },
          METHOD_GET,
          false },
        { "/runs/", "one run with its evidence", handle_run, { NULL }, METHOD_GET, false },
        { "/runs/", "abort a run", handle_abort, { NULL }, METHOD_DELETE, false },
        { "/page/", "files of the page for people", handle_page_file, { NULL }, METHOD_GET, false },
        { "/metrics", "for Prometheus; OpenMetrics by Accept", handle_metrics, { NULL }, METHOD_GET, false },
        { "/healthz", "the daemon lives", handle_healthz, { NULL }, METHOD_GET, false },
        { "/readyz",
          "200 while every target's verdict is a fresh pass",
          handle_readyz,
          { NULL },
          METHOD_GET,
          false },
};
#define N_ROUTES (sizeof routes / sizeof routes[0])

/* What follows the route's prefix, "" for a whole path, NULL when PATH is another. */
static const char *path_match(const Route *route, const char *path)
{
        size_t length = strlen(route->path);

        if (length < 2 || route->path[length - 1] != '/')
                return strcmp(path, route->path) == 0 ? "" : NULL;
        if (strncmp(path, route->path, length) != 0 || !path[length] || strchr(path + length, '/'))
                return NULL;
        return path + length;
}

const Route *route_find(const char *path, Method method, const char **ret_rest, char ret_allow[ALLOW_SIZE])
{
        size_t at = 0;

        ret_allow[0] = '\0';
        for (size_t i = 0; i < N_ROUTES; i++) {
                const Route *route = &routes[i];
                const char *rest = path_match(route, path);

                if (!rest)
                        continue;
                if (method == route->method || (method == METHOD_HEAD && route->method == METHOD_GET)) {
                        *ret_rest = rest;
                        return route;
                }
                at += (size_t) snprintf(ret_allow + at, ALLOW_SIZE - at, "%s, ",
                                        route->method == METHOD_GET ? "GET, HEAD"
                                                                    : http_methods[route->method]);
        }
        if (at > 0)
                (void) snprintf(ret_allow + at, ALLOW_SIZE - at, "OPTIONS");
        return NULL;
}

static json_t *list_routes(void)
{
        json_auto_t *list = json_array();

        for (size_t i = 0; list && i < N_ROUTES; i++) {
                const Route *route = &routes[i];
                const char *path = strcmp(route->path, "/runs/") == 0   ? "/runs/ID"
                                   : strcmp(route->path, "/page/") == 0 ? "/page/FILE"
                                                                        : route->path;

                if (json_array_append_new(list,
                                          json_pack("{s:s, s:s, s:s}", "method", http_methods[route->method],
                                                    "path", path, "meaning", route->meaning)) < 0)
                        return NULL;
        }
        return list ? json_pack("{s:i, s:s, s:O}", "schema", JSON_SCHEMA, "service", "tierprobed", "routes",
                                list)
                    : NULL;
}

static enum MHD_Result handle_index(Request *request)
{
        return route_page_is_wanted(request) ? reply_page(request)
                                             : reply_json(request, 200, list_routes(), CACHE_NEVER, NULL);
}
