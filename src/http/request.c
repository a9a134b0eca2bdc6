/* SPDX-License-Identifier: Apache-2.0 */
/* One request: headers, guard, route, body, answer. The order of the checks is the order of trust: framing
 * first, then who is asked, then what is asked, then whether it may be. */

#include "reply.h"
#include "rights.h"
#include "routes.h"
#include "server.h"
#include "wait.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- taking in ---- */

static Method method_from_text(const char *text)
{
        for (size_t m = 0; m < METHOD_OTHER; m++)
                if (strcmp(text, http_methods[m]) == 0)
                        return (Method) m;
        return METHOD_OTHER;
}

/* ---- deciding ---- */

/* The guard's part that needs no route. */
static int check_head(const Request *request, Problem *problem)
{
        const HttpServer *server = request->server;
        const HostRules rules = { .allowed_hosts = server->access->allowed_hosts,
                                  .listen = server->addresses,
                                  .n_listen = server->n_listeners };
        Address local = { .size = sizeof local.storage };

        if (guard_framing(&request->head, problem) < 0)
                return -1;
        if (getsockname(request->connection->fd, &local.any, &local.size) < 0)
                return problem_set(problem, 400, "bad_connection", "the connection is gone");
        return guard_host(&request->head, &rules, &local, problem);
}

static int check_route(Request *request, Problem *problem)
{
        request->route = route_find(request->head.path, request->method, request->part, request->allow);
        if (!request->route && *request->allow) {
                (void) problem_set(problem, 405, "method_not_allowed", "this path takes: %s", request->allow);
                problem->allow = request->allow;
                return -1;
        }
        if (!request->route)
                return problem_set(problem, 404, "not_found", "there is nothing at this path");
        /* Requests that change something need more than reads do. */
        if (request->route->method != METHOD_GET &&
            (guard_origin(&request->head, problem) < 0 ||
             rights_check(request->connection, &request->head, request->token, problem) < 0))
                return -1;
        if (guard_body(&request->head, request->route->takes_body, problem) < 0)
                return -1;
        return query_read(&request->query, request->route->parameters, problem);
}

/* What may be asked of this path, or of the server as a whole ("*"). */
static int check_options(Request *request, Problem *problem)
{
        if (strcmp(request->head.path, "*") == 0)
                (void) strcpy(request->allow, "GET, HEAD, POST, DELETE, OPTIONS");
        else if (guard_path(&request->head, problem) < 0)
                return -1;
        else
                (void) route_find(request->head.path, METHOD_OPTIONS, request->part, request->allow);
        if (!*request->allow)
                return problem_set(problem, 404, "not_found", "there is nothing at this path");
        return guard_body(&request->head, false, problem);
}

static int check(Request *request, Problem *problem)
{
        if (head_read(request->mhd, &request->line, &request->head, problem) < 0 ||
            check_head(request, problem) < 0)
                return -1;
        if (request->method == METHOD_OPTIONS)
                return check_options(request, problem);
        if (guard_path(&request->head, problem) < 0)
                return -1;
        return check_route(request, problem);
}

/* Called when the headers are there. The library takes an answer given now as a refusal to read on and closes
 * the connection afterwards: right for a body that is not wanted, a waste for a request that is complete. */
static enum MHD_Result begin(Request *request)
{
        request->refused = check(request, &request->problem) < 0;
        if (request->refused && (request->problem.close || request->head.content_length.n > 0))
                return reply_problem(request, &request->problem);
        return MHD_YES;
}

static enum MHD_Result finish(Request *request)
{
        if (request->refused)
                return reply_problem(request, &request->problem);
        if (request->method == METHOD_OPTIONS)
                return reply_empty(
                        request, 204,
                        (const ReplyHeader[]){ { MHD_HTTP_HEADER_ALLOW, request->allow }, { NULL, NULL } });
        return request->route->handle(request);
}

/* The declared length was checked, so that the buffer is never too small for an honest library; it is checked
 * again for another kind. */
static enum MHD_Result take_body(Request *request, const char *data, size_t size)
{
        if (size > GUARD_MAX_BODY - request->body_size)
                return MHD_NO;
        if (!request->body)
                request->body = malloc(GUARD_MAX_BODY);
        if (!request->body)
                return MHD_NO;
        memcpy(request->body + request->body_size, data, size);
        request->body_size += size;
        return MHD_YES;
}

/* TARGET points into the library's buffer, which it is about to take apart. It would keep each parameter of
 * the query in a record of its own and, when they use up the connection's memory, go on as if nothing had
 * happened and wait: so the query is cut off here and read by us. */
void *request_new(void *userdata, const char *target, struct MHD_Connection *mhd)
{
        const Listener *listener = userdata;
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
        Request *request = calloc(1, sizeof *request);

        if (!request || !info || !info->socket_context) {
                free(request);
                return NULL;
        }
        request->server = listener->server;
        request->connection = info->socket_context;
        request->mhd = mhd;
        connection_request_begins(request->connection);
        request_line_set_target(&request->line, target ? target : "");
        char *query = strchr(request->line.target, '?');
        if (query) {
                query_set(&request->query, ++query);
                *query = '\0';
        }
        return request;
}

enum MHD_Result request_handle(void *userdata, struct MHD_Connection *mhd, const char *url,
                               const char *method, const char *version, const char *upload_data,
                               size_t *upload_data_size, void **context)
{
        Request *request = *context;

        (void) userdata;
        (void) mhd;
        if (!request) /* out of memory */
                return MHD_NO;
        if (!request->head.path) {
                request->line.method = method;
                request->line.version = version;
                request->head.path = url;
                request->method = method_from_text(method);
                return begin(request);
        }
        if (*upload_data_size > 0) {
                enum MHD_Result result = take_body(request, upload_data, *upload_data_size);

                *upload_data_size = 0;
                return result;
        }
        return finish(request);
}

void request_completed(void *userdata, struct MHD_Connection *mhd, void **context,
                       enum MHD_RequestTerminationCode why)
{
        Request *request = *context;

        (void) userdata;
        (void) mhd;
        (void) why;
        if (!request)
                return;
        wait_forget(request);
        connection_request_done(request->connection);
        free(request->kept);
        free(request->body);
        free(request);
        *context = NULL;
}
