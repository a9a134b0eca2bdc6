/* SPDX-License-Identifier: Apache-2.0 */
/* /metrics: for Prometheus, in its own text format or as OpenMetrics, by Accept. */

#include "accept.h"
#include "cached.h"
#include "exposition.h"
#include "routes.h"
#include "view-all.h"

#include "tierprobe/cleanup.h"

#include <stdlib.h>

static void make(const HttpServer *server, Text *out, MetricsForm form)
{
        RequestCount requests[_METHOD_MAX * N_STATUSES];
        ServiceView view;
        MetricsFacts facts = { .service = &view, .requests = requests };

        for (size_t m = 0; m < _METHOD_MAX; m++)
                for (size_t s = 0; s < N_STATUSES; s++)
                        if (server->counts[m][s] > 0)
                                requests[facts.n_requests++] =
                                        (RequestCount){ .method = http_methods[m],
                                                        .status = http_statuses[s],
                                                        .count = server->counts[m][s] };
        _cleanup_free_ TargetView *targets = view_all(server->service, &view);
        if (!targets) {
                out->failed = true;
                return;
        }
        facts.targets = targets;
        metrics_write(out, &facts, form);
}

static void make_text(const HttpServer *server, Text *out)
{
        make(server, out, METRICS_TEXT);
}

static void make_open(const HttpServer *server, Text *out)
{
        make(server, out, METRICS_OPEN);
}

enum MHD_Result handle_metrics(Request *request)
{
        static const CachedKind text = { .type = "text/plain; version=0.0.4; charset=utf-8",
                                         .vary = MHD_HTTP_HEADER_ACCEPT,
                                         .make = make_text };
        static const CachedKind open = { .type = "application/openmetrics-text; version=1.0.0; charset=utf-8",
                                         .vary = MHD_HTTP_HEADER_ACCEPT,
                                         .make = make_open };
        const char *accept = request->head.accept.value;

        /* Who takes anything gets what has always been there. */
        if (accept &&
            accept_quality(accept, "application/openmetrics-text") > accept_quality(accept, "text/plain"))
                return reply_cached(request, &request->server->cached[CACHED_OPENMETRICS], &open);
        return reply_cached(request, &request->server->cached[CACHED_METRICS], &text);
}
