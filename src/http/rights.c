/* SPDX-License-Identifier: Apache-2.0 */
/* Who asks, and who may change something. */

#include "rights.h"

#include "tierprobe/clock.h"
#include "tierprobe/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHALLENGE "Bearer realm=\"tierprobe\""
#define CHALLENGE_INVALID CHALLENGE ", error=\"invalid_token\""
#define SAY_AGAIN_NS (60 * NS_PER_S)
#define MAX_GROUPS 128

/* One line a minute, however many are tried. */
static void say_wrong_token(const Connection *connection)
{
        HttpServer *server = connection->listener->server;
        uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
        char who[PEER_TEXT_SIZE];

        server->n_wrong_tokens++;
        if (server->wrong_tokens_said_ns && now_ns - server->wrong_tokens_said_ns < SAY_AGAIN_NS)
                return;
        peer_format(&connection->peer, who);
        log_warning("a wrong token came from %s; %" PRIu64 " wrong ones since the start", who,
                    server->n_wrong_tokens);
        server->wrong_tokens_said_ns = now_ns;
}

/* The token of an Authorization field, NULL when it is of another scheme. */
static const char *bearer(const char *value)
{
        static const char scheme[] = "Bearer ";

        if (strncasecmp(value, scheme, strlen(scheme)) != 0)
                return NULL;
        value += strlen(scheme);
        value += strspn(value, " ");
        return *value ? value : NULL;
}

static int unauthorized(Problem *problem, const char *code, const char *challenge, const char *detail)
{
        (void) problem_set(problem, 401, code, "%s", detail);
        problem->authenticate = challenge;
        return -1;
}

static int check_token(const Connection *connection, const RequestHead *head, char token[NAME_SIZE],
                       Problem *problem)
{
        const char *name =
                tokens_find(connection->listener->server->access->tokens, bearer(head->authorization.value));

        if (!name) {
                say_wrong_token(connection);
                return unauthorized(problem, "token_wrong", CHALLENGE_INVALID,
                                    "this token is not known here");
        }
        (void) snprintf(token, NAME_SIZE, "%s", name);
        return 0;
}

static bool group_has(const Connection *connection, gid_t group)
{
        gid_t groups[MAX_GROUPS];
        socklen_t size = sizeof groups;
        struct ucred credentials;

        if (getsockopt(connection->fd, SOL_SOCKET, SO_PEERCRED, &credentials,
                       &(socklen_t){ sizeof credentials }) == 0 &&
            credentials.gid == group)
                return true;
        if (getsockopt(connection->fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) < 0)
                return false;
        for (size_t i = 0; i < size / sizeof groups[0]; i++)
                if (groups[i] == group)
                        return true;
        return false;
}

static bool user_may(const Connection *connection)
{
        const char *path = connection->listener->text + strlen("unix:");
        const Peer *peer = &connection->peer;
        struct stat st;

        if (peer->uid == (uid_t) -1)
                return false;
        if (peer->uid == 0 || peer->uid == geteuid())
                return true;
        return stat(path, &st) == 0 && (st.st_mode & S_IWGRP) && group_has(connection, st.st_gid);
}

int rights_check(const Connection *connection, const RequestHead *head, char token[NAME_SIZE],
                 Problem *problem)
{
        const Listener *listener = connection->listener;

        *token = '\0';
        if (head->authorization.n > 1)
                return problem_set_closing(problem, 400, "bad_header", "more than one Authorization");
        if (connection->listener->server->access->tokens && head->authorization.n > 0 &&
            bearer(head->authorization.value))
                return check_token(connection, head, token, problem);
        if (listener->is_unix && !user_may(connection))
                return problem_set(
                        problem, 403, "not_permitted",
                        "on this socket root, the user tierprobed runs as and the socket's group may "
                        "start and abort runs, and who shows a token");
        if (listener->loopback)
                return 0;
        if (!connection->listener->server->access->tokens)
                return problem_set(
                        problem, 403, "read_only_listener",
                        "this address serves reads; set token_file in [http], or start and abort runs "
                        "through a loopback address or a Unix socket");
        return unauthorized(problem, "token_needed", CHALLENGE,
                            "through this address a change needs \"Authorization: Bearer TOKEN\"");
}

void request_who(const Request *request, char buf[WHO_SIZE])
{
        char peer[PEER_TEXT_SIZE];

        peer_format(&request->connection->peer, peer);
        if (*request->token)
                (void) snprintf(buf, WHO_SIZE, "token %s, %s", request->token, peer);
        else
                (void) snprintf(buf, WHO_SIZE, "%s", peer);
}
