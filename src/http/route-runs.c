/* SPDX-License-Identifier: Apache-2.0 */
/* /runs and /runs/ID: what ran and runs. */

#include "growing-text.h"
#include "reply.h"
#include "routes.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/json.h"

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

enum MHD_Result handle_runs(Request *request)
{
        const Service *service = request->server->service;
        const char *target = request->query.values[0];
        const RunRecord *run = NULL;
        uint64_t limit = 0, n = 0;
        size_t size = 0;
        Text text = { 0 };
        Problem problem;

        if (query_number("limit", request->query.values[1], 1, RUNS_MAX, RUNS_DEFAULT, &limit, &problem) < 0)
                return reply_problem(request, &problem);
        if (target && !target_exists(service, target)) {
                (void) problem_set(&problem, 404, "unknown_target", "no target has this name");
                return reply_problem(request, &problem);
        }
        text_add_string(&text, "{\"schema\":1,\"runs\":[");
        for (size_t i = 0; n < limit && (run = service->get_run(service->userdata, i)); i++) {
                if (target && strcmp(run->target, target) != 0)
                        continue;
                if (n++ > 0)
                        text_add_string(&text, ",");
                text_add_json(&text, json_run(run, false));
        }
        text_add_string(&text, "]}\n");
        char *data = text_take(&text, &size);
        connection_set_deadline(request->connection, REPLY_TIMEOUT_NS);
        return reply_text(request, 200, data, size, CACHE_NEVER, NULL);
}

static enum MHD_Result reply_no_run(Request *request)
{
        Problem problem;

        (void) problem_set(&problem, 404, "unknown_run", "no run has this id; it may be too old to be kept");
        return reply_problem(request, &problem);
}

/* Whether a kept document is what it should be: other hands may have been in the state directory. */
static bool is_run(const char *text, size_t size, const char *id)
{
        _cleanup_(run_record_freep) RunRecord *record = NULL;
        char error[128];

        return run_record_from_json(text, size, &record, error, sizeof error) >= 0 &&
               strcmp(record->id, id) == 0;
}

/* The run as a document of its own: the kept one, which has all the evidence, else what is known of it. */
static enum MHD_Result reply_run(Request *request, unsigned status, const char *id)
{
        const Service *service = request->server->service;
        const RunStore *store = service->run_store(service->userdata);
        const RunRecord *run = service->find_run(service->userdata, id);
        char *kept = NULL;
        size_t size = 0;

        connection_set_deadline(request->connection, REPLY_TIMEOUT_NS);
        if (store && (!run || run_state_ended(run->state)) && run_store_get(store, id, &kept, &size) == 0) {
                if (is_run(kept, size, id))
                        return reply_text(request, status, kept, size, CACHE_NEVER, NULL);
                free(kept);
        }
        if (!run)
                return reply_no_run(request);
        return reply_json(request, status, json_run(run, true), CACHE_NEVER, NULL);
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
        connection_who(request->connection, who);
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
