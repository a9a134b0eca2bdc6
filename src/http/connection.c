/* SPDX-License-Identifier: Apache-2.0 */
/* Connections: what libmicrohttpd does not have. A deadline for each request, a life, and a way in for the
 * next client when all places are taken: the one closed is the longest idle of the client address with the
 * most connections. */

#include "server.h"

#include "tierprobe/clock.h"

#include <stdlib.h>
#include <sys/socket.h>

/* As many places as a listener has. The library's own limit lies higher, since it refuses the new ones. */
#define CONNECTIONS 32
#define LIFE_NS (3600 * NS_PER_S)
#define LIFE_REQUESTS 1000

/* The library sees an end of file and closes the connection, as when the client has closed it. */
static void connection_leave(Connection *connection)
{
        if (!connection->leaving)
                connection->listener->n_staying--;
        connection->leaving = true;
        (void) shutdown(connection->fd, SHUT_RDWR);
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *userdata)
{
        (void) source;
        (void) usec;
        connection_leave(userdata);
        return 0;
}

void connection_set_deadline(Connection *connection, uint64_t after_ns)
{
        (void) sd_event_source_set_time_relative(connection->deadline, after_ns / NS_PER_US);
        (void) sd_event_source_set_enabled(connection->deadline, SD_EVENT_ONESHOT);
}

void connection_touch(Connection *connection)
{
        connection->active_ns = clock_ns(CLOCK_MONOTONIC);
}

void connection_request_begins(Connection *connection)
{
        connection->n_requests++;
        connection_touch(connection);
}

bool connection_is_due(const Connection *connection)
{
        return connection->n_requests >= LIFE_REQUESTS ||
               connection->active_ns - connection->opened_ns >= LIFE_NS;
}

/* The time of the next request begins now. A client that has closed its side will send none, which the
 * library would find out only at the idle timeout: it has read the end together with the request, and is not
 * told again. Requests that it has read ahead are answered at once and well within the second. */
void connection_request_done(Connection *connection)
{
        uint64_t timeout_ns = connection->listener->server->request_timeout_ns;
        char byte = 0;

        connection_touch(connection);
        if (recv(connection->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0 && timeout_ns > NS_PER_S)
                timeout_ns = NS_PER_S;
        connection_set_deadline(connection, timeout_ns);
}

/* ---- places ---- */

/* How many of the listener's connections come from where this one comes from. */
static size_t count_siblings(const Connection *connection)
{
        size_t n = 0;

        for (const Connection *c = connection->listener->connections; c; c = c->next)
                n += !c->leaving && peer_same(&c->peer, &connection->peer);
        return n;
}

/* Closes the connection that has been idle longest, first among those of the address with the most. NEWEST
 * has just come and counts, but stays: a client that sends its request at once is served before its turn to
 * go comes. */
static void make_room(const Connection *newest)
{
        Connection *victim = NULL;
        size_t most = 0;

        if (newest->listener->n_staying <= CONNECTIONS)
                return;
        for (Connection *c = newest->next; c; c = c->next) {
                if (c->leaving || c->waits)
                        continue;
                size_t n = count_siblings(c);
                if (!victim || n > most || (n == most && c->active_ns < victim->active_ns)) {
                        victim = c;
                        most = n;
                }
        }
        if (victim)
                connection_leave(victim);
}

/* ---- coming and going ---- */

static Connection *connection_new(Listener *listener, int fd)
{
        HttpServer *server = listener->server;
        Connection *connection = calloc(1, sizeof *connection);

        if (!connection)
                return NULL;
        connection->listener = listener;
        connection->fd = fd;
        if (sd_event_add_time_relative(server->event, &connection->deadline, CLOCK_MONOTONIC,
                                       server->request_timeout_ns / NS_PER_US, 100000, on_deadline,
                                       connection) < 0) {
                free(connection);
                return NULL;
        }
        (void) sd_event_source_set_description(connection->deadline, "http-deadline");
        peer_read(fd, &connection->peer);
        connection->access = http_access_ref(server->access);
        connection->opened_ns = connection->active_ns = clock_ns(CLOCK_MONOTONIC);
        connection->next = listener->connections;
        if (connection->next)
                connection->next->previous = connection;
        listener->connections = connection;
        listener->n_staying++;
        return connection;
}

static void connection_free(Connection *connection)
{
        Listener *listener = connection->listener;

        if (connection->previous)
                connection->previous->next = connection->next;
        else
                listener->connections = connection->next;
        if (connection->next)
                connection->next->previous = connection->previous;
        listener->n_staying -= !connection->leaving;
        (void) sd_event_source_disable_unref(connection->deadline);
        http_access_unref(connection->access);
        free(connection);
}

void connection_notify(void *userdata, struct MHD_Connection *mhd, void **context,
                       enum MHD_ConnectionNotificationCode what)
{
        Listener *listener = userdata;

        switch (what) {
        case MHD_CONNECTION_NOTIFY_STARTED: {
                const union MHD_ConnectionInfo *info =
                        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
                Connection *connection = connection_new(listener, info->connect_fd);

                *context = connection;
                if (connection)
                        make_room(connection);
                else /* without memory for the deadline an answer could not be made either */
                        (void) shutdown(info->connect_fd, SHUT_RDWR);
                break;
        }
        case MHD_CONNECTION_NOTIFY_CLOSED:
                listener->has_closed = true;
                if (*context)
                        connection_free(*context);
                *context = NULL;
                break;
        }
}
