/* SPDX-License-Identifier: Apache-2.0 */
/* /runs/ID/events: Server-Sent Events of a run. `progress` with each sample of its target, `run` at its end.
 */

#include "named.h"
#include "reply.h"
#include "routes.h"
#include "stream.h"
#include "wait.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS_MAX 8

typedef struct Events {
        Request *request;
        HttpServer *server;
        char id[RUN_ID_SIZE];
        uint64_t seen; /* the sample, or the state, that was told of last; 0: none */
} Events;

static void events_free(void *userdata)
{
        Events *events = userdata;

        events->server->n_events--;
        free(events);
}

/* What moves with each sample of RUN's target; of a target without samples, with the daemon's state. */
static uint64_t moment(const Service *service, const RunRecord *run)
{
        TargetView view;

        for (size_t i = 0; service->get_target(service->userdata, i, &view); i++)
                if (strcmp(view.name, run->target) == 0 && view.sample)
                        return view.sample->seq;
        return service->generation(service->userdata) + 1;
}

static bool has_news(const void *userdata)
{
        const Events *events = userdata;
        const Service *service = events->server->service;
        const RunRecord *run = service->find_current(service->userdata, events->id);

        return !run || moment(service, run) != events->seen;
}

static void add_event(Text *out, const char *name, const char *data, size_t size)
{
        text_add_string(out, "event: ");
        text_add_string(out, name);
        text_add_string(out, "\ndata: ");
        text_add(out, data, size);
        text_add_string(out, "\n\n");
}

static void add_run(Text *out, const char *name, const RunRecord *run)
{
        Text text = { 0 };

        text_add_json(&text, json_run(run, false));
        out->failed = out->failed || text.failed;
        if (text.data)
                add_event(out, name, text.data, text.size);
        free(text.data);
}

static StreamStep next_event(void *userdata, Text *out)
{
        Events *events = userdata;
        const Service *service = events->server->service;
        const RunRecord *run = service->find_current(service->userdata, events->id);

        if (!run) {
                _cleanup_(past_run_freep) PastRun *past = NULL;

                if (service->read_run(service->userdata, events->id, &past, NULL, NULL) < 0)
                        return STREAM_FAILED;
                add_event(out, "run", past->text, past->size);
                return STREAM_END;
        }
        uint64_t now = moment(service, run);
        if (now == events->seen) {
                /* A comment: whatever stands between notices that the stream lives. */
                text_add_string(out, ":\n");
                return STREAM_WAIT;
        }
        events->seen = now;
        add_run(out, "progress", run);
        connection_set_deadline(events->request->connection, REPLY_TIMEOUT_NS);
        return STREAM_WAIT;
}

enum MHD_Result handle_events(Request *request)
{
        HttpServer *server = request->server;
        const Service *service = server->service;
        Problem problem;

        int r = run_id_is_valid(request->part) ? 0 : -ENOENT;
        if (r >= 0 && !service->find_current(service->userdata, request->part))
                r = service->read_run(service->userdata, request->part, NULL, NULL, NULL);
        if (r < 0) {
                (void) problem_of_run(r, &problem);
                return reply_problem(request, &problem);
        }
        if (server->n_events >= EVENTS_MAX) {
                (void) problem_set(&problem, 503, "too_many_waiting", "%d streams of events are open already",
                                   EVENTS_MAX);
                problem.retry_after_s = 5;
                return reply_problem(request, &problem);
        }
        Events *events = calloc(1, sizeof *events);
        if (!events)
                return MHD_NO;
        *events = (Events){ .request = request, .server = server };
        (void) snprintf(events->id, sizeof events->id, "%s", request->part);
        server->n_events++;
        return reply_stream(
                request, "text/event-stream", NULL,
                &(StreamSource){
                        .userdata = events, .next = next_event, .free = events_free, .over = has_news });
}
