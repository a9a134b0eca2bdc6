/* SPDX-License-Identifier: Apache-2.0 */
/* /runs and /runs/ID: what ran and runs. */

#include "growing-text.h"
#include "reply.h"
#include "rights.h"
#include "route-page.h"
#include "routes.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUNS_DEFAULT 100
#define RUNS_MAX 1000

static bool target_exists(const Service *service, const char *name)
{
        TargetView view;

        for (size_t i = 0; service->get_target(service->userdata, i, &view); i++)
                if (strcmp(view.name, name) == 0)
                        return true;
        return false;
}

/* ---- the list ---- */

#define BLOCK_SIZE 16384
#define DOCUMENTS_PER_TURN 20 /* read before the event loop may turn */

/* The runs under way stand in the head, which is made when the request comes. Then the kept documents follow,
 * each read when its turn is there, from the newest to the oldest. */
typedef struct RunList {
        const Service *service;
        char target[NAME_SIZE]; /* empty: all */
        uint64_t limit, printed;
        char current[CONFIG_MAX_TARGETS][RUN_ID_SIZE]; /* that stand in the head: they may end meanwhile */
        size_t n_current;
        char before[RUN_ID_SIZE]; /* the last one looked at; empty: none yet */
        bool ended;
        Text piece; /* being sent */
        size_t sent;
} RunList;

static void run_list_free(void *userdata)
{
        RunList *list = userdata;

        free(list->piece.data);
        free(list);
}

static void print_current(RunList *list)
{
        const RunRecord *run = NULL;

        text_add_string(&list->piece, "{\"schema\":1,\"runs\":[");
        for (size_t i = 0; (run = list->service->current_run(list->service->userdata, i)); i++) {
                if (i < ELEMENTSOF(list->current)) {
                        memcpy(list->current[i], run->id, RUN_ID_SIZE);
                        list->n_current++;
                }
                if ((*list->target && strcmp(run->target, list->target) != 0) || list->printed == list->limit)
                        continue;
                if (list->printed++ > 0)
                        text_add_string(&list->piece, ",");
                text_add_json(&list->piece, json_run(run, false));
        }
}

static bool was_current(const RunList *list, const char *id)
{
        for (size_t i = 0; i < list->n_current; i++)
                if (strcmp(list->current[i], id) == 0)
                        return true;
        return false;
}

/* Prints the next kept run that is asked for. False: there is none any more. */
static bool print_next(RunList *list)
{
        const Service *service = list->service;

        for (int n = 0; n < DOCUMENTS_PER_TURN; n++) {
                _cleanup_(past_run_freep) PastRun *run = NULL;
                const char *id = NULL;

                if (list->printed < list->limit)
                        id = service->older_run(service->userdata, *list->before ? list->before : NULL);
                if (!id)
                        return false;
                (void) snprintf(list->before, sizeof list->before, "%s", id);
                /* One that cannot be read now is not in the list, and was told of in the journal. */
                if (was_current(list, list->before) ||
                    service->read_run(service->userdata, list->before, &run, NULL, NULL) < 0 ||
                    (*list->target && strcmp(run->target, list->target) != 0))
                        continue;
                if (list->printed++ > 0)
                        text_add_string(&list->piece, ",");
                text_add(&list->piece, run->text, run->size);
                return true;
        }
        text_add_string(&list->piece, "\n"); /* keeps the reply alive while nothing is found */
        return true;
}

static ssize_t run_list_read(void *userdata, uint64_t position, char *buf, size_t max)
{
        RunList *list = userdata;

        (void) position;
        if (list->sent == list->piece.size) {
                if (list->ended)
                        return MHD_CONTENT_READER_END_OF_STREAM;
                list->sent = list->piece.size = 0;
                if (!print_next(list)) {
                        text_add_string(&list->piece, "]}\n");
                        list->ended = true;
                }
        }
        if (list->piece.failed)
                return MHD_CONTENT_READER_END_WITH_ERROR;
        size_t size = list->piece.size - list->sent;
        if (size > max)
                size = max;
        memcpy(buf, list->piece.data + list->sent, size);
        list->sent += size;
        return (ssize_t) size;
}

enum MHD_Result handle_runs(Request *request)
{
        const Service *service = request->server->service;
        const char *target = request->query.values[0];
        uint64_t limit = 0;
        Problem problem;

        if (query_number("limit", request->query.values[1], 1, RUNS_MAX, RUNS_DEFAULT, &limit, &problem) < 0)
                return reply_problem(request, &problem);
        if (target && !target_exists(service, target)) {
                (void) problem_set(&problem, 404, "unknown_target", "no target has this name");
                return reply_problem(request, &problem);
        }
        RunList *list = calloc(1, sizeof *list);
        if (!list)
                return MHD_NO;
        list->service = service;
        list->limit = limit;
        (void) snprintf(list->target, sizeof list->target, "%s", target ? target : "");
        print_current(list);
        struct MHD_Response *response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_SIZE,
                                                                          run_list_read, list, run_list_free);
        if (!response)
                run_list_free(list);
        connection_set_deadline(request->connection, REPLY_TIMEOUT_NS);
        return reply_send(request, 200, response, "application/json", CACHE_NEVER, NULL);
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
        if (run && page_is_wanted(request))
                return reply_page_of_run(request, status, json_run(run, true));
        if (run)
                return reply_json(request, status, json_run(run, true), CACHE_NEVER, NULL);
        int r = service->read_run(service->userdata, id, NULL, &kept, &size);
        if (r >= 0 && page_is_wanted(request)) {
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

enum MHD_Result handle_run(Request *request)
{
        if (!run_id_is_valid(request->rest))
                return reply_no_run(request);
        return reply_run(request, 200, request->rest);
}

enum MHD_Result handle_abort(Request *request)
{
        const Service *service = request->server->service;
        char id[RUN_ID_SIZE], who[WHO_SIZE];
        Problem problem;

        if (!run_id_is_valid(request->rest))
                return reply_no_run(request);
        memcpy(id, request->rest, strlen(request->rest) + 1);
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
