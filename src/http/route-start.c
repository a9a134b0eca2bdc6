/* SPDX-License-Identifier: Apache-2.0 */
/* POST /run: asks for a run of one target or of all. The client names what the configuration names, and never
 * a path or a size. */

#include "growing-text.h"
#include "named.h"
#include "reply.h"
#include "rights.h"
#include "routes.h"
#include "wait.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/json.h"
#include "tierprobe/units.h"

#include <stdio.h>
#include <string.h>

typedef struct Start {
        char target[QUERY_VALUE_SIZE], profile[QUERY_VALUE_SIZE]; /* empty: not given */
        bool together;
        char who[WHO_SIZE];
        StartAnswer answers[CONFIG_MAX_TARGETS];
        size_t n_answers;
} Start;

/* Puts VALUE into FIELD; a second one must say the same. */
static int take_choice(const char *name, char *field, const char *value, Problem *problem)
{
        if (!value || !*value)
                return 0;
        if (*field && strcmp(field, value) != 0)
                return problem_set(problem, 400, "contradiction", "query and body name a different %s", name);
        (void) snprintf(field, QUERY_VALUE_SIZE, "%s", value);
        return 0;
}

static int read_choices(const Request *request, Start *start, Problem *problem)
{
        StartRequest body = { 0 };
        char error[128];

        if (request->body_size > 0 &&
            json_read_start_request(request->body, request->body_size, &body, error, sizeof error) < 0)
                return problem_set(problem, 400, "bad_body", "%s", error);
        if (take_choice("target", start->target, query_value(&request->query, "target"), problem) < 0 ||
            take_choice("target", start->target, body.target, problem) < 0 ||
            take_choice("profile", start->profile, query_value(&request->query, "profile"), problem) < 0 ||
            take_choice("profile", start->profile, body.profile, problem) < 0)
                return -1;
        const char *together = query_value(&request->query, "together");
        if (together && parse_bool(together, &start->together) < 0)
                return problem_set(problem, 400, "bad_parameter", "\"together\" is yes or no");
        start->together = start->together || body.together;
        return 0;
}

static int start_one(const Service *service, Start *start, const char *target, Problem *problem)
{
        StartAnswer *answer = &start->answers[start->n_answers];

        memset(answer, 0, sizeof *answer);
        int r = service->start_run(service->userdata,
                                   &(StartOrder){ .target = target,
                                                  .profile = *start->profile ? start->profile : NULL,
                                                  .trigger = TRIGGER_MANUAL,
                                                  .who = start->who,
                                                  .together = start->together },
                                   answer);
        if (r < 0)
                return problem_set(problem, 500, "internal_error", "the run could not be started");
        if (answer->result == START_NO_TARGET)
                return target_unknown(service, problem);
        if (answer->result == START_NO_PROFILE)
                return profile_unknown(service, problem);
        answer->target = target;
        start->n_answers++;
        return 0;
}

static int start_all(const Service *service, Start *start, Problem *problem)
{
        const char *names[CONFIG_MAX_TARGETS];
        size_t n = 0;
        TargetView view;

        /* Names first: starting a run may move what a view points at, but not the configuration. */
        while (n < ELEMENTSOF(names) && service->get_target(service->userdata, n, &view))
                names[n++] = view.name;
        if (n == 0)
                return problem_set(problem, 503, "no_targets", "no target is configured");
        for (size_t i = 0; i < n; i++) {
                int r = start_one(service, start, names[i], problem);
                /* Runs that were started are told of, whatever became of the rest. */
                if (r < 0 && start->n_answers == 0)
                        return r;
                if (r < 0)
                        break;
        }
        return 0;
}

static size_t count_result(const Start *start, StartResult result)
{
        size_t n = 0;

        for (size_t i = 0; i < start->n_answers; i++)
                n += start->answers[i].result == result;
        return n;
}

/* None was started: the answer is the best hope of the client. Waiting helps, being told of the run under way
 * helps, a guard's refusal needs a person. */
static enum MHD_Result reply_not_started(Request *request, const Start *start)
{
        Problem problem;

        if (count_result(start, START_BUSY) == start->n_answers) {
                (void) problem_set(&problem, 409, "run_in_progress",
                                   start->n_answers == 1
                                           ? "a run of this target is queued or running already"
                                           : "runs of all targets are queued or running already");
        } else if (count_result(start, START_COOLDOWN) + count_result(start, START_OVER_BUDGET) > 0) {
                const StartAnswer *soonest = NULL;

                for (size_t i = 0; i < start->n_answers; i++) {
                        const StartAnswer *answer = &start->answers[i];

                        if ((answer->result == START_COOLDOWN || answer->result == START_OVER_BUDGET) &&
                            (!soonest || answer->retry_after_s < soonest->retry_after_s))
                                soonest = answer;
                }
                (void) problem_set(&problem, 429, json_start_code(soonest), "%s", soonest->detail);
                problem.retry_after_s = soonest->retry_after_s ? soonest->retry_after_s : 1;
        } else {
                const StartAnswer *refused = start->answers;

                while (refused->result != START_REFUSED)
                        refused++;
                (void) problem_set(&problem, 503, json_start_code(refused), "%s", refused->detail);
        }
        return reply_problem_with(request, &problem, "targets",
                                  json_start_answers(start->answers, start->n_answers));
}

/* Adds the run, which may have ended already; false when nothing is known of it. */
static bool add_started(Text *text, const Service *service, const char *id, bool with_comma)
{
        const RunRecord *current = service->find_current(service->userdata, id);
        _cleanup_(past_run_freep) PastRun *past = NULL;

        if (!current && service->read_run(service->userdata, id, &past, NULL, NULL) < 0)
                return false;
        if (with_comma)
                text_add_string(text, ",");
        if (current)
                text_add_json(text, json_run(current, false));
        else
                text_add(text, past->text, past->size);
        return true;
}

static enum MHD_Result reply_started(Request *request, const Start *start)
{
        const Service *service = request->server->service;
        char location[16 + RUN_ID_SIZE] = "";
        size_t size = 0, n = 0;
        Text text = { 0 };

        text_add_string(&text, "{\"schema\":1,\"runs\":[");
        for (size_t i = 0; i < start->n_answers; i++) {
                const StartAnswer *answer = &start->answers[i];

                if (answer->result != START_ACCEPTED)
                        continue;
                if (!*location)
                        (void) snprintf(location, sizeof location, "/runs/%s", answer->run_id);
                n += add_started(&text, service, answer->run_id, n > 0);
        }
        text_add_string(&text, "],\"not_started\":");
        text_add_json(&text, json_start_answers(start->answers, start->n_answers));
        text_add_string(&text, "}\n");
        char *data = text_take(&text, &size);
        return reply_text(request, 202, data, size, CACHE_NEVER,
                          (const ReplyHeader[]){ { MHD_HTTP_HEADER_LOCATION, location }, { NULL, NULL } });
}

/* Whether every run that was started has ended. */
static bool all_are_over(const void *userdata)
{
        const Request *request = userdata;
        const Service *service = request->server->service;
        const Start *start = request->kept;

        for (size_t i = 0; i < start->n_answers; i++)
                if (start->answers[i].result == START_ACCEPTED &&
                    service->find_current(service->userdata, start->answers[i].run_id))
                        return false;
        return true;
}

static int start_runs(Request *request, Start *start, Problem *problem)
{
        const Service *service = request->server->service;

        request_who(request, start->who);
        if (read_choices(request, start, problem) < 0)
                return -1;
        return *start->target ? start_one(service, start, start->target, problem)
                              : start_all(service, start, problem);
}

enum MHD_Result handle_start(Request *request)
{
        Problem problem;

        if (!request->kept) {
                uint64_t seconds = 0;
                Start *start = calloc(1, sizeof *start);

                if (!start)
                        return MHD_NO;
                request->kept = start;
                /* Before anything is started that the client would not be told of. */
                if (query_number(&request->query, "wait", 0, WAIT_MAX_S, 0, &seconds, &problem) < 0 ||
                    start_runs(request, start, &problem) < 0)
                        return reply_problem(request, &problem);
                if (count_result(start, START_ACCEPTED) == 0)
                        return reply_not_started(request, start);
        }
        /* With no place to wait in, the runs are told of at once. */
        if (wait_for(request, all_are_over, &problem) == WAIT_RESTS)
                return MHD_YES;
        return reply_started(request, request->kept);
}
