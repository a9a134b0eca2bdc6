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
#include "tierprobe/clock.h"
#include "tierprobe/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUNS_DEFAULT 100
#define RUNS_MAX 1000

/* ---- the list ---- */

#define DOCUMENTS_PER_PIECE 5
#define ABOVE_ALL "z" /* a cursor: kept runs from the newest one on */

/* The runs under way stand at the begin, which is made when the request comes. Then the kept documents
 * follow, each read when its turn is there, from the newest to the oldest. */
typedef struct RunList {
        const Service *service;
        char target[NAME_SIZE]; /* empty: all */
        Verdict verdict;        /* _VERDICT_MAX: any */
        int64_t since_real_ns;  /* that were asked for earlier are left out */
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
        /* What goes on with older ones has had these; a run under way has no verdict. */
        for (size_t i = 0; !*list->before && list->verdict == _VERDICT_MAX &&
                           (run = list->service->current_run(list->service->userdata, i));
             i++) {
                if (i < ELEMENTSOF(list->current)) {
                        memcpy(list->current[i], run->id, RUN_ID_SIZE);
                        list->n_current++;
                }
                if ((*list->target && strcmp(run->target, list->target) != 0) ||
                    run->queued_real_ns < list->since_real_ns || list->printed == list->limit)
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

static bool is_wanted(const RunList *list, const PastRun *run)
{
        int64_t asked_ns = run->queued_real_ns ? run->queued_real_ns : run->started_real_ns;

        return (!*list->target || strcmp(run->target, list->target) == 0) &&
               (list->verdict == _VERDICT_MAX || run->verdict == list->verdict) &&
               asked_ns >= list->since_real_ns;
}

/* Where ids tell the time, those that follow are older still. */
static bool is_too_old(const RunList *list, const char *id)
{
        int64_t asked_ns = 0;

        return run_id_time(id, &asked_ns) >= 0 && asked_ns + (int64_t) NS_PER_S <= list->since_real_ns;
}

/* A cursor stands only where there is more. */
static void print_end(const RunList *list, bool more, Text *out)
{
        text_add_string(out, "],\"next_cursor\":");
        text_add_string(out, more ? "\"" : "null");
        if (more) {
                text_add_string(out, *list->before ? list->before : ABOVE_ALL);
                text_add_string(out, "\"");
        }
        text_add_string(out, "}\n");
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
                const char *id = service->older_run(service->userdata, *list->before ? list->before : NULL);

                if (!id || list->printed == list->limit || is_too_old(list, id)) {
                        print_end(list, id && !is_too_old(list, id), out);
                        return STREAM_END;
                }
                (void) snprintf(list->before, sizeof list->before, "%s", id);
                /* One that cannot be read now is not in the list, and was told of in the journal. */
                if (was_current(list, list->before) ||
                    service->read_run(service->userdata, list->before, &run, NULL, NULL) < 0 ||
                    !is_wanted(list, run))
                        continue;
                if (list->printed++ > 0)
                        text_add_string(out, ",");
                text_add(out, run->text, run->size);
                return STREAM_MORE;
        }
        return STREAM_MORE;
}

static int read_filters(RunList *list, const Query *query, Problem *problem)
{
        const char *target = query_value(query, "target"), *verdict = query_value(query, "verdict");
        const char *before = query_value(query, "before");
        TargetView view;

        list->verdict = _VERDICT_MAX;
        if (query_number(query, "limit", 1, RUNS_MAX, RUNS_DEFAULT, &list->limit, problem) < 0 ||
            query_time(query, "since", INT64_MIN, &list->since_real_ns, problem) < 0 ||
            (target && target_by_name(list->service, target, &view, problem) < 0))
                return -1;
        if (verdict &&
            (verdict_from_string(verdict, &list->verdict) < 0 || list->verdict == VERDICT_NEVER_RUN))
                return problem_set(problem, 400, "bad_parameter",
                                   "\"verdict\" is pass, fail or inconclusive");
        if (before && !run_id_is_valid(before))
                return problem_set(problem, 400, "bad_cursor",
                                   "\"before\" is the next_cursor of an earlier answer");
        (void) snprintf(list->target, sizeof list->target, "%s", target ? target : "");
        (void) snprintf(list->before, sizeof list->before, "%s", before ? before : "");
        return 0;
}

enum MHD_Result handle_runs(Request *request)
{
        const Service *service = request->server->service;
        Problem problem;

        RunList *list = calloc(1, sizeof *list);
        if (!list)
                return MHD_NO;
        list->service = service;
        if (read_filters(list, &request->query, &problem) < 0) {
                free(list);
                return reply_problem(request, &problem);
        }
        print_current(list);
        return reply_stream(request, TYPE_JSON, NULL,
                            &(StreamSource){ .userdata = list, .next = next_run, .free = run_list_free });
}

/* ---- one run ---- */

static enum MHD_Result reply_unreadable(Request *request, int error)
{
        Problem problem;

        (void) problem_of_run(error, &problem);
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
        return reply_unreadable(request, r);
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
                return reply_unreadable(request, -ENOENT);
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
                return reply_unreadable(request, -ENOENT);
        memcpy(id, request->part, strlen(request->part) + 1);
        request_who(request, who);
        switch (service->abort_run(service->userdata, id, who)) {
        case ABORT_ACCEPTED:
                break;
        case ABORT_NO_RUN:
                return reply_unreadable(request, -ENOENT);
        case ABORT_ENDED:
                (void) problem_set(&problem, 409, "run_ended", "the run has ended already");
                return reply_problem(request, &problem);
        }
        return reply_run(request, 202, id);
}
