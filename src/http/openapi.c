/* SPDX-License-Identifier: Apache-2.0 */
/* /openapi.json: the API's description, made of the table of routes, of those of figures and reasons, and of
 * schemas.json. Reads nothing else. */

#include "openapi.h"
#include "reply.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/iostat.h"
#include "tierprobe/json.h"
#include "tierprobe/verdict.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct ParameterMeaning {
        const char *name, *meaning;
        const char *type; /* of JSON Schema */
        const char *format;
} ParameterMeaning;

/* What a query parameter means, on whatever route. */
static const ParameterMeaning parameters[] = {
        { "target", "a target's name", "string", NULL },
        { "profile", "a profile's name; without it the target's official one", "string", NULL },
        { "together", "yes: the tests of different disks begin at the same moment", "string", NULL },
        { "wait", "seconds to wait for the end of the run", "integer", NULL },
        { "limit", "how many at most", "integer", NULL },
        { "brief", "yes: verdicts alone", "string", NULL },
        { "verdict", "pass, fail or inconclusive", "string", NULL },
        { "since", "of samples: next_cursor of an earlier answer; of runs: a time", "string", NULL },
        { "before", "next_cursor of an earlier answer", "string", NULL },
        { "run", "samples of this run alone", "string", NULL },
        { "step", "seconds of a bucket", "integer", NULL },
        { "from", "not before this time", "string", "date-time" },
        { "to", "before this time", "string", "date-time" },
};

/* The codes of problems; those of reasons for not starting a test come on top. */
static const char *const problem_codes[] = {
        "bad_body",           "bad_connection",     "bad_cursor",
        "bad_framing",        "bad_header",         "bad_host",
        "bad_parameter",      "bad_path",           "body_too_large",
        "contradiction",      "cooldown",           "duplicate_parameter",
        "foreign_origin",     "host_not_allowed",   "internal_error",
        "length_required",    "method_not_allowed", "no_history",
        "no_targets",         "not_found",          "not_json",
        "not_ready",          "over_budget",        "query_too_long",
        "read_only_listener", "run_ended",          "run_in_progress",
        "run_unreadable",     "target_needed",      "token_needed",
        "token_wrong",        "too_many_waiting",   "transfer_encoding_unknown",
        "unexpected_body",    "unknown_parameter",  "unknown_profile",
        "unknown_run",        "unknown_target",
};

/* ---- schemas out of tables ---- */

/* Each of iostat's columns, with a copy of SCHEMA, which is taken. */
static json_t *figures(json_t *schema)
{
        json_auto_t *one = schema, *properties = json_object();

        for (size_t i = 0; one && i < N_METRIC_COLUMNS; i++)
                if (json_object_set(properties, metric_columns[i].key, one) < 0)
                        return NULL;
        return one ? json_incref(properties) : NULL;
}

static json_t *number_or_null(void)
{
        return json_pack("{s:[s, s]}", "type", "number", "null");
}

static json_t *figures_schema(void)
{
        return json_pack("{s:s, s:s, s:o}", "type", "object", "description",
                         "iostat's columns; null where one could not be measured", "properties",
                         figures(number_or_null()));
}

static json_t *bucket_schema(void)
{
        json_auto_t *properties =
                figures(json_pack("{s:s, s:{s:o, s:o, s:o}}", "type", "object", "properties", "min",
                                  number_or_null(), "mean", number_or_null(), "max", number_or_null()));
        json_auto_t *more = json_pack("{s:{s:s, s:s}, s:{s:s}, s:{s:s, s:{s:s}}}", "time", "type", "string",
                                      "format", "date-time", "count", "type", "integer", "runs", "type",
                                      "array", "items", "type", "string");

        if (!properties || json_object_update(properties, more) < 0)
                return NULL;
        return json_pack("{s:s, s:O}", "type", "object", "properties", properties);
}

static json_t *codes_schema(void)
{
        json_auto_t *codes = json_array();

        for (size_t i = 0; i < ELEMENTSOF(problem_codes); i++)
                (void) json_array_append_new(codes, json_string(problem_codes[i]));
        for (int i = 0; i < _REASON_MAX; i++)
                (void) json_array_append_new(codes, json_string(reason_to_string((ReasonCode) i)));
        return json_pack("{s:s, s:O}", "type", "string", "enum", codes);
}

static json_t *schemas(void)
{
        json_t *all = json_loads(openapi_schemas, 0, NULL);
        json_t *problem =
                json_object_get(json_object_get(json_object_get(all, "Problem"), "properties"), "code");

        if (!all)
                return NULL;
        (void) json_object_update_new(problem, codes_schema());
        (void) json_object_set_new(all, "Figures", figures_schema());
        (void) json_object_set_new(all, "Bucket", bucket_schema());
        return all;
}

/* ---- paths ---- */

/* "/runs/{id}" of "/runs/ID". */
static void print_path(const char *pattern, char path[64], char part[16])
{
        size_t at = 0, n = 0;

        for (const char *p = pattern; *p && at < 60; p++) {
                bool is_part = isupper((unsigned char) *p);

                if (is_part && n == 0)
                        path[at++] = '{';
                if (!is_part && n > 0 && path[at - 1] != '}' && isupper((unsigned char) p[-1]))
                        path[at++] = '}';
                if (is_part && n < 15)
                        part[n++] = (char) tolower((unsigned char) *p);
                path[at++] = is_part ? (char) tolower((unsigned char) *p) : *p;
        }
        if (n > 0 && isupper((unsigned char) pattern[strlen(pattern) - 1]))
                path[at++] = '}';
        path[at] = part[n] = '\0';
}

static json_t *describe_parameters(const Route *route, const char *part)
{
        json_t *list = json_array();

        if (*part)
                (void) json_array_append_new(list,
                                             json_pack("{s:s, s:s, s:b, s:{s:s}}", "name", part, "in", "path",
                                                       "required", true, "schema", "type", "string"));
        for (const char *const *name = route->parameters; *name; name++)
                for (size_t i = 0; i < ELEMENTSOF(parameters); i++) {
                        const ParameterMeaning *one = &parameters[i];

                        if (strcmp(one->name, *name) == 0)
                                (void) json_array_append_new(
                                        list, json_pack("{s:s, s:s, s:s, s:{s:s, s:s*}}", "name", one->name,
                                                        "in", "query", "description", one->meaning, "schema",
                                                        "type", one->type, "format", one->format));
                }
        return list;
}

static json_t *schema_reference(const char *name)
{
        char text[64];

        (void) snprintf(text, sizeof text, "#/components/schemas/%s", name);
        return json_pack("{s:{s:s}}", "schema", "$ref", text);
}

static json_t *describe_answers(const Route *route)
{
        json_auto_t *content = json_object();
        char status[8];

        if (route->schema)
                (void) json_object_set_new(content, TYPE_JSON, schema_reference(route->schema));
        for (const char *const *type = route->types; *type; type++)
                (void) json_object_set_new(content, *type, json_object());
        (void) snprintf(status, sizeof status, "%u", route->status);
        return json_pack("{s:{s:s, s:O}, s:{s:s, s:{s:o}}}", status, "description", route->meaning, "content",
                         content, "default", "description", "a problem", "content",
                         "application/problem+json", schema_reference("Problem"));
}

static const char *verb(Method method)
{
        return method == METHOD_POST ? "post" : method == METHOD_DELETE ? "delete" : "get";
}

static json_t *paths(const Route *routes, size_t n)
{
        json_t *all = json_object();

        for (const Route *route = routes; route < routes + n; route++) {
                char path[64], part[16];

                print_path(route->path, path, part);
                json_t *item = json_object_get(all, path);
                if (!item) {
                        item = json_object();
                        (void) json_object_set_new(all, path, item);
                }
                (void) json_object_set_new(item, verb(route->method),
                                           json_pack("{s:s, s:o, s:o}", "summary", route->meaning,
                                                     "parameters", describe_parameters(route, part),
                                                     "responses", describe_answers(route)));
        }
        return all;
}

json_t *openapi_document(const Route *routes, size_t n)
{
        return json_pack("{s:s, s:{s:s, s:s, s:s}, s:o, s:{s:o, s:{s:{s:s, s:s}}}}", "openapi", "3.1.0",
                         "info", "title", "tierprobed", "version", TIERPROBE_VERSION, "summary",
                         "Whether a host's disks are fit to be a database's cache", "paths", paths(routes, n),
                         "components", "schemas", schemas(), "securitySchemes", "token", "type", "http",
                         "scheme", "bearer");
}
