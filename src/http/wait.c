/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that wait. The library neither reads nor writes for them and lets no time out end them. */

#include "wait.h"

#include "tierprobe/clock.h"

#include <poll.h>

void wait_forget(Request *request)
{
        HttpServer *server = request->server;

        request->wait.timer = sd_event_source_disable_unref(request->wait.timer);
        if (!request->wait.over)
                return;
        if (request->wait.previous)
                request->wait.previous->wait.next = request->wait.next;
        else
                server->waiting = request->wait.next;
        if (request->wait.next)
                request->wait.next->wait.previous = request->wait.previous;
        request->wait = (Wait){ .over = NULL };
        request->connection->waits = false;
}

/* The library takes it up in its next turn, which must be brought about. */
static void go_on(Request *request)
{
        Listener *listener = request->connection->listener;

        wait_forget(request);
        connection_touch(request->connection);
        MHD_resume_connection(request->mhd);
        if (listener->again)
                (void) sd_event_source_set_enabled(listener->again, SD_EVENT_ONESHOT);
}

static int on_timeout(sd_event_source *source, uint64_t usec, void *userdata)
{
        (void) source;
        (void) usec;
        go_on(userdata);
        return 0;
}

size_t wait_count(const HttpServer *server)
{
        size_t n = 0;

        for (const Request *request = server->waiting; request; request = request->wait.next)
                n++;
        return n;
}

bool wait_begin(Request *request, uint64_t timeout_ns, bool (*over)(const void *userdata),
                const void *userdata)
{
        HttpServer *server = request->server;

        if (server->ending || wait_count(server) >= WAITING_MAX)
                return false;
        if (sd_event_add_time_relative(server->event, &request->wait.timer, CLOCK_MONOTONIC,
                                       timeout_ns / NS_PER_US, 10000, on_timeout, request) < 0)
                return false;
        (void) sd_event_source_set_description(request->wait.timer, "http-wait");
        request->wait.over = over;
        request->wait.userdata = userdata;
        request->wait.next = server->waiting;
        if (request->wait.next)
                request->wait.next->wait.previous = request;
        server->waiting = request;
        request->connection->waits = true;
        MHD_suspend_connection(request->mhd);
        return true;
}

/* Nobody is told when the client of a resting connection goes: it would keep its place. */
static bool is_gone(const Connection *connection)
{
        struct pollfd fd = { .fd = connection->fd };

        return poll(&fd, 1, 0) > 0 && (fd.revents & (POLLERR | POLLHUP));
}

void wait_follow(HttpServer *server)
{
        for (Request *request = server->waiting, *next = NULL; request; request = next) {
                next = request->wait.next;
                if (request->wait.over(request->wait.userdata) || is_gone(request->connection))
                        go_on(request);
        }
}

void wait_end_all(HttpServer *server)
{
        server->ending = true;
        while (server->waiting)
                go_on(server->waiting);
}

WaitState wait_for(Request *request, bool (*over)(const void *request), Problem *problem)
{
        uint64_t seconds = 0, now_ns = clock_ns(CLOCK_MONOTONIC);

        if (query_number(&request->query, "wait", 0, WAIT_MAX_S, 0, &seconds, problem) < 0)
                return WAIT_REFUSED;
        if (request->wait_until_ns == 0)
                request->wait_until_ns = now_ns + seconds * NS_PER_S;
        if (over(request) || now_ns >= request->wait_until_ns || request->server->ending || seconds == 0)
                return WAIT_OVER;
        uint64_t left_ns = request->wait_until_ns - now_ns;
        if (!wait_begin(request, left_ns, over, request)) {
                (void) problem_set(problem, 503, "too_many_waiting",
                                   "%d requests wait already; ask again without wait", WAITING_MAX);
                problem->retry_after_s = 1;
                return WAIT_REFUSED;
        }
        connection_set_deadline(request->connection, left_ns + REPLY_TIMEOUT_NS);
        return WAIT_RESTS;
}
