/* SPDX-License-Identifier: Apache-2.0 */
/* /runs and /runs/ID: what ran and runs. */

#include "named.h"
#include "reply.h"
#include "rights.h"
#include "route-page.h"
#include "routes.h"
#include "stream.h"
#include "wait.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUNS_DEFAULT 100
#define RUNS_MAX 1000

/* ---- the list ---- */

#define DOCUMENTS_PER_PIECE 5

/* The runs under way stand at the begin, which is made when the request comes. Then the kept documents
 * follow, each read when its turn is there, from the newest to the oldest. */
typedef struct RunList {
        const Service *service;
        char target[NAME_SIZE]; /* empty: all */
        uint64_t limit, printed;
        char current[CONFIG_MAX_TARGETS][RUN_ID_SIZE]; /* that stand at the begin: they may end meanwhile */
        size_t n_current;
        char before[RUN_ID_SIZE]; /* the last one looked at; empty: none yet */
        Text begin;
} RunList;

static void run_list_free(void *userdata)
{
        RunList *list = userdata;

        free(list->begin.data);
        free(list);
}

static void print_current(RunList *list)
{
        const RunRecord *run = NULL;

        text_add_string(&list->begin, "{\"schema\":1,\"runs\":[");
        for (size_t i = 0; (run = list->service->current_run(list->service->userdata, i)); i++) {
                if (i < ELEMENTSOF(list->current)) {
                        memcpy(list->current[i], run->id, RUN_ID_SIZE);
                        list->n_current++;
                }
                if ((*list->target && strcmp(run->target, list->target) != 0) || list->printed == list->limit)
                        continue;
                if (list->printed++ > 0)
                        text_add_string(&list->begin, ",");
                text_add_json(&list->begin, json_run(run, false));
        }
}

static bool was_current(const RunList *list, const char *id)
{
        for (size_t i = 0; i < list->n_current; i++)
                if (strcmp(list->current[i], id) == 0)
                        return true;
        return false;
}

/* The next kept run that is asked for. */
static StreamStep next_run(void *userdata, Text *out)
{
        RunList *list = userdata;
        const Service *service = list->service;

        if (list->begin.size > 0 || list->begin.failed) {
                text_add_text(out, &list->begin);
                return STREAM_MORE;
        }
        for (int n = 0; n < DOCUMENTS_PER_PIECE; n++) {
                _cleanup_(past_run_freep) PastRun *run = NULL;
                const char *id = NULL;

                if (list->printed < list->limit)
                        id = service->older_run(service->userdata, *list->before ? list->before : NULL);
                if (!id) {
                        text_add_string(out, "]}\n");
                        return STREAM_END;
                }
                (void) snprintf(list->before, sizeof list->before, "%s", id);
                /* One that cannot be read now is not in the list, and was told of in the journal. */
                if (was_current(list, list->before) ||
                    service->read_run(service->userdata, list->before, &run, NULL, NULL) < 0 ||
                    (*list->target && strcmp(run->target, list->target) != 0))
                        continue;
                if (list->printed++ > 0)
                        text_add_string(out, ",");
                text_add(out, run->text, run->size);
                return STREAM_MORE;
        }
        return STREAM_MORE;
}

enum MHD_Result handle_runs(Request *request)
{
        const Service *service = request->server->service;
        const char *target = query_value(&request->query, "target");
        uint64_t limit = 0;
        TargetView view;
        Problem problem;

        if (query_number(&request->query, "limit", 1, RUNS_MAX, RUNS_DEFAULT, &limit, &problem) < 0)
                return reply_problem(request, &problem);
        if (target && target_by_name(service, target, &view, &problem) < 0)
                return reply_problem(request, &problem);
        RunList *list = calloc(1, sizeof *list);
        if (!list)
                return MHD_NO;
        list->service = service;
        list->limit = limit;
        (void) snprintf(list->target, sizeof list->target, "%s", target ? target : "");
        print_current(list);
        return reply_stream(request, TYPE_JSON, NULL,
                            &(StreamSource){ .userdata = list, .next = next_run, .free = run_list_free });
}

/* ---- one run ---- */

static enum MHD_Result reply_no_run(Request *request)
{
        Problem problem;

        (void) problem_set(&problem, 404, "unknown_run", "no run has this id; it may be too old to be kept");
        return reply_problem(request, &problem);
}

/* The run as a document of its own: what is known of it while it is under way, then the one that is kept,
 * with all the evidence. */
static enum MHD_Result reply_run(Request *request, unsigned status, const char *id)
{
        const Service *service = request->server->service;
        const RunRecord *run = service->find_current(service->userdata, id);
        char *kept = NULL;
        size_t size = 0;
        Problem problem;

        connection_set_deadline(request->connection, REPLY_TIMEOUT_NS);
        if (run && route_page_is_wanted(request))
                return reply_page_of_run(request, status, json_run(run, true));
        if (run)
                return reply_json(request, status, json_run(run, true), CACHE_NEVER, NULL);
        int r = service->read_run(service->userdata, id, NULL, &kept, &size);
        if (r >= 0 && route_page_is_wanted(request)) {
                json_t *document = json_loadb(kept, size, 0, NULL);

                free(kept);
                return reply_page_of_run(request, status, document);
        }
        if (r >= 0)
                return reply_text(request, status, kept, size, CACHE_NEVER, NULL);
        if (r == -ENOENT || r == -EBADMSG)
                return reply_no_run(request);
        (void) problem_set(&problem, 503, "run_unreadable", "the run is kept but cannot be read now: %s",
                           strerror(-r));
        return reply_problem(request, &problem);
}

static bool run_is_over(const void *userdata)
{
        const Request *request = userdata;

        return !request->server->service->find_current(request->server->service->userdata, request->part);
}

enum MHD_Result handle_run(Request *request)
{
        Problem problem;

        if (!run_id_is_valid(request->part))
                return reply_no_run(request);
        switch (wait_for(request, run_is_over, &problem)) {
        case WAIT_RESTS:
                return MHD_YES;
        case WAIT_REFUSED:
                return reply_problem(request, &problem);
        case WAIT_OVER:
                break;
        }
        return reply_run(request, 200, request->part);
}

enum MHD_Result handle_abort(Request *request)
{
        const Service *service = request->server->service;
        char id[RUN_ID_SIZE], who[WHO_SIZE];
        Problem problem;

        if (!run_id_is_valid(request->part))
                return reply_no_run(request);
        memcpy(id, request->part, strlen(request->part) + 1);
        request_who(request, who);
        switch (service->abort_run(service->userdata, id, who)) {
        case ABORT_ACCEPTED:
                break;
        case ABORT_NO_RUN:
                return reply_no_run(request);
        case ABORT_ENDED:
                (void) problem_set(&problem, 409, "run_ended", "the run has ended already");
                return reply_problem(request, &problem);
        }
        return reply_run(request, 202, id);
}
