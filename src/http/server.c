/* SPDX-License-Identifier: Apache-2.0 */
/* The server: one libmicrohttpd daemon a listener, each driven by its epoll descriptor on the event loop. */

#include "server.h"
#include "cached.h"
#include "listen.h"
#include "wait.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/file.h"
#include "tierprobe/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

/* The library refuses new connections at its limit, where we would rather let an idle one go: connection.c
 * does at half of it, and as many may come in one turn before the library sees that the others have gone. */
#define CONNECTIONS_LIMIT 64
#define CONNECTION_MEMORY ((size_t) 32 << 10)
#define IDLE_TIMEOUT_S 15
#define REQUEST_TIMEOUT_NS (30 * NS_PER_S)
#define REST_NS (250 * NS_PER_MS)

/* After everything that measures: a sample must not wait for a reply. */
#define EVENT_PRIORITY (SD_EVENT_PRIORITY_NORMAL + 10)
/* A listener with work left over runs after those with new events. */
#define AGAIN_PRIORITY (EVENT_PRIORITY + 1)

/* ---- driving libmicrohttpd from the event loop ---- */

/* A client waits and there is no descriptor for it, nor a connection whose end would free one: the library
 * would be told again and again, at the cost of a processor. */
static int listener_rest(Listener *listener)
{
        listener->starved = false;
        int r = sd_event_source_set_enabled(listener->io, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_source_set_enabled(listener->again, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_source_set_time_relative(listener->timer, REST_NS / NS_PER_US);
        if (r >= 0)
                r = sd_event_source_set_enabled(listener->timer, SD_EVENT_ONESHOT);
        return r;
}

/* The epoll descriptor is edge-triggered inside: what is left to do after MHD_run() shows only in the
 * timeout, which is relative and in milliseconds. Without it connections hang; with it misread, the loop
 * spins. */
static int listener_turn(Listener *listener)
{
        MHD_UNSIGNED_LONG_LONG timeout_ms = 0;

        listener->turn = (Turn){ .number = listener->turn.number + 1,
                                 .begin_ns = clock_ns(CLOCK_MONOTONIC),
                                 .n_passed_over_before = listener->turn.n_passed_over };
        /* The end of a connection lets the library listen again after it had run out of descriptors or
         * connections, but it begins to only with the next turn, which nothing else would bring about. */
        do {
                listener->has_closed = false;
                (void) MHD_run(listener->daemon);
        } while (listener->has_closed);
        if (listener->starved)
                return listener_rest(listener);
        bool waits = MHD_get_timeout(listener->daemon, &timeout_ms) == MHD_YES;

        /* More to do now: the next turn of the event loop, after everything that is more urgent. A timer
         * would round up to its accuracy, for every block of a long reply. */
        int r = sd_event_source_set_enabled(listener->again,
                                            waits && timeout_ms == 0 ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
        if (r < 0)
                return r;
        if (!waits || timeout_ms == 0)
                return sd_event_source_set_enabled(listener->timer, SD_EVENT_OFF);
        r = sd_event_source_set_time_relative(listener->timer, timeout_ms * (NS_PER_MS / NS_PER_US));
        if (r < 0)
                return r;
        return sd_event_source_set_enabled(listener->timer, SD_EVENT_ONESHOT);
}

static int on_again(sd_event_source *source, void *userdata)
{
        (void) source;
        return listener_turn(userdata);
}

static int on_epoll(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        (void) source;
        (void) fd;
        (void) events;
        return listener_turn(userdata);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        Listener *listener = userdata;

        (void) source;
        (void) usec;
        int r = sd_event_source_set_enabled(listener->io, SD_EVENT_ON); /* it may have rested */
        return r < 0 ? r : listener_turn(listener);
}

static void on_log(void *userdata, const char *format, va_list ap) __attribute__((format(printf, 2, 0)));

/* Clients can make these lines at will: they are for debugging only. That accept() found no descriptor, with
 * no connection whose end would free one, is said nowhere else. */
static void on_log(void *userdata, const char *format, va_list ap)
{
        Listener *listener = userdata;
        char text[512];

        if (strstr(format, "resource limit at FIRST connection"))
                listener->starved = true;
        if (!log_enabled(LOG_DEBUG))
                return;
        (void) vsnprintf(text, sizeof text, format, ap);
        text[strcspn(text, "\n")] = '\0';
        log_debug("libmicrohttpd: %s", text);
}

/* Leaves paths and query values as they came. The library would cut a path at %00. */
static size_t on_unescape(void *userdata, struct MHD_Connection *mhd, char *text)
{
        (void) userdata;
        (void) mhd;
        return strlen(text);
}

/* ---- starting ---- */

/* The library lets it choose for each connection: a renewed certificate is in force at once, and nobody loses
 * the connection that has the old one. The session's pointer is the library's connection. */
static int on_certificate(gnutls_session_t session, const gnutls_datum_t *authorities, int n_authorities,
                          const gnutls_pk_algorithm_t *algorithms, int n_algorithms,
                          gnutls_pcert_st **ret_chain, unsigned *ret_n_chain, gnutls_privkey_t *ret_key)
{
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(gnutls_session_get_ptr(session), MHD_CONNECTION_INFO_SOCKET_CONTEXT);
        const Connection *connection = info ? info->socket_context : NULL;

        (void) authorities;
        (void) n_authorities;
        (void) algorithms;
        (void) n_algorithms;
        if (!connection || !connection->access->certificate)
                return -1;
        *ret_chain = connection->access->certificate->chain;
        *ret_n_chain = connection->access->certificate->n_chain;
        *ret_key = connection->access->certificate->key;
        return 0;
}

static int listener_start_daemon(Listener *listener, int fd)
{
        const HttpServer *server = listener->server;
        static char priorities[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";
        struct MHD_OptionItem tls[] = {
                { MHD_OPTION_HTTPS_CERT_CALLBACK, 0, (void *) on_certificate },
                { MHD_OPTION_HTTPS_PRIORITIES, 0, priorities },
                { MHD_OPTION_END, 0, NULL },
        };

        listener->daemon = MHD_start_daemon(
                MHD_USE_EPOLL | MHD_USE_ITC | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME |
                        (listener->tls ? MHD_USE_TLS : 0),
                0, NULL, NULL, request_handle, listener, MHD_OPTION_EXTERNAL_LOGGER, on_log,
                listener, /* first: options may already log */
                MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_STRICT_FOR_CLIENT, library_is_lenient() ? 0 : 1,
                MHD_OPTION_UNESCAPE_CALLBACK, on_unescape, NULL, MHD_OPTION_URI_LOG_CALLBACK, request_new,
                listener, MHD_OPTION_NOTIFY_CONNECTION, connection_notify, listener,
                MHD_OPTION_NOTIFY_COMPLETED, request_completed, listener, MHD_OPTION_CONNECTION_LIMIT,
                (unsigned) CONNECTIONS_LIMIT, MHD_OPTION_CONNECTION_TIMEOUT, server->idle_timeout_s,
                MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY, MHD_OPTION_ARRAY,
                listener->tls ? tls : &tls[ELEMENTSOF(tls) - 1], MHD_OPTION_END);
        return listener->daemon ? 0 : -ENOMEM;
}

static int listener_attach(Listener *listener)
{
        sd_event *event = listener->server->event;
        const union MHD_DaemonInfo *info = MHD_get_daemon_info(listener->daemon, MHD_DAEMON_INFO_EPOLL_FD);

        if (!info)
                return -EINVAL;
        int r = sd_event_add_io(event, &listener->io, info->epoll_fd, EPOLLIN, on_epoll, listener);
        if (r >= 0)
                r = sd_event_add_time(event, &listener->timer, CLOCK_MONOTONIC, UINT64_MAX, 1000, on_timer,
                                      listener);
        if (r >= 0)
                r = sd_event_add_defer(event, &listener->again, on_again, listener);
        if (r >= 0)
                r = sd_event_source_set_priority(listener->io, EVENT_PRIORITY);
        if (r >= 0)
                r = sd_event_source_set_priority(listener->timer, EVENT_PRIORITY);
        if (r >= 0)
                r = sd_event_source_set_priority(listener->again, AGAIN_PRIORITY);
        if (r < 0)
                return r;
        (void) sd_event_source_set_description(listener->io, "http");
        (void) sd_event_source_set_description(listener->timer, "http-timeout");
        (void) sd_event_source_set_description(listener->again, "http-again");
        return listener_turn(listener);
}

static void remember_socket_file(Listener *listener, const Address *address)
{
        struct stat st;

        if (address->any.sa_family == AF_UNIX && lstat(address->un.sun_path, &st) == 0) {
                listener->socket_dev = st.st_dev;
                listener->socket_ino = st.st_ino;
        }
}

static int listener_open(HttpServer *server, const Address *wanted, char **ret_error)
{
        Address *address = &server->addresses[server->n_listeners];
        Listener *listener = &server->listeners[server->n_listeners];

        *address = *wanted;
        int fd = address_listen(address, ret_error);
        if (fd < 0)
                return fd;
        listener->server = server;
        listener->loopback = address_is_loopback(address);
        listener->is_unix = address->any.sa_family == AF_UNIX;
        listener->tls = server->access->certificate && !listener->is_unix;
        address_format(address, listener->text);
        remember_socket_file(listener, address);
        server->n_listeners++;

        /* From here on the descriptor is the library's, which closes it when the daemon stops. */
        int r = listener_start_daemon(listener, fd);
        if (r == 0)
                r = listener_attach(listener);
        if (r < 0)
                *ret_error = path_format("%s: cannot serve: %s", listener->text, strerror(-r));
        return r;
}

static int server_open(HttpServer *server, const HttpOptions *options, char **ret_error)
{
        server->addresses = calloc(options->n_listen + 1, sizeof *server->addresses);
        server->listeners = calloc(options->n_listen + 1, sizeof *server->listeners);
        if (!server->addresses || !server->listeners)
                return -ENOMEM;
        int r = http_access_load(&server->access, options, ret_error);
        if (r < 0)
                return r;
        if (getrandom(&server->start_random, sizeof server->start_random, GRND_NONBLOCK) < 0)
                server->start_random = (uint32_t) (clock_ns(CLOCK_REALTIME) / NS_PER_US);
        for (size_t i = 0; i < options->n_listen; i++) {
                r = listener_open(server, &options->listen[i], ret_error);
                if (r < 0)
                        return r;
        }
        return 0;
}

static void warn_of_bare_tokens(const HttpServer *server)
{
        for (size_t i = 0; i < server->n_listeners; i++)
                if (server->access->tokens && !server->listeners[i].loopback && !server->listeners[i].tls)
                        log_warning("%s: tokens come here for everyone on the way to read; set tls_cert and "
                                    "tls_key in "
                                    "[http]",
                                    server->listeners[i].text);
}

int http_server_new(HttpServer **ret, sd_event *event, const HttpOptions *options, char **ret_error)
{
        HttpServer *server = calloc(1, sizeof *server);

        *ret_error = NULL;
        if (!server)
                return -ENOMEM;
        server->event = sd_event_ref(event);
        server->service = options->service;
        server->idle_timeout_s = options->idle_timeout_s ? options->idle_timeout_s : IDLE_TIMEOUT_S;
        server->request_timeout_ns =
                options->request_timeout_ns ? options->request_timeout_ns : REQUEST_TIMEOUT_NS;
        int r = server_open(server, options, ret_error);
        if (r < 0) {
                http_server_free(server);
                return r;
        }
        warn_of_bare_tokens(server);
        *ret = server;
        return 0;
}

/* ---- ending ---- */

static void listener_close(Listener *listener, const Address *address)
{
        struct stat st;

        /* Event sources first: the descriptor that they watch is closed with the library's daemon. */
        listener->io = sd_event_source_disable_unref(listener->io);
        listener->timer = sd_event_source_disable_unref(listener->timer);
        listener->again = sd_event_source_disable_unref(listener->again);
        if (listener->daemon)
                MHD_stop_daemon(listener->daemon);
        if (address->any.sa_family == AF_UNIX && lstat(address->un.sun_path, &st) == 0 &&
            st.st_dev == listener->socket_dev && st.st_ino == listener->socket_ino)
                (void) unlink(address->un.sun_path);
}

HttpServer *http_server_free(HttpServer *server)
{
        if (!server)
                return NULL;
        /* The library must not be stopped while connections rest. */
        wait_end_all(server);
        for (size_t i = 0; i < server->n_listeners; i++)
                if (server->listeners[i].daemon)
                        (void) MHD_run(server->listeners[i].daemon);
        for (size_t i = 0; i < server->n_listeners; i++)
                listener_close(&server->listeners[i], &server->addresses[i]);
        for (size_t i = 0; i < _CACHED_MAX; i++)
                cached_done(&server->cached[i]);
        free(server->listeners);
        free(server->addresses);
        http_access_unref(server->access);
        server->event = sd_event_unref(server->event);
        free(server);
        return NULL;
}

void http_server_freep(HttpServer **server)
{
        if (*server)
                *server = http_server_free(*server);
}

void http_server_follow(HttpServer *server)
{
        wait_follow(server);
}

void http_server_set_access(HttpServer *server, HttpAccess *access)
{
        http_access_unref(server->access);
        server->access = access;
}

int64_t http_server_certificate_expiry_real_ns(const HttpServer *server)
{
        return server->access->certificate ? server->access->certificate->not_after_real_ns : 0;
}

const char *http_server_address(const HttpServer *server, size_t index)
{
        return index < server->n_listeners ? server->listeners[index].text : NULL;
}

int http_server_request_count(const HttpServer *server, size_t index, const char **ret_method,
                              unsigned *ret_status, uint64_t *ret_count)
{
        for (size_t m = 0; m < _METHOD_MAX; m++)
                for (size_t s = 0; s < N_STATUSES; s++)
                        if (server->counts[m][s] > 0 && index-- == 0) {
                                *ret_method = http_methods[m];
                                *ret_status = http_statuses[s];
                                *ret_count = server->counts[m][s];
                                return 0;
                        }
        return -ENOENT;
}
