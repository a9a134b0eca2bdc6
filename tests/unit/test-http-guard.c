/* SPDX-License-Identifier: Apache-2.0 */
/* The guard, the query string, the addresses and the table of routes: everything of the server that is pure.
 */

#include "../../src/http/guard.h"
#include "../../src/http/query.h"
#include "../../src/http/routes.h"

#include "tierprobe/cleanup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- addresses ---- */

static void test_address(void **state)
{
        static const char *const good[] = { "127.0.0.1:7620", "0.0.0.0:0",
                                            "[::1]:7620",     "[fe80::1]:1",
                                            "10.1.2.3:65535", "unix:/run/tierprobe/http.sock" };
        static const char *const bad[] = { "",
                                           "7620",
                                           ":7620",
                                           "127.0.0.1",
                                           "127.0.0.1:",
                                           "127.0.0.1:x",
                                           "127.0.0.1:65536",
                                           "127.0.0.1:-1",
                                           "127.1:80",
                                           "::1:7620",
                                           "[::1]",
                                           "[::1:7620",
                                           "[]:80",
                                           "example.com:80",
                                           "unix:",
                                           "unix:relative",
                                           "http://127.0.0.1:80" };
        char text[ADDRESS_TEXT_SIZE], longest[256];
        Address address;

        (void) state;
        for (size_t i = 0; i < ELEMENTSOF(good); i++) {
                assert_int_equal(address_parse(good[i], &address, NULL), 0);
                address_format(&address, text);
                assert_string_equal(text, good[i]);
        }
        assert_int_equal(address_parse("localhost:80", &address, NULL), 0);
        address_format(&address, text);
        assert_string_equal(text, "127.0.0.1:80");
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                if (address_parse(bad[i], &address, NULL) != -EINVAL)
                        fail_msg("accepted: %s", bad[i]);
        memset(longest, 'x', sizeof longest);
        memcpy(longest, "unix:/", 6);
        longest[5 + sizeof address.un.sun_path - 1] = '\0';
        assert_int_equal(address_parse(longest, &address, NULL), 0);
        address_format(&address, text);
        assert_string_equal(text, longest);
        longest[5 + sizeof address.un.sun_path - 1] = 'x';
        longest[5 + sizeof address.un.sun_path] = '\0';
        assert_int_equal(address_parse(longest, &address, NULL), -EINVAL);
}

static void test_loopback(void **state)
{
        static const struct {
                const char *text;
                bool loopback;
        } cases[] = {
                { "127.0.0.1:1", true },          { "127.9.9.9:1", true }, { "128.0.0.1:1", false },
                { "0.0.0.0:1", false },           { "[::1]:1", true },     { "[::]:1", false },
                { "[fe80::1]:1", false },         { "unix:/x", true },     { "[::ffff:127.0.0.1]:1", true },
                { "[::ffff:10.0.0.1]:1", false },
        };
        Address address;

        (void) state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                assert_int_equal(address_parse(cases[i].text, &address, NULL), 0);
                if (address_is_loopback(&address) != cases[i].loopback)
                        fail_msg("%s", cases[i].text);
        }
}

/* ---- guard ---- */

static unsigned framing(RequestHead head)
{
        Problem problem = { 0 };

        if (guard_framing(&head, &problem) == 0)
                return 0;
        assert_true(problem.close);
        return problem.status;
}

static void test_framing(void **state)
{
        (void) state;
        assert_int_equal(framing((RequestHead){ 0 }), 0);
        assert_int_equal(framing((RequestHead){ .host = { NULL, 1 }, .content_length = { "3", 1 } }), 0);
        assert_int_equal(framing((RequestHead){ .content_length = { "3", 2 } }), 400);
        assert_int_equal(framing((RequestHead){ .content_length = { "+3", 1 } }), 400);
        assert_int_equal(framing((RequestHead){ .content_length = { "", 1 } }), 400);
        assert_int_equal(
                framing((RequestHead){ .content_length = { "3", 1 }, .transfer_encoding = { "chunked", 1 } }),
                400);
        assert_int_equal(framing((RequestHead){ .transfer_encoding = { "chunked", 1 } }), 411);
        assert_int_equal(framing((RequestHead){ .transfer_encoding = { "Chunked", 1 } }), 411);
        assert_int_equal(framing((RequestHead){ .transfer_encoding = { "gzip, chunked", 1 } }), 501);
        assert_int_equal(framing((RequestHead){ .transfer_encoding = { "chunked", 2 } }), 400);
        assert_int_equal(framing((RequestHead){ .host = { "localhost", 2 } }), 400);
}

static void test_host(void **state)
{
        static const struct {
                const char *host;
                unsigned status;
        } cases[] = {
                { "localhost", 0 },
                { "LocalHost:7620", 0 },
                { "localhost.", 0 },
                { "localhost:", 0 },
                { "127.0.0.1:7620", 0 },
                { "127.0.0.53", 0 },
                { "[::1]:7620", 0 },
                { "10.1.2.3:7620", 0 },     /* an address listened on */
                { "192.168.7.7", 0 },       /* this end of the connection */
                { "db2-node1:7620", 0 },    /* allowed */
                { "Probe.Example.COM", 0 }, /* allowed */
                { "attacker.example", 403 },
                { "localhost.attacker.example", 403 },
                { "127.0.0.1.attacker.example", 403 },
                { "probe.example.co", 403 },
                { "db2-node1,probe.example.com", 400 },
                { "10.1.2.4", 403 },
                { "0.0.0.0:7620", 403 },
                { "[::]:7620", 403 },
                { "2130706433", 403 },
                { "", 400 },
                { ":7620", 400 },
                { "[::1", 400 },
                { "[::1]x", 400 },
                { "::1", 400 },
                { "localhost:port", 400 },
                { "localhost:99999", 400 },
                { "user@localhost", 400 },
                { "localhost/x", 400 },
                { "local host", 400 },
                { "[::1%lo]", 400 },
        };
        Address listen[2], local, unix_local;
        HostRules rules = { .allowed_hosts = "db2-node1, probe.example.com",
                            .listen = listen,
                            .n_listen = 2 };
        Problem problem;

        (void) state;
        assert_int_equal(address_parse("10.1.2.3:7620", &listen[0], NULL), 0);
        assert_int_equal(address_parse("0.0.0.0:7621", &listen[1], NULL), 0);
        assert_int_equal(address_parse("192.168.7.7:7621", &local, NULL), 0);
        assert_int_equal(address_parse("unix:/x", &unix_local, NULL), 0);
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                RequestHead head = { .host = { cases[i].host, 1 } };

                problem.status = 0;
                int r = guard_host(&head, &rules, &local, &problem);
                if ((r < 0) != (cases[i].status != 0) || problem.status != cases[i].status)
                        fail_msg("Host \"%s\": %u", cases[i].host, problem.status);
                assert_int_equal(guard_host(&head, &rules, &unix_local, &problem), 0);
        }
        assert_int_equal(guard_host(&(RequestHead){ .path = NULL }, &rules, &local, &problem), -1);
        assert_int_equal(problem.status, 400);
        rules.allowed_hosts = NULL;
        assert_int_equal(guard_host(&(RequestHead){ .host = { "db2-node1", 1 } }, &rules, &local, &problem),
                         -1);
        assert_int_equal(problem.status, 403);
}

static unsigned origin(const char *text, size_t n, const char *host, const char *site)
{
        RequestHead head = { .origin = { text, n }, .host = { host, 1 }, .sec_fetch_site.value = site };
        Problem problem = { 0 };

        return guard_origin(&head, &problem) == 0 ? 0 : problem.status;
}

static void test_origin(void **state)
{
        (void) state;
        assert_int_equal(origin(NULL, 0, "localhost:7620", NULL), 0);
        assert_int_equal(origin("http://localhost:7620", 1, "localhost:7620", NULL), 0);
        assert_int_equal(origin("https://LOCALHOST:7620", 1, "localhost:7620", "same-origin"), 0);
        assert_int_equal(origin("http://localhost", 1, "localhost:7620", NULL), 403);
        assert_int_equal(origin("http://localhost:7620/", 1, "localhost:7620", NULL), 403);
        assert_int_equal(origin("http://evil.example", 1, "localhost:7620", NULL), 403);
        assert_int_equal(origin("null", 1, "localhost:7620", NULL), 403);
        assert_int_equal(origin("", 1, "localhost:7620", NULL), 403);
        assert_int_equal(origin("http://localhost:7620", 2, "localhost:7620", NULL), 403);
        assert_int_equal(origin("http://localhost:7620", 1, NULL, NULL), 403);
        assert_int_equal(origin(NULL, 0, "localhost:7620", "none"), 0);
        assert_int_equal(origin(NULL, 0, "localhost:7620", "cross-site"), 403);
        assert_int_equal(origin(NULL, 0, "localhost:7620", "same-site"), 403);
        assert_int_equal(origin(NULL, 0, "localhost:7620", ""), 403);
}

static unsigned body(const char *length, const char *type, bool takes)
{
        RequestHead head = { .content_length = { length, length != NULL }, .content_type.value = type };
        Problem problem = { 0 };

        return guard_body(&head, takes, &problem) == 0 ? 0 : problem.status;
}

static void test_body(void **state)
{
        (void) state;
        assert_int_equal(body(NULL, NULL, true), 0);
        assert_int_equal(body("0", "text/plain", false), 0);
        assert_int_equal(body("1", NULL, false), 400);
        assert_int_equal(body("4096", NULL, true), 0);
        assert_int_equal(body("4097", NULL, true), 413);
        assert_int_equal(body("18446744073709551615", NULL, true), 413);
        assert_int_equal(body("5", "application/json", true), 0);
        assert_int_equal(body("5", "Application/JSON; charset=utf-8", true), 0);
        assert_int_equal(body("5", "application/jsonx", true), 415);
        assert_int_equal(body("5", "application/x-www-form-urlencoded", true), 415);
        assert_int_equal(body("5", "text/plain", true), 415);
}

/* ---- query ---- */

static unsigned query(const char *text, Query *ret)
{
        static const char *const known[] = { "target", "limit", NULL };
        Problem problem = { 0 };

        query_set(ret, text);
        return query_read(ret, known, &problem) == 0 ? 0 : problem.status;
}

static void test_query(void **state)
{
        static const char *const bad[] = {
                "taget=x",       "=x",          "%6cimit=5", "limit",      "limit=",     "limit=5&limit=5",
                "limit=5&limit", "target=%",    "target=%4", "target=%zz", "target=%00", "target=%0a",
                "target=a%00b",  "target=\x01", "&",         "&limit=5",   "limit=5&&",  "?",
                "Limit=5",       "limit=5&x=1", "limit =5",
        };
        char longest[QUERY_VALUE_SIZE + 8] = "target=";
        _cleanup_free_ char *parameters = calloc(1, 16000);
        Query values;

        (void) state;
        assert_int_equal(query(NULL, &values), 0);
        assert_null(query_value(&values, "target"));
        assert_int_equal(query("", &values), 0);
        assert_int_equal(query("limit=5&target=c%61che%2D1", &values), 0);
        assert_string_equal(query_value(&values, "target"), "cache-1");
        assert_string_equal(query_value(&values, "limit"), "5");
        assert_int_equal(query("target=a+b=c", &values), 0);
        assert_string_equal(query_value(&values, "target"), "a+b=c");
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                if (query(bad[i], &values) != 400)
                        fail_msg("accepted: %s", bad[i]);

        memset(longest + 7, 'x', QUERY_VALUE_SIZE);
        longest[7 + QUERY_VALUE_SIZE] = '\0';
        assert_int_equal(query(longest, &values), 400);
        longest[7 + QUERY_VALUE_SIZE - 1] = '\0';
        assert_int_equal(query(longest, &values), 0);
        assert_string_equal(query_value(&values, "target"), longest + 7);

        assert_non_null(parameters);
        for (int i = 0; i < 1000; i++)
                (void) strcat(parameters, "limit=5&");
        assert_int_equal(query(parameters, &values), 414);
        parameters[QUERY_SIZE - 1] = '\0';
        assert_int_equal(query(parameters, &values), 400);
}

/* Any bytes: every encoded text comes out as it was, every other gives 400 and no crash. */
static void test_query_random(void **state)
{
        (void) state;
        srandom(20261130);
        for (int i = 0; i < 20000; i++) {
                char plain[30], encoded[sizeof plain * 3 + 8] = "target=", raw[32];
                size_t length = 1 + (size_t) random() % (sizeof plain - 1), at = strlen(encoded);
                Query values;

                for (size_t c = 0; c < length; c++) {
                        plain[c] = (char) (0x20 + random() % 0xe0);
                        if (random() % 2 || plain[c] == '%' || plain[c] == '&')
                                at += (size_t) snprintf(encoded + at, 4, random() % 2 ? "%%%02x" : "%%%02X",
                                                        (unsigned char) plain[c]);
                        else
                                encoded[at++] = plain[c];
                        encoded[at] = '\0';
                }
                plain[length] = '\0';
                assert_int_equal(query(encoded, &values), 0);
                assert_string_equal(query_value(&values, "target"), plain);

                (void) strcpy(raw, random() % 2 ? "target=" : "limit=1&");
                for (size_t c = strlen(raw); c < sizeof raw - 1; c++)
                        raw[c] = "%0aF12x\x01\xff&=tl"[random() % 13];
                raw[sizeof raw - 1] = '\0';
                unsigned status = query(raw, &values);
                assert_true(status == 0 || status == 400);
        }
}

static void test_field(void **state)
{
        static const char every[] = "!#$%&'*+-.^_`|~09AZaz";
        static const struct {
                const char *name, *value;
                bool valid;
        } cases[] = {
                { every, "", true },        { "Host", "\ta \xff~", true }, { "", "x", false },
                { "Host ", "x", false },    { "Host\t", "x", false },      { " Host", "x", false },
                { "Ho st", "x", false },    { "Host\x01", "x", false },    { "H\xc3\xb6st", "x", false },
                { "Host\x7f", "x", false }, { "Host", "a\rb", false },     { "Host", "\x01", false },
                { "Host", "a\x7f", false }, { "Host", "a\nb", false },     { "Ho(st", "x", false },
                { "Host/", "x", false },    { "\"Host\"", "x", false },
        };

        (void) state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                if (field_is_valid(cases[i].name, strlen(cases[i].name), cases[i].value,
                                   strlen(cases[i].value)) != cases[i].valid)
                        fail_msg("%zu: %s", i, cases[i].name);
        assert_false(field_is_valid("Ho\0st", 5, "x", 1));
        assert_false(field_is_valid("Host", 4, "a\0b", 3));
}

static void test_number(void **state)
{
        Problem problem;
        uint64_t value = 7;
        Query values;

        (void) state;
        assert_int_equal(query("target=x", &values), 0);
        assert_int_equal(query_number(&values, "limit", 1, 10, 5, &value, &problem), 0);
        assert_int_equal(value, 5);
        assert_int_equal(query("limit=10", &values), 0);
        assert_int_equal(query_number(&values, "limit", 1, 10, 5, &value, &problem), 0);
        assert_int_equal(value, 10);
        static const char *const bad[] = { "0", "11", "-1", "1e1", " 1", "1 ", "99999999999999999999", "" };
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                values.values[1] = bad[i];
                assert_int_equal(query_number(&values, "limit", 1, 10, 5, &value, &problem), -1);
                assert_int_equal(problem.status, 400);
                assert_int_equal(value, 10);
        }
}

/* ---- routes ---- */

static void test_routes(void **state)
{
        char rest[NAME_SIZE];
        char allow[ALLOW_SIZE];

        (void) state;
        assert_non_null(route_find("/status", METHOD_GET, rest, allow));
        assert_non_null(route_find("/status", METHOD_HEAD, rest, allow));
        assert_null(route_find("/status", METHOD_POST, rest, allow));
        assert_string_equal(allow, "GET, HEAD, OPTIONS");
        assert_null(route_find("/run", METHOD_GET, rest, allow));
        assert_string_equal(allow, "POST, OPTIONS");
        assert_non_null(route_find("/runs/20261130T131405-7f3a9c", METHOD_GET, rest, allow));
        assert_string_equal(rest, "20261130T131405-7f3a9c");
        assert_null(route_find("/runs/x", METHOD_OTHER, rest, allow));
        assert_string_equal(allow, "GET, HEAD, DELETE, OPTIONS");
        static const char *const nothing[] = { "",       "status",   "/status/",  "//status", "/STATUS",
                                               "/runs/", "/runs/a/", "/runs/a/b", "/run/",    "/statusx" };
        for (size_t i = 0; i < ELEMENTSOF(nothing); i++) {
                assert_null(route_find(nothing[i], METHOD_GET, rest, allow));
                assert_string_equal(allow, "");
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_address), cmocka_unit_test(test_loopback),
                cmocka_unit_test(test_framing), cmocka_unit_test(test_host),
                cmocka_unit_test(test_origin),  cmocka_unit_test(test_body),
                cmocka_unit_test(test_query),   cmocka_unit_test(test_query_random),
                cmocka_unit_test(test_number),  cmocka_unit_test(test_field),
                cmocka_unit_test(test_routes),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
