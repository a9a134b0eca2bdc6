/* SPDX-License-Identifier: Apache-2.0 */
/* What went on around a run, as evidence. */

#include "json-internal.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/json.h"
#include "tierprobe/record.h"

static json_t *counted(int64_t value, double per_s)
{
        return value < 0 ? json_null() : json_figure((double) value / per_s);
}

static json_t *own_limits(const OwnLimits *limits)
{
        json_auto_t *array = json_array();

        for (size_t i = 0; array && i < limits->n; i++) {
                const OwnLimit *limit = &limits->items[i];

                if (json_array_append_new(array,
                                          OBJECT({ "kind", json_text(limit_kind_to_string(limit->kind)) },
                                                 { "value", json_figure(limit->value) },
                                                 { "device", json_text_or_null(limit->device) },
                                                 { "where", json_text(limit->where) },
                                                 { "text", json_text(limit->text) })) < 0)
                        return NULL;
        }
        return TAKE_PTR(array);
}

static json_t *waits(const WaitCounters *waits)
{
        return OBJECT({ "writers_ran_s", counted(waits->writers_ran_ns, 1e9) },
                      { "writers_waited_for_processor_s", counted(waits->writers_waited_ns, 1e9) },
                      { "steal_s", counted(waits->steal_ms, 1e3) },
                      { "processor_time_s", counted(waits->processor_ms, 1e3) },
                      { "own_cpu_throttled_s", counted(waits->own_cpu_throttled_us, 1e6) },
                      { "own_io_delayed_s", counted(waits->own_io_delayed_us, 1e6) },
                      { "own_cpu_pressure_s", counted(waits->own_cpu_some_us, 1e6) },
                      { "own_io_pressure_s", counted(waits->own_io_some_us, 1e6) },
                      { "host_cpu_pressure_s", counted(waits->host_cpu_some_us, 1e6) },
                      { "host_io_pressure_s", counted(waits->host_io_some_us, 1e6) },
                      { "host_io_full_s", counted(waits->host_io_full_us, 1e6) },
                      { "host_memory_pressure_s", counted(waits->host_memory_some_us, 1e6) });
}

static json_t *states(const States *states)
{
        json_auto_t *array = json_array();

        for (size_t i = 0; array && i < states->n; i++) {
                const StateFact *fact = &states->items[i];

                if (json_array_append_new(array, OBJECT({ "device", json_text(fact->device) },
                                                        { "name", json_text(fact->name) },
                                                        { "value", json_text(fact->value) },
                                                        { "was", json_text_or_null(fact->was) },
                                                        { "meaning", json_text_or_null(fact->meaning) })) < 0)
                        return NULL;
        }
        return TAKE_PTR(array);
}

static json_t *heat(const Heat *heat)
{
        json_auto_t *array = json_array();

        for (size_t i = 0; array && heat->readings > 0 && i < heat->n; i++) {
                const HeatSensor *sensor = &heat->items[i];

                if (json_array_append_new(array, OBJECT({ "device", json_text(sensor->device) },
                                                        { "label", json_text(sensor->label) },
                                                        { "before_c", json_figure(sensor->before_c) },
                                                        { "peak_c", json_figure(sensor->peak_c) },
                                                        { "after_c", json_figure(sensor->after_c) },
                                                        { "max_c", json_figure(sensor->max_c) },
                                                        { "crit_c", json_figure(sensor->crit_c) })) < 0)
                        return NULL;
        }
        return TAKE_PTR(array);
}

json_t *json_heat(const HeatWatch *watch)
{
        json_auto_t *array = json_array();
        Heat heat = { .n = 0 };

        if (watch)
                heat_watch_get(watch, &heat);
        for (size_t i = 0; array && i < heat.n; i++) {
                const HeatSensor *sensor = &heat.items[i];

                if (json_array_append_new(array, OBJECT({ "device", json_text(sensor->device) },
                                                        { "label", json_text(sensor->label) },
                                                        { "now_c", json_figure(sensor->after_c) },
                                                        { "max_c", json_figure(sensor->max_c) },
                                                        { "crit_c", json_figure(sensor->crit_c) })) < 0)
                        return NULL;
        }
        return TAKE_PTR(array);
}

json_t *json_conditions(const Conditions *conditions)
{
        if (!conditions)
                return json_null();
        return OBJECT({ "own_limits", own_limits(&conditions->limits) },
                      { "waits", waits(&conditions->waits) }, { "states", states(&conditions->states) },
                      { "heat", heat(&conditions->heat) });
}
