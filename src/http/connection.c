/* SPDX-License-Identifier: Apache-2.0 */
/* Connections: their deadline, which libmicrohttpd does not have. */

#include "server.h"

#include "tierprobe/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

static int on_deadline(sd_event_source *source, uint64_t usec, void *userdata)
{
        const Connection *connection = userdata;

        (void) source;
        (void) usec;
        /* The library finds the connection at its end and closes it by itself, as if the client had gone. */
        (void) shutdown(connection->fd, SHUT_RDWR);
        return 0;
}

void connection_set_deadline(Connection *connection, uint64_t after_ns)
{
        (void) sd_event_source_set_time_relative(connection->deadline, after_ns / NS_PER_US);
        (void) sd_event_source_set_enabled(connection->deadline, SD_EVENT_ONESHOT);
}

/* The time of the next request begins now. A client that has closed its side will send none, which the
 * library would find out only at the idle timeout: it has read the end together with the request, and is not
 * told again. Requests that it has read ahead are answered at once and well within the second. */
void connection_request_done(Connection *connection)
{
        uint64_t timeout_ns = connection->listener->server->request_timeout_ns;
        char byte = 0;

        if (recv(connection->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0 && timeout_ns > NS_PER_S)
                timeout_ns = NS_PER_S;
        connection_set_deadline(connection, timeout_ns);
}

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
        return connection;
}

void connection_notify(void *userdata, struct MHD_Connection *mhd, void **context,
                       enum MHD_ConnectionNotificationCode what)
{
        switch (what) {
        case MHD_CONNECTION_NOTIFY_STARTED: {
                const union MHD_ConnectionInfo *info =
                        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);

                *context = connection_new(userdata, info->connect_fd);
                /* Without memory for a deadline there is none for an answer either. */
                if (!*context)
                        (void) shutdown(info->connect_fd, SHUT_RDWR);
                break;
        }
        case MHD_CONNECTION_NOTIFY_CLOSED: {
                Connection *connection = *context;
                Listener *listener = userdata;

                listener->has_closed = true;
                if (connection)
                        connection->deadline = sd_event_source_disable_unref(connection->deadline);
                free(connection);
                *context = NULL;
                break;
        }
        }
}

void connection_who(const Connection *connection, char buf[WHO_SIZE])
{
        Address peer = { .size = sizeof peer.storage };
        struct ucred credentials;

        if (getpeername(connection->fd, &peer.any, &peer.size) < 0) {
                (void) snprintf(buf, WHO_SIZE, "unknown");
        } else if (peer.any.sa_family != AF_UNIX) {
                char text[ADDRESS_TEXT_SIZE];

                address_format(&peer, text);
                (void) snprintf(buf, WHO_SIZE, "%s", text);
        } else if (getsockopt(connection->fd, SOL_SOCKET, SO_PEERCRED, &credentials,
                              &(socklen_t){ sizeof credentials }) == 0) {
                (void) snprintf(buf, WHO_SIZE, "uid %ld pid %ld", (long) credentials.uid,
                                (long) credentials.pid);
        } else {
                (void) snprintf(buf, WHO_SIZE, "unix socket");
        }
}
