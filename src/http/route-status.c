/* SPDX-License-Identifier: Apache-2.0 */
/* /status, /healthz and /readyz. */

#include "reply.h"
#include "routes.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether the list of entity tags in an If-None-Match header has ETAG. */
static bool etag_matches(const char *list, const char *etag)
{
        size_t length = strlen(etag);

        while (list && *list) {
                list += strspn(list, " \t,");
                if (*list == '*')
                        return true;
                /* The comparison is the weak one: RFC 9110, 13.1.2. */
                if (strncmp(list, "W/", 2) == 0)
                        list += 2;
                if (strncmp(list, etag, length) == 0 && strchr(" \t,", list[length]))
                        return true;
                list += strcspn(list, ",");
        }
        return false;
}

/* Views of every target, owned by the caller; NULL when out of memory. */
static TargetView *get_targets(const Service *service, size_t n)
{
        TargetView *targets = calloc(n ? n : 1, sizeof *targets);

        for (size_t i = 0; targets && i < n; i++)
                (void) service->get_target(service->userdata, i, &targets[i]);
        return targets;
}

json_t *route_status_document(const Service *service)
{
        ServiceView view;

        service->get(service->userdata, &view);
        _cleanup_free_ TargetView *targets = get_targets(service, view.n_targets);
        return targets ? json_status(&view, targets) : NULL;
}

enum MHD_Result handle_status(Request *request)
{
        const Service *service = request->server->service;
        char etag[40];

        /* The tag stands for the state. What moves by itself (ages, the uptime) may be older in a copy that
         * was found to be still good: a client reckons them on from Date. */
        (void) snprintf(etag, sizeof etag, "\"%08" PRIx32 "-%" PRIu64 "\"", request->server->start_random,
                        service->generation(service->userdata));
        const char *known =
                MHD_lookup_connection_value(request->mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_IF_NONE_MATCH);
        /* For a 304 the library leaves out the body, and needs the response for its headers. */
        return reply_json(request, etag_matches(known, etag) ? 304 : 200, route_status_document(service),
                          CACHE_REVALIDATE,
                          (const ReplyHeader[]){ { MHD_HTTP_HEADER_ETAG, etag }, { NULL, NULL } });
}

enum MHD_Result handle_healthz(Request *request)
{
        static const char text[] = "{\"schema\":1,\"status\":\"ok\"}\n";

        return reply_text(request, 200, strdup(text), sizeof text - 1, CACHE_NEVER, NULL);
}

enum MHD_Result handle_readyz(Request *request)
{
        static const char text[] = "{\"schema\":1,\"status\":\"ready\"}\n";
        const Service *service = request->server->service;
        ServiceView view;
        Problem problem;

        service->get(service->userdata, &view);
        if (view.ready)
                return reply_text(request, 200, strdup(text), sizeof text - 1, CACHE_NEVER, NULL);
        _cleanup_free_ TargetView *targets = get_targets(service, view.n_targets);
        if (!targets)
                return MHD_NO;
        (void) problem_set(&problem, 503, "not_ready", "not every target's verdict is a fresh pass");
        return reply_problem_with(request, &problem, "targets",
                                  json_targets_not_ready(targets, view.n_targets));
}
