/* SPDX-License-Identifier: Apache-2.0 */
/* What a request must satisfy before any route sees it. libmicrohttpd lets most of this pass: the checks
 * stand for what it leaves out. */

#include "guard.h"

#include "tierprobe/units.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

int problem_set(Problem *problem, unsigned status, const char *code, const char *format, ...)
{
        va_list ap;

        *problem = (Problem){ .status = status, .code = code };
        va_start(ap, format);
        (void) vsnprintf(problem->detail, sizeof problem->detail, format, ap);
        va_end(ap);
        return -1;
}

int problem_set_closing(Problem *problem, unsigned status, const char *code, const char *detail)
{
        (void) problem_set(problem, status, code, "%s", detail);
        problem->close = true;
        return -1;
}

int guard_framing(const RequestHead *head, Problem *problem)
{
        uint64_t length = 0;

        if (head->content_length.n > 1)
                return problem_set_closing(problem, 400, "bad_framing", "more than one Content-Length");
        if (head->transfer_encoding.n > 0 && head->content_length.n > 0)
                return problem_set_closing(problem, 400, "bad_framing",
                                           "both Content-Length and Transfer-Encoding");
        if (head->transfer_encoding.n > 1)
                return problem_set_closing(problem, 400, "bad_framing", "more than one Transfer-Encoding");
        if (head->transfer_encoding.value && strcasecmp(head->transfer_encoding.value, "chunked") == 0)
                return problem_set_closing(problem, 411, "length_required",
                                           "send the body with a Content-Length, not in chunks");
        if (head->transfer_encoding.value)
                return problem_set_closing(problem, 501, "transfer_encoding_unknown",
                                           "no Transfer-Encoding is understood here");
        if (head->content_length.value && parse_u64(head->content_length.value, &length) < 0)
                return problem_set_closing(problem, 400, "bad_framing", "Content-Length is not a number");
        if (head->host.n > 1)
                return problem_set_closing(problem, 400, "bad_host", "more than one Host");
        return 0;
}

int host_parse(const char *text, char *name, size_t size)
{
        const char *end = NULL;
        uint64_t port = 0;
        size_t length = 0;

        if (*text == '[') {
                end = strchr(++text, ']');
                if (!end)
                        return -EINVAL;
                length = (size_t) (end++ - text);
        } else {
                length = strcspn(text, ":");
                end = text + length;
        }
        if (*end == ':' && end[1] && (parse_u64(end + 1, &port) < 0 || port > UINT16_MAX))
                return -EINVAL;
        if (*end && *end != ':')
                return -EINVAL;
        if (length > 1 && text[length - 1] == '.')
                length--;
        if (length == 0 || length >= size)
                return -EINVAL;
        for (size_t i = 0; i < length; i++) {
                char c = text[i];

                if (c >= 'A' && c <= 'Z')
                        c = (char) (c - 'A' + 'a');
                if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' ||
                      c == ':'))
                        return -EINVAL;
                name[i] = c;
        }
        name[length] = '\0';
        return 0;
}

/* Whether WORDS names NAME. */
static bool list_has(const char *words, const char *name)
{
        static const char separators[] = " \t,";

        while (words && *words) {
                size_t length = strcspn(words, separators);

                if (length > 0 && length == strlen(name) && strncasecmp(words, name, length) == 0)
                        return true;
                words += length;
                words += strspn(words, separators);
        }
        return false;
}

/* A literal address cannot be rebound: a page that names it has that very address as its origin. */
static bool literal_is_ours(const char *name, const HostRules *rules, const Address *local)
{
        Address address = { 0 };

        if (inet_pton(AF_INET, name, &address.in.sin_addr) == 1)
                address.in.sin_family = AF_INET;
        else if (inet_pton(AF_INET6, name, &address.in6.sin6_addr) == 1)
                address.in6.sin6_family = AF_INET6;
        else
                return false;
        if (address_is_loopback(&address) || address_same_host(&address, local))
                return true;
        for (size_t i = 0; i < rules->n_listen; i++)
                if (address_same_host(&address, &rules->listen[i]))
                        return true;
        return false;
}

int guard_host(const RequestHead *head, const HostRules *rules, const Address *local, Problem *problem)
{
        char name[256];

        if (local->any.sa_family == AF_UNIX)
                return 0;
        if (head->host.n != 1 || !head->host.value || host_parse(head->host.value, name, sizeof name) < 0)
                return problem_set_closing(problem, 400, "bad_host",
                                           "exactly one Host is needed, a name or address");
        if (strcmp(name, "localhost") == 0 || literal_is_ours(name, rules, local) ||
            list_has(rules->allowed_hosts, name))
                return 0;
        return problem_set(
                problem, 403, "host_not_allowed",
                "this server does not answer to the host name of the request; names beside localhost "
                "and the listen addresses are set by allowed_hosts in [http]");
}

int guard_path(const RequestHead *head, Problem *problem)
{
        if (*head->path != '/')
                return problem_set(problem, 400, "bad_path", "the request target must be a path");
        if (strchr(head->path, '%'))
                return problem_set(problem, 404, "not_found", "there is nothing at this path");
        return 0;
}

int guard_origin(const RequestHead *head, Problem *problem)
{
        if (head->origin.n > 0) {
                const char *authority = NULL;

                if (head->origin.value && strncasecmp(head->origin.value, "http://", 7) == 0)
                        authority = head->origin.value + 7;
                else if (head->origin.value && strncasecmp(head->origin.value, "https://", 8) == 0)
                        authority = head->origin.value + 8;
                if (head->origin.n > 1 || !authority || !head->host.value ||
                    strcasecmp(authority, head->host.value) != 0)
                        return problem_set(problem, 403, "foreign_origin",
                                           "a page of another site may not change anything here");
        }
        /* "same-site" is refused as well: every port of localhost is the same site. */
        if (head->sec_fetch_site.value && strcmp(head->sec_fetch_site.value, "none") != 0 &&
            strcmp(head->sec_fetch_site.value, "same-origin") != 0)
                return problem_set(problem, 403, "foreign_origin",
                                   "a page of another site may not change anything here");
        return 0;
}

static bool type_is_json(const char *type)
{
        static const char json[] = "application/json";
        const char *rest = type + sizeof json - 1;

        return strncasecmp(type, json, sizeof json - 1) == 0 &&
               (*rest == '\0' || *rest == ';' || *rest == ' ');
}

int guard_body(const RequestHead *head, bool takes_body, Problem *problem)
{
        uint64_t length = 0;

        if (!head->content_length.value || parse_u64(head->content_length.value, &length) < 0 || length == 0)
                return 0;
        if (!takes_body)
                return problem_set_closing(problem, 400, "unexpected_body", "this request takes no body");
        if (length > GUARD_MAX_BODY)
                return problem_set_closing(problem, 413, "body_too_large",
                                           "the body may have at most 4096 bytes");
        if (head->content_type.value && !type_is_json(head->content_type.value))
                return problem_set_closing(problem, 415, "not_json",
                                           "the body must be application/json; it may also be left out");
        return 0;
}
