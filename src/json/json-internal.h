/* SPDX-License-Identifier: Apache-2.0 */
/* Building blocks of the json room: objects member by member, with out-of-memory kept as NULL.
 * Private to src/json. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "tierprobe/verdict.h"

typedef struct JsonMember {
        const char *key; /* NULL ends the list */
        json_t *value;   /* stolen; NULL: making it ran out of memory */
} JsonMember;

/* A new object with MEMBERS in their order; NULL when it or one of the values ran out of memory. */
json_t *json_object_from(const JsonMember *members);
#define OBJECT(...) json_object_from((const JsonMember[]){ __VA_ARGS__, { NULL, NULL } })

/* Adds one more member; VALUE is stolen. False when out of memory, VALUE NULL included. */
bool json_put(json_t *object, const char *key, json_t *value);

/* Adds a parameter of BASE under its name: a duration in seconds, with "_s" after the name, null while it is
 * not set; a kind of text as it is printed. */
bool json_put_parameter(json_t *object, const Parameter *parameter, const void *base);

/* JSON integers are signed 64 bit: a larger count is shown as the largest. */
json_t *json_u64(uint64_t value);

/* A measured figure: six significant digits; NAN is null. */
json_t *json_figure(double value);
json_t *json_seconds_from_ns(uint64_t ns);
json_t *json_text_or_null(const char *text); /* NULL and "" become null */
json_t *json_major_minor(uint32_t major, uint32_t minor);

/* The two requirements: figures of JUDGEMENT (null while not known) against the limits given. */
json_t *json_criteria_with_limits(const Judgement *judgement, const Limits *limits);

/* What went on around a run; null when that is not known. */
struct Conditions;
json_t *json_conditions(const struct Conditions *conditions);

/* What the sensors of a target show now; an empty list where there is none. */
struct HeatWatch;
json_t *json_heat(const struct HeatWatch *watch);

/* What json_run() adds with evidence. */
struct RunRecord;
json_t *json_evidence(const struct RunRecord *run);
