/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon from outside: requests to its HTTP interface, to one host or to many at once. The only room that
 * knows libcurl. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#define CLIENT_SOCKET_DEFAULT "/run/tierprobe/tierprobed.sock"
#define CLIENT_URL_DEFAULT "http://127.0.0.1:7620"
#define CLIENT_TIMEOUT_DEFAULT_NS (UINT64_C(10) * 1000000000)

typedef struct ClientOptions {
        const char *token_file; /* NULL: what TIERPROBE_TOKEN_FILE names, if anything */
        const char *cacert;     /* PEM file with the authorities to trust; NULL: the system's */
        uint64_t timeout_ns; /* for connecting and for each answer as a whole; 0: CLIENT_TIMEOUT_DEFAULT_NS */
} ClientOptions;

typedef struct Client Client;

/* Reads the token, if there is one. Returns 0; -ENOMEM; -EINVAL or the errno of reading, with a sentence in
 * RET_ERROR (owned by the caller). */
int client_new(Client **ret, const ClientOptions *options, char **ret_error);
Client *client_free(Client *client);
void client_freep(Client **client);

/* The default address of this host's daemon: the unix socket when there is one, else loopback. */
const char *client_default_url(void);

/* What came back. */
typedef struct ClientAnswer {
        char *error; /* why there is no answer, as a sentence without its host; NULL: there is one */
        long status; /* of HTTP */
        char *text;  /* the body as it came, terminated; never NULL when there is an answer */
        size_t size;
        json_t *document; /* the body when it is JSON, else NULL */
} ClientAnswer;

void client_answer_done(ClientAnswer *answer);

/* A refusal's own words (its "detail"), or "HTTP STATUS"; borrowed, BUF is used for the latter. */
const char *client_answer_detail(const ClientAnswer *answer, char buf[32]);

/* Asks one host. URL is http://HOST[:PORT], https://..., unix:/PATH or HOST[:PORT] (7620 when there is no
 * port); PATH begins with a slash. ACCEPT NULL takes JSON. MORE_NS is added to the time limit, for requests
 * that wait. RET is filled in any case, client_answer_done() when done with it. */
void client_request(Client *client, const char *url, const char *method, const char *path, const char *accept,
                    uint64_t more_ns, ClientAnswer *ret);

/* GETs PATH from N hosts at once (at most 64 at a time). ANSWERS has N members. */
void client_get_all(Client *client, const char *const *urls, size_t n, const char *path,
                    ClientAnswer *answers);
