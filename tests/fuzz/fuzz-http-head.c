/* SPDX-License-Identifier: Apache-2.0 */
/* A request's head out of any bytes, fields separated by NUL: path, query, Host, Content-Length,
 * Transfer-Encoding, Content-Type, Origin, Sec-Fetch-Site, Authorization, Accept, Accept-Encoding,
 * If-None-Match. What is refused has a status, a code and a sentence; what is taken is within its bounds. */

#include "../../src/http/accept.h"
#include "../../src/http/guard.h"
#include "../../src/http/head.h"
#include "../../src/http/query.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A string of its own for each, so that a read beyond its end is seen. */
static char *take(const uint8_t **data, size_t *size)
{
        const uint8_t *nul = *size > 0 ? memchr(*data, '\0', *size) : NULL;
        size_t length = nul ? (size_t) (nul - *data) : *size;
        char *text = malloc(length + 1);

        if (!text)
                abort();
        if (length > 0)
                memcpy(text, *data, length);
        text[length] = '\0';
        *data += length + (nul != NULL);
        *size -= length + (nul != NULL);
        return text;
}

static void check(int r, const Problem *problem)
{
        if (r == 0)
                return;
        if (r != -1 || problem->status < 400 || problem->status > 599 || !problem->code || !*problem->code ||
            strnlen(problem->detail, sizeof problem->detail) == 0)
                abort();
}

static void check_query(const char *text)
{
        static const char *const known[] = { "target", "limit", "from", "wait", NULL };
        Query query;
        Problem problem = { 0 };
        int64_t ns = 0;
        uint64_t number = 0;

        query_set(&query, text);
        int r = query_read(&query, known, &problem);
        check(r, &problem);
        for (const char *const *name = known; r == 0 && *name; name++)
                if (query_value(&query, *name) && strlen(query_value(&query, *name)) >= QUERY_VALUE_SIZE)
                        abort();
        if (r < 0)
                return;
        check(query_time(&query, "from", 7, &ns, &problem), &problem);
        r = query_number(&query, "limit", 1, 10000, 5, &number, &problem);
        check(r, &problem);
        if (r == 0 && (number < 1 || number > 10000))
                abort();
}

static void check_host(const char *text)
{
        char name[64], again[64];

        if (host_parse(text, name, sizeof name) < 0)
                return;
        if (strlen(name) == 0 || strlen(name) >= sizeof name)
                abort();
        for (const char *p = name; *p; p++)
                if (*p >= 'A' && *p <= 'Z')
                        abort();
        /* An address of version 6 had brackets, and is another thing without. */
        if (!strchr(name, ':') && (host_parse(name, again, sizeof again) < 0 || strcmp(name, again) != 0))
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        enum {
                PATH,
                QUERY,
                HOST,
                LENGTH,
                CODING,
                TYPE,
                ORIGIN,
                SITE,
                AUTHORIZATION,
                ACCEPT,
                ENCODING,
                ETAG,
                _N
        };
        char *text[_N];
        Problem problem = { 0 };
        Address local = { .size = sizeof local.storage };

        for (int i = 0; i < _N; i++)
                text[i] = take(&data, &size);
#define FIELD(i) { *text[i] ? text[i] : NULL, *text[i] ? 1 + (size_t) (text[i][0] == 'w') : 0 }
        RequestHead head = { .path = text[PATH],
                             .host = FIELD(HOST),
                             .content_length = FIELD(LENGTH),
                             .transfer_encoding = FIELD(CODING),
                             .content_type = FIELD(TYPE),
                             .origin = FIELD(ORIGIN),
                             .sec_fetch_site = FIELD(SITE),
                             .authorization = FIELD(AUTHORIZATION),
                             .accept = FIELD(ACCEPT),
                             .accept_encoding = FIELD(ENCODING),
                             .if_none_match = FIELD(ETAG) };
        const HostRules rules = { .allowed_hosts = "db2node1 db2node2.example" };

        local.any.sa_family = AF_INET;
        check(guard_framing(&head, &problem), &problem);
        check(guard_host(&head, &rules, &local, &problem), &problem);
        check(guard_path(&head, &problem), &problem);
        check(guard_origin(&head, &problem), &problem);
        check(guard_body(&head, false, &problem), &problem);
        check(guard_body(&head, true, &problem), &problem);
        check_query(text[QUERY]);
        check_host(text[HOST]);
        double quality = accept_quality(head.accept.value, "text/csv");
        if (!(quality >= 0 && quality <= 1))
                abort();
        (void) accept_gzip(head.accept_encoding.value);
        (void) accept_etag(head.if_none_match.value, "\"1-2\"");
        (void) field_is_valid(text[PATH], strlen(text[PATH]), text[TYPE], strlen(text[TYPE]));
        for (int i = 0; i < _N; i++)
                free(text[i]);
        return 0;
}
