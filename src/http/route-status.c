/* SPDX-License-Identifier: Apache-2.0 */
/* /status, /healthz and /readyz. */

#include "cached.h"
#include "reply.h"
#include "routes.h"
#include "view-all.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/json.h"
#include "tierprobe/units.h"

#include <stdlib.h>
#include <string.h>

json_t *route_status_document(const Service *service)
{
        ServiceView view;

        _cleanup_free_ TargetView *targets = view_all(service, &view);
        return targets ? json_status(&view, targets) : NULL;
}

static void make_status(const HttpServer *server, Text *out)
{
        text_add_json(out, route_status_document(server->service));
        text_add_string(out, "\n");
}

static void make_status_brief(const HttpServer *server, Text *out)
{
        ServiceView view;

        _cleanup_free_ TargetView *targets = view_all(server->service, &view);
        text_add_json(out, targets ? json_status_brief(&view, targets) : NULL);
        text_add_string(out, "\n");
}

enum MHD_Result handle_status(Request *request)
{
        static const CachedKind kind = { .type = TYPE_JSON, .etag = ETAG_STATE, .make = make_status };
        static const CachedKind in_brief = { .type = TYPE_JSON,
                                             .etag = ETAG_CONTENT,
                                             .make = make_status_brief };
        const char *text = query_value(&request->query, "brief");
        bool brief = false;
        Problem problem;

        if (text && parse_bool(text, &brief) < 0) {
                (void) problem_set(&problem, 400, "bad_parameter", "\"brief\" is yes or no");
                return reply_problem(request, &problem);
        }
        if (brief)
                return reply_cached(request, &request->server->cached[CACHED_STATUS_BRIEF], &in_brief);
        return reply_cached(request, &request->server->cached[CACHED_STATUS], &kind);
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
        _cleanup_free_ TargetView *targets = view_all(service, &view);
        if (!targets)
                return MHD_NO;
        (void) problem_set(&problem, 503, "not_ready", "not every target's verdict is a fresh pass");
        return reply_problem_with(request, &problem, "targets",
                                  json_targets_not_ready(targets, view.n_targets));
}
