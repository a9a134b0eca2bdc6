/* SPDX-License-Identifier: Apache-2.0 */
/* The table of routes, and the route that shows it. */

#include "routes.h"
#include "growing-text.h"
#include "reply.h"
#include "route-page.h"

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
        { "/healthz", "the daemon lives", handle_healthz, { NULL }, METHOD_GET, false },
        { "/readyz",
          "200 while every target's last verdict is a fresh pass",
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

static enum MHD_Result handle_index(Request *request)
{
        Text text = { 0 };
        size_t size = 0;

        if (page_is_wanted(request))
                return reply_page(request);
        /* Words of our own table: nothing in them needs escaping. */
        text_add_string(&text, "{\"schema\":1,\"service\":\"tierprobed\",\"routes\":[");
        for (size_t i = 0; i < N_ROUTES; i++) {
                const Route *route = &routes[i];

                text_add_string(&text, i > 0 ? ",{\"method\":\"" : "{\"method\":\"");
                text_add_string(&text, http_methods[route->method]);
                text_add_string(&text, "\",\"path\":\"");
                text_add_string(&text, strcmp(route->path, "/runs/") == 0   ? "/runs/ID"
                                       : strcmp(route->path, "/page/") == 0 ? "/page/FILE"
                                                                            : route->path);
                text_add_string(&text, "\",\"meaning\":\"");
                text_add_string(&text, route->meaning);
                text_add_string(&text, "\"}");
        }
        text_add_string(&text, "]}\n");
        char *data = text_take(&text, &size);
        return reply_text(request, 200, data, size, CACHE_NEVER, NULL);
}
