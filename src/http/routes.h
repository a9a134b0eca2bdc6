/* SPDX-License-Identifier: Apache-2.0 */
/* The routes: which path and method leads where. Private to src/http. */
#pragma once

#include <jansson.h>

#include "server.h"

typedef struct Route {
        const char *path; /* a word in capitals stands for any part: "/runs/ID" */
        const char *meaning;
        enum MHD_Result (*handle)(Request *request);
        const char *parameters[QUERY_MAX + 1]; /* known query parameters */
        Method method;                         /* METHOD_GET serves HEAD too */
        bool takes_body;

        /* What it answers when all is well. */
        unsigned status;
        const char *schema;   /* of its JSON, a name of schemas.json; NULL: it answers none */
        const char *types[4]; /* the other content types, up to NULL */
} Route;

/* Finds the route of PATH and METHOD; RET_PART gets the part that the route leaves open. NULL: no such path
 * (*RET_ALLOW empty), or not with this method (*RET_ALLOW names those that would do). */
const Route *route_find(const char *path, Method method, char ret_part[NAME_SIZE],
                        char ret_allow[ALLOW_SIZE]);

/* The handlers, by file. */
enum MHD_Result handle_status(Request *request);       /* route-status.c */
json_t *route_status_document(const Service *service); /* NULL: out of memory */
enum MHD_Result handle_healthz(Request *request);
enum MHD_Result handle_readyz(Request *request);
enum MHD_Result handle_metrics(Request *request); /* route-metrics.c */
enum MHD_Result handle_history(Request *request); /* route-history.c */
enum MHD_Result handle_start(Request *request);   /* route-start.c */
enum MHD_Result handle_runs(Request *request);    /* route-runs.c */
enum MHD_Result handle_run(Request *request);
enum MHD_Result handle_events(Request *request); /* route-events.c */
enum MHD_Result handle_abort(Request *request);
