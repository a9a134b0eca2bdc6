/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics document: one table of metrics, two forms. Knows the views and nothing of libmicrohttpd.
 * Private to src/http. */
#pragma once

#include "growing-text.h"

#include "tierprobe/views.h"

/* Requests answered, by method and status. */
typedef struct RequestCount {
        const char *method;
        unsigned status;
        uint64_t count;
} RequestCount;

typedef struct MetricsFacts {
        const ServiceView *service;
        const TargetView *targets; /* service->n_targets of them */
        const RequestCount *requests;
        size_t n_requests;
} MetricsFacts;

typedef enum MetricsForm {
        METRICS_TEXT, /* Prometheus text format 0.0.4 */
        METRICS_OPEN, /* OpenMetrics 1.0.0 */
} MetricsForm;

/* Writes all of them. A target has its series from the first on; what is not known is NaN, never 0. */
void metrics_write(Text *out, const MetricsFacts *facts, MetricsForm form);
