/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to daemons by libcurl. What comes back is bounded, and so is the time it may take. */

#include "tierprobe/client.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <curl/curl.h>

#define MAX_BODY_BYTES ((size_t) 64 << 20) /* 10,000 samples of a page are 6 MB */
#define MAX_TOKEN_FILE_BYTES ((size_t) 64 << 10)
#define MAX_AT_ONCE 64
#define DEFAULT_PORT "7620"

struct Client {
        char *authorization; /* "Authorization: Bearer ..."; NULL: none */
        char *cacert;
        uint64_t timeout_ns;
};

/* ---- the token ---- */

/* The last word of the first line that is neither empty nor a comment: so that one line of the daemon's own
 * file, NAME TOKEN, will do as well as a token alone. */
static char *find_token(char *text)
{
        char *save = NULL;

        for (char *line = strtok_r(text, "\r\n", &save); line; line = strtok_r(NULL, "\r\n", &save)) {
                size_t end = strlen(line);

                while (end > 0 && isspace((unsigned char) line[end - 1]))
                        line[--end] = '\0';
                if (end == 0 || line[strspn(line, " \t")] == '#')
                        continue;
                char *blank = strpbrk(line, " \t") ? line + end : NULL;
                while (blank && blank > line && !isspace((unsigned char) blank[-1]))
                        blank--;
                return blank ? blank : line;
        }
        return NULL;
}

static int read_token(Client *client, const char *file, char **ret_error)
{
        _cleanup_free_ char *text = NULL;
        size_t size = 0;

        int r = read_file_at(AT_FDCWD, file, MAX_TOKEN_FILE_BYTES, &text, &size);
        if (r < 0) {
                *ret_error = path_format("cannot read the token in %s: %s", file, strerror(-r));
                return r;
        }
        const char *token = strlen(text) == size ? find_token(text) : NULL;
        for (const char *c = token; c && *c; c++)
                if (*c <= ' ' || *c > '~')
                        token = NULL;
        if (!token) {
                *ret_error = path_format("%s holds no token; it takes one line with the token, or NAME TOKEN",
                                         file);
                r = -EINVAL;
        } else {
                client->authorization = path_format("Authorization: Bearer %s", token);
                r = client->authorization ? 0 : -ENOMEM;
        }
        explicit_bzero(text, size);
        return r;
}

int client_new(Client **ret, const ClientOptions *options, char **ret_error)
{
        _cleanup_(client_freep) Client *client = calloc(1, sizeof *client);
        const char *file = options->token_file ? options->token_file : getenv("TIERPROBE_TOKEN_FILE");

        *ret_error = NULL;
        if (!client || curl_global_init(CURL_GLOBAL_DEFAULT) != 0)
                return -ENOMEM;
        client->timeout_ns = options->timeout_ns ? options->timeout_ns : CLIENT_TIMEOUT_DEFAULT_NS;
        if (options->cacert) {
                if (access(options->cacert, R_OK) < 0) {
                        int r = -errno;
                        *ret_error = path_format("cannot read the certificates in %s: %s", options->cacert,
                                                 strerror(-r));
                        return r;
                }
                client->cacert = strdup(options->cacert);
                if (!client->cacert)
                        return -ENOMEM;
        }
        int r = file && *file ? read_token(client, file, ret_error) : 0;
        if (r < 0)
                return r;
        *ret = TAKE_PTR(client);
        return 0;
}

Client *client_free(Client *client)
{
        if (!client)
                return NULL;
        if (client->authorization)
                explicit_bzero(client->authorization, strlen(client->authorization));
        free(client->authorization);
        free(client->cacert);
        free(client);
        return NULL;
}

void client_freep(Client **client)
{
        client_free(*client);
}

const char *client_default_url(void)
{
        /* One that this user may not connect to is none: reading over loopback needs no permission. */
        return access(CLIENT_SOCKET_DEFAULT, R_OK | W_OK) == 0 ? "unix:" CLIENT_SOCKET_DEFAULT
                                                               : CLIENT_URL_DEFAULT;
}

/* ---- one request ---- */

typedef struct Request {
        CURL *easy;
        struct curl_slist *headers;
        ClientAnswer *answer;
        size_t allocated;
        bool too_large;
        char error[CURL_ERROR_SIZE];
} Request;

static size_t on_body(char *data, size_t size, size_t n, void *userdata)
{
        Request *request = userdata;
        ClientAnswer *answer = request->answer;
        size_t more = size * n;

        if (answer->size + more > MAX_BODY_BYTES) {
                request->too_large = true;
                return 0;
        }
        if (answer->size + more + 1 > request->allocated) {
                size_t want = (answer->size + more + 1) * 2;
                char *text = realloc(answer->text, want);
                if (!text)
                        return 0;
                answer->text = text;
                request->allocated = want;
        }
        memcpy(answer->text + answer->size, data, more);
        answer->size += more;
        answer->text[answer->size] = '\0';
        return more;
}

/* The address in full: with a scheme, and with our port when none is named. */
static char *full_url(const char *url, const char *path)
{
        if (strncmp(url, "unix:", 5) == 0)
                return path_format("http://localhost%s", path); /* curl still sends a Host */
        const char *scheme = strstr(url, "://");
        const char *host = scheme ? scheme + 3 : url;
        size_t length = strcspn(host, "/");
        const char *bracket = memchr(host, ']', length);
        const char *colon =
                memchr(bracket ? bracket : host, ':', length - (size_t) (bracket ? bracket - host : 0));
        int scheme_length = scheme ? (int) (scheme - url) : 4;

        return path_format("%.*s://%.*s%s%s", scheme_length, scheme ? url : "http", (int) length, host,
                           colon ? "" : ":" DEFAULT_PORT, path);
}

static bool add_header(Request *request, const char *header)
{
        struct curl_slist *headers = curl_slist_append(request->headers, header);

        if (headers)
                request->headers = headers;
        return headers != NULL;
}

static void request_done(Request *request)
{
        curl_easy_cleanup(request->easy);
        curl_slist_free_all(request->headers);
        *request = (Request){ 0 };
}

static CURLcode only_http(CURL *easy)
{
#if LIBCURL_VERSION_NUM >= 0x075500
        return curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
        return curl_easy_setopt(easy, CURLOPT_PROTOCOLS, (long) (CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

/* Prepares a transfer; false when memory ran out or the address cannot be one, which the answer then says. */
static bool request_prepare(Request *request, const Client *client, const char *url, const char *method,
                            const char *path, const char *accept, uint64_t more_ns, ClientAnswer *answer)
{
        _cleanup_free_ char *full = full_url(url, path);
        _cleanup_free_ char *accept_header = path_format("Accept: %s", accept ? accept : "application/json");
        long timeout_ms = (long) ((client->timeout_ns + more_ns) / 1000000);

        *answer = (ClientAnswer){ 0 };
        *request = (Request){ .answer = answer, .easy = curl_easy_init() };
        CURL *easy = request->easy;
        bool ok = easy && full && accept_header && add_header(request, accept_header) &&
                  (!client->authorization || add_header(request, client->authorization)) &&
                  curl_easy_setopt(easy, CURLOPT_URL, full) == CURLE_OK &&
                  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, request->headers) == CURLE_OK &&
                  only_http(easy) == CURLE_OK &&
                  curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method) == CURLE_OK &&
                  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body) == CURLE_OK &&
                  curl_easy_setopt(easy, CURLOPT_WRITEDATA, request) == CURLE_OK &&
                  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, request->error) == CURLE_OK &&
                  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, timeout_ms) == CURLE_OK &&
                  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long) (client->timeout_ns / 1000000)) ==
                          CURLE_OK &&
                  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
                  /* A proxy of the environment is for the world outside, not for hosts named here. */
                  curl_easy_setopt(easy, CURLOPT_PROXY, "") == CURLE_OK &&
                  (!client->cacert || curl_easy_setopt(easy, CURLOPT_CAINFO, client->cacert) == CURLE_OK);
        if (ok && strncmp(url, "unix:", 5) == 0)
                ok = curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, url + 5) == CURLE_OK;
        if (ok && strcmp(method, "POST") == 0)
                ok = curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "") == CURLE_OK;
        if (!ok)
                answer->error = strdup("it cannot be asked: its address is none, or memory ran out");
        return ok;
}

static void request_finish(Request *request, CURLcode code)
{
        ClientAnswer *answer = request->answer;

        if (code != CURLE_OK) {
                if (request->too_large)
                        answer->error = strdup("its answer is larger than 64 MiB");
                else
                        answer->error = strdup(request->error[0] ? request->error : curl_easy_strerror(code));
                return;
        }
        if (!answer->text)
                answer->text = strdup("");
        (void) curl_easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &answer->status);
        if (answer->text)
                answer->document = json_loadb(answer->text, answer->size, JSON_REJECT_DUPLICATES, NULL);
}

void client_answer_done(ClientAnswer *answer)
{
        json_decref(answer->document);
        free(answer->error);
        free(answer->text);
        *answer = (ClientAnswer){ 0 };
}

const char *client_answer_detail(const ClientAnswer *answer, char buf[32])
{
        const char *detail = json_string_value(json_object_get(answer->document, "detail"));

        if (detail)
                return detail;
        (void) snprintf(buf, 32, "HTTP %ld", answer->status);
        return buf;
}

void client_request(Client *client, const char *url, const char *method, const char *path, const char *accept,
                    uint64_t more_ns, ClientAnswer *ret)
{
        Request request;

        if (request_prepare(&request, client, url, method, path, accept, more_ns, ret))
                request_finish(&request, curl_easy_perform(request.easy));
        request_done(&request);
}

/* ---- many hosts ---- */

typedef struct Round {
        CURLM *multi;
        Request *requests;
        Client *client;
        const char *const *urls;
        const char *path;
        ClientAnswer *answers;
        size_t n, begun, open;
} Round;

static void round_begin_more(Round *round)
{
        while (round->open < MAX_AT_ONCE && round->begun < round->n) {
                size_t i = round->begun++;
                Request *request = &round->requests[i];

                if (!request_prepare(request, round->client, round->urls[i], "GET", round->path, NULL, 0,
                                     &round->answers[i]))
                        continue;
                (void) curl_easy_setopt(request->easy, CURLOPT_PRIVATE, request);
                if (curl_multi_add_handle(round->multi, request->easy) == CURLM_OK)
                        round->open++;
                else
                        round->answers[i].error = strdup("memory ran out");
        }
}

static void round_collect(Round *round)
{
        CURLMsg *message;
        int left = 0;

        while ((message = curl_multi_info_read(round->multi, &left)))
                if (message->msg == CURLMSG_DONE) {
                        Request *request = NULL;
                        CURLcode code = message->data.result;

                        (void) curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **) &request);
                        (void) curl_multi_remove_handle(round->multi, message->easy_handle);
                        request_finish(request, code);
                        round->open--;
                }
}

void client_get_all(Client *client, const char *const *urls, size_t n, const char *path,
                    ClientAnswer *answers)
{
        Round round = { .multi = curl_multi_init(),
                        .requests = calloc(n + 1, sizeof *round.requests),
                        .client = client,
                        .urls = urls,
                        .path = path,
                        .answers = answers,
                        .n = n };

        memset(answers, 0, n * sizeof *answers);
        if (round.multi && round.requests)
                for (round_begin_more(&round); round.open > 0; round_begin_more(&round)) {
                        int running = 0;

                        if (curl_multi_perform(round.multi, &running) != CURLM_OK)
                                break;
                        round_collect(&round);
                        if (running > 0 && curl_multi_poll(round.multi, NULL, 0, 1000, NULL) != CURLM_OK)
                                break;
                }
        for (size_t i = 0; i < n; i++) {
                if (!answers[i].error && !answers[i].text)
                        answers[i].error = strdup("memory ran out");
                if (round.requests && round.requests[i].easy) {
                        (void) curl_multi_remove_handle(round.multi, round.requests[i].easy);
                        request_done(&round.requests[i]);
                }
        }
        free(round.requests);
        (void) curl_multi_cleanup(round.multi);
}
