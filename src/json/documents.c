/* SPDX-License-Identifier: Apache-2.0 */
/* Small documents of the HTTP interface, and the one body that it takes. */

#include "json-internal.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

json_t *json_problem(unsigned status, const char *title, const char *code, const char *detail,
                     const char *key, json_t *member)
{
        /* The status and the code say all; a type of our own would be a URL that must be kept alive. */
        json_auto_t *problem =
                OBJECT({ "schema", json_integer(JSON_SCHEMA) }, { "type", json_text("about:blank") },
                       { "title", json_text(title) }, { "status", json_u64(status) },
                       { "code", json_text(code) }, { "detail", json_text(detail) });

        if (!problem)
                json_decref(member);
        else if (key && !json_put(problem, key, member))
                return NULL;
        return TAKE_PTR(problem);
}

const char *json_start_code(const StartAnswer *answer)
{
        switch (answer->result) {
        case START_ACCEPTED:
                return "started";
        case START_BUSY:
                return "run_in_progress";
        case START_COOLDOWN:
                return "cooldown";
        case START_OVER_BUDGET:
                return "over_budget";
        case START_REFUSED:
                return reason_to_string(answer->reason);
        case START_NO_TARGET:
                return "unknown_target";
        case START_NO_PROFILE:
                return "unknown_profile";
        }
        return NULL;
}

json_t *json_start_answers(const StartAnswer *answers, size_t n)
{
        json_auto_t *array = json_array();

        if (!array)
                return NULL;
        for (size_t i = 0; i < n; i++) {
                const StartAnswer *answer = &answers[i];

                if (answer->result == START_ACCEPTED)
                        continue;
                if (json_array_append_new(
                            array,
                            OBJECT({ "target", json_text(answer->target) },
                                   { "code", json_text(json_start_code(answer)) },
                                   { "detail", json_text(answer->detail) },
                                   { "run_id", json_text_or_null(answer->result == START_BUSY ? answer->run_id
                                                                                              : NULL) },
                                   { "retry_after_s", answer->retry_after_s ? json_u64(answer->retry_after_s)
                                                                            : json_null() })) < 0)
                        return NULL;
        }
        return TAKE_PTR(array);
}

json_t *json_targets_not_ready(const TargetView *targets, size_t n)
{
        json_auto_t *array = json_array();

        if (!array)
                return NULL;
        for (const TargetView *view = targets; view < targets + n; view++) {
                if (view->verdict == VERDICT_PASS && !view->stale)
                        continue;
                if (json_array_append_new(array,
                                          OBJECT({ "name", json_text(view->name) },
                                                 { "verdict", json_text(verdict_to_string(view->verdict)) },
                                                 { "stale", json_boolean(view->stale) })) < 0)
                        return NULL;
        }
        return TAKE_PTR(array);
}

/* The name under KEY; null and missing are empty. */
static int read_name(const json_t *object, const char *key, char buf[NAME_SIZE])
{
        const json_t *value = json_object_get(object, key);
        const char *text = json_string_value(value);

        if (!value || json_is_null(value))
                return 0;
        if (!text || !*text || strlen(text) >= NAME_SIZE)
                return -EINVAL;
        memcpy(buf, text, strlen(text) + 1);
        return 0;
}

int json_read_start_request(const char *text, size_t size, StartRequest *ret, char *error, size_t error_size)
{
        static const char *const known[] = { "target", "profile", "together" };
        StartRequest request = { 0 };
        size_t n_known = 0;

        json_auto_t *document = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
        if (!json_is_object(document)) {
                (void) snprintf(error, error_size, "the body is not a JSON object");
                return -EINVAL;
        }
        for (size_t i = 0; i < ELEMENTSOF(known); i++)
                n_known += json_object_get(document, known[i]) != NULL;
        if (n_known < json_object_size(document)) {
                (void) snprintf(error, error_size, "the members of the body are: target, profile, together");
                return -EINVAL;
        }
        const json_t *together = json_object_get(document, known[2]);
        if (together && !json_is_boolean(together)) {
                (void) snprintf(error, error_size, "\"together\" is true or false");
                return -EINVAL;
        }
        request.together = json_is_true(together);
        for (size_t i = 0; i < 2; i++)
                if (read_name(document, known[i], i == 0 ? request.target : request.profile) < 0) {
                        (void) snprintf(error, error_size, "\"%s\" is not a valid name", known[i]);
                        return -EINVAL;
                }
        *ret = request;
        return 0;
}
