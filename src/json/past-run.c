/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what the daemon needs of a kept run. The file may be damaged, written by anybody or by any release:
 * nothing but its grammar and its id is demanded of it. */

#include "tierprobe/past-run.h"

#include "json-internal.h"
#include "scan.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the text ---- */

/* The document taken apart: its id, and its RUN in a text that is as large as the document. */
typedef struct Parts {
        JsonSpan id;
        char *run;
        size_t size;
} Parts;

static bool span_is(JsonSpan span, const char *text)
{
        return span.size == strlen(text) && memcmp(span.text, text, span.size) == 0;
}

static void add(Parts *parts, const char *text, size_t size)
{
        memcpy(parts->run + parts->size, text, size);
        parts->size += size;
}

static void take_member(JsonSpan name, JsonSpan value, void *userdata)
{
        Parts *parts = userdata;

        if (span_is(name, "\"id\""))
                parts->id = value;
        if (span_is(name, "\"schema\"") || span_is(name, "\"evidence\""))
                return;
        add(parts, parts->size == 0 ? "{" : ",", 1);
        add(parts, name.text, name.size);
        add(parts, ":", 1);
        add(parts, value.text, value.size);
}

static int take_apart(const char *text, size_t size, const char *id, Parts *parts, char *error,
                      size_t error_size)
{
        char quoted[RUN_ID_SIZE + 2];
        size_t at = 0;

        parts->run = malloc(size + 1); /* nothing is added that the text does not have */
        if (!parts->run)
                return -ENOMEM;
        if (json_scan_object(text, size, take_member, parts, &at) < 0) {
                (void) snprintf(error, error_size, "it is no JSON object: see byte %zu of %zu", at, size);
                return -EBADMSG;
        }
        (void) snprintf(quoted, sizeof quoted, "\"%s\"", id);
        if (!parts->id.text || !span_is(parts->id, quoted)) {
                (void) snprintf(error, error_size,
                                parts->id.text ? "it holds another run's \"id\"" : "it has no \"id\"");
                return -EBADMSG;
        }
        add(parts, "}", 1);
        parts->run[parts->size] = '\0';
        return 0;
}

/* ---- the fields ---- */

static const char *string_of(const json_t *object, const char *key)
{
        return json_string_value(json_object_get(object, key));
}

static void read_name(const json_t *object, const char *key, char buf[NAME_SIZE])
{
        const char *text = string_of(object, key);

        if (text && name_is_valid(text))
                memcpy(buf, text, strlen(text) + 1);
}

static int read_copy(const json_t *object, const char *key, char **ret)
{
        const char *text = string_of(object, key);

        if (text && !(*ret = strdup(text)))
                return -ENOMEM;
        return 0;
}

static void read_time(const json_t *object, const char *key, int64_t *ret_real_ns)
{
        const char *text = string_of(object, key);

        if (text)
                (void) rfc3339_parse(text, ret_real_ns);
}

static void read_state(PastRun *run)
{
        const char *state = string_of(run->run, "state"), *verdict = string_of(run->run, "verdict");

        if (!state || run_state_from_string(state, &run->state) < 0)
                run->state = _RUN_STATE_MAX;
        if (verdict && verdict_from_string(verdict, &run->verdict) < 0)
                run->verdict = VERDICT_INCONCLUSIVE;
        if (!past_run_ended(run))
                run->verdict = VERDICT_NEVER_RUN;
        else if (run->verdict == VERDICT_NEVER_RUN)
                run->verdict = VERDICT_INCONCLUSIVE;
}

static int read_fields(PastRun *run)
{
        const json_t *bytes = json_object_get(run->run, "bytes_written");

        read_name(run->run, "target", run->target);
        read_name(run->run, "profile", run->profile);
        run->certifying = json_is_true(json_object_get(run->run, "certifying"));
        read_time(run->run, "queued_at", &run->queued_real_ns);
        read_time(run->run, "started_at", &run->started_real_ns);
        read_time(run->run, "finished_at", &run->finished_real_ns);
        read_state(run);
        if (json_is_integer(bytes) && json_integer_value(bytes) > 0)
                run->bytes_written = (uint64_t) json_integer_value(bytes);
        int r = read_copy(run->run, "path", &run->path);
        if (r < 0)
                return r;
        return read_copy(json_object_get(run->run, "device"), "mount_point", &run->mount_point);
}

int past_run_read(PastRun **ret, const char *text, size_t size, const char *id, char *error,
                  size_t error_size)
{
        _cleanup_(past_run_freep) PastRun *run = calloc(1, sizeof *run);
        Parts parts = { 0 };

        if (!run)
                return -ENOMEM;
        run->refs = 1;
        int r = take_apart(text, size, id, &parts, error, error_size);
        run->text = parts.run;
        run->size = parts.size;
        if (r < 0)
                return r;
        (void) snprintf(run->id, sizeof run->id, "%s", id);
        run->run = json_loadb(run->text, run->size, JSON_ALLOW_NUL, NULL);
        r = read_fields(run);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(run);
        return 0;
}

PastRun *past_run_ref(PastRun *run)
{
        run->refs++;
        return run;
}

PastRun *past_run_free(PastRun *run)
{
        if (!run || --run->refs > 0)
                return NULL;
        json_decref(run->run);
        free(run->text);
        free(run->path);
        free(run->mount_point);
        free(run);
        return NULL;
}

void past_run_freep(PastRun **run)
{
        past_run_free(*run);
}

double past_run_number(const PastRun *run, const char *group, const char *member)
{
        const json_t *object = group ? json_object_get(run->run, group) : run->run;
        const json_t *value = json_object_get(object, member);

        return json_is_number(value) ? json_number_value(value) : NAN;
}

bool past_run_ended(const PastRun *run)
{
        if (run->state != _RUN_STATE_MAX)
                return run_state_ended(run->state);
        return run->verdict != VERDICT_NEVER_RUN || run->finished_real_ns != 0;
}

int64_t past_run_begin_real_ns(const PastRun *run)
{
        return run->started_real_ns ? run->started_real_ns : run->queued_real_ns;
}

/* ---- disks ---- */

static void read_text(const json_t *object, const char *key, char *buf, size_t size)
{
        const char *text = string_of(object, key);

        (void) snprintf(buf, size, "%s", text ? text : "");
}

/* A node of the stack with as much as tells a disk from another. */
static void read_node(const json_t *object, Device *device)
{
        DeviceNode *node = &device->nodes[device->n_nodes];
        const char *parent = string_of(object, "parent"), *kind = string_of(object, "kind");

        read_text(object, "name", node->name, sizeof node->name);
        read_text(object, "model", node->model, sizeof node->model);
        read_text(object, "serial", node->serial, sizeof node->serial);
        read_text(object, "wwid", node->wwid, sizeof node->wwid);
        read_text(object, "firmware", node->firmware, sizeof node->firmware);
        read_text(object, "dm_uuid", node->dm_uuid, sizeof node->dm_uuid);
        read_text(object, "part_uuid", node->part_uuid, sizeof node->part_uuid);
        read_text(object, "backing_file", node->backing_file, sizeof node->backing_file);
        for (int i = 0; kind && i < _DEVICE_KIND_MAX; i++)
                if (strcmp(kind, device_kind_to_string((DeviceKind) i)) == 0)
                        node->kind = (DeviceKind) i;
        node->parent = -1;
        for (size_t i = device->n_nodes; parent && i > 0; i--)
                if (strcmp(device->nodes[i - 1].name, parent) == 0)
                        node->parent = (int) (i - 1);
        device->n_nodes++;
}

/* As much of the device as the document tells of; NULL: nothing, or out of memory. Its texts are borrowed. */
static Device *read_device(const PastRun *run)
{
        const json_t *object = json_object_get(run->run, "device"), *stack = json_object_get(object, "stack");
        const json_t *item = NULL;
        size_t i = 0, n = json_array_size(stack);

        _cleanup_free_ Device *device = calloc(1, sizeof *device);
        if (!device || n == 0 || !(device->nodes = calloc(n, sizeof *device->nodes)))
                return NULL;
        json_array_foreach(stack, i, item) read_node(item, device);
        read_text(object, "name", device->name, sizeof device->name);
        read_text(object, "fs_uuid", device->fs_uuid, sizeof device->fs_uuid);
        device->filesystem = (char *) string_of(object, "filesystem");
        return TAKE_PTR(device);
}

static void device_borrowed_freep(Device **device)
{
        if (*device)
                free((*device)->nodes);
        free(*device);
}

size_t past_run_disks(const PastRun *run, DiskKey *keys, size_t max)
{
        _cleanup_(device_borrowed_freep) Device *device = read_device(run);

        return device ? device_disks(device, keys, max) : 0;
}

/* ---- what counts for the verdict ---- */

static double number_of(const json_t *object, const char *key)
{
        const json_t *number = json_object_get(object, key);

        return json_is_number(number) ? json_number_value(number) : NAN;
}

static uint64_t count_of(const json_t *object, const char *key)
{
        json_int_t count = json_integer_value(json_object_get(object, key));

        return count > 0 ? (uint64_t) count : 0;
}

static void read_limits(const json_t *object, Limits *ret)
{
        const Parameter *parameter = NULL;

        for (size_t i = 0; (parameter = limits_parameter(i)); i++)
                *(double *) (void *) ((char *) ret + parameter->offset) = number_of(object, parameter->name);
}

/* A missing or unknown parameter leaves the block size 0: then none of them counts. */
static void read_test(const json_t *object, Profile *ret)
{
        const char *pattern = string_of(object, "pattern");
        double seconds = number_of(object, "duration_s");

        if (!pattern || probe_pattern_from_string(pattern, &ret->pattern) < 0)
                return;
        ret->count = count_of(object, "count");
        ret->streams = (unsigned) count_of(object, "streams");
        ret->duration_ns = seconds > 0 && seconds < 1e9 ? (uint64_t) (seconds * 1e9 + 0.5) : 0;
        ret->ramp = json_is_true(json_object_get(object, "ramp"));
        ret->block_size = count_of(object, "block_size");
}

void past_run_standing(const PastRun *run, StandingRun *ret)
{
        const json_t *measured = json_object_get(run->run, "measured");
        _cleanup_(device_borrowed_freep) Device *device = read_device(run);

        *ret = (StandingRun){ .state = run->state,
                              .verdict = run->verdict,
                              .official = json_is_true(json_object_get(run->run, "official")),
                              .certifying = run->certifying,
                              .finished_real_ns = run->finished_real_ns };
        read_time(json_object_get(run->run, "to_confirm"), "at", &ret->confirm_at_real_ns);
        read_time(json_object_get(run->run, "to_confirm"), "counts_from", &ret->counts_from_real_ns);
        memcpy(ret->id, run->id, sizeof ret->id);
        memcpy(ret->profile.name, run->profile, sizeof ret->profile.name);
        read_test(json_object_get(run->run, "test"), &ret->profile);
        read_limits(json_object_get(run->run, "limits"), &ret->limits);
        for (size_t i = 0; i < N_CRITERIA; i++)
                ret->value[i] = number_of(measured, criterion_rules[i].column) / criterion_rules[i].per_unit;
        if (device)
                standing_place_of(device, &ret->place);
}

/* ---- closing ---- */

int past_run_close(const char *text, size_t size, const char *detail, char **ret_text, size_t *ret_size)
{
        json_auto_t *document = json_loadb(text, size, JSON_ALLOW_NUL, NULL);
        Reasons reasons = { 0 };

        if (!json_is_object(document))
                return -EINVAL;
        reasons_add(&reasons, REASON_ABORTED, "%s", detail);
        if (!json_put(document, "state", json_text(run_state_to_string(RUN_ABORTED))) ||
            !json_put(document, "verdict", json_text(verdict_to_string(VERDICT_INCONCLUSIVE))) ||
            !json_put(document, "reasons", json_reasons(&reasons)))
                return -ENOMEM;
        /* When it ended is not known; it is not later than the next start, and not before its own. */
        if (!string_of(document, "finished_at")) {
                const char *began = string_of(document, "started_at");

                if (!began)
                        began = string_of(document, "queued_at");
                if (!json_put(document, "finished_at", json_text(began)))
                        return -ENOMEM;
        }
        char *closed = json_document(document, ret_size);
        if (!closed)
                return -ENOMEM;
        *ret_text = closed;
        return 0;
}
