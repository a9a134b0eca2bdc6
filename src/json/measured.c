/* SPDX-License-Identifier: Apache-2.0 */
/* What was measured and judged: metrics, samples, criteria, reasons, limits. */

#include "json-internal.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/figure.h"
#include "tierprobe/json.h"

#include <math.h>

json_t *json_metrics(const Metrics *metrics)
{
        json_auto_t *object = json_object();

        if (!object)
                return NULL;
        for (size_t i = 0; i < N_METRIC_COLUMNS; i++)
                if (!json_put(object, metric_columns[i].key,
                              json_figure(metric_value(metrics, &metric_columns[i]))))
                        return NULL;
        return TAKE_PTR(object);
}

json_t *json_reasons(const Reasons *reasons)
{
        json_auto_t *array = json_array();

        if (!array)
                return NULL;
        for (size_t i = 0; i < reasons->n; i++) {
                const Reason *reason = &reasons->items[i];

                if (json_array_append_new(array, OBJECT({ "code", json_text(reason_to_string(reason->code)) },
                                                        { "detail", json_text(reason->detail) })) < 0)
                        return NULL;
        }
        return TAKE_PTR(array);
}

json_t *json_criteria_with_limits(const Judgement *judgement, const Limits *limits)
{
        json_auto_t *array = json_array();

        if (!array)
                return NULL;
        for (size_t i = 0; i < N_CRITERIA; i++) {
                const Criterion *criterion = &judgement->criteria[i];
                const CriterionRule *rule = &criterion_rules[i];
                bool known = judgement->criteria_known && isfinite(criterion->value);

                if (json_array_append_new(
                            array, OBJECT({ "name", json_text(rule->name) },
                                          { "value",
                                            json_number_or_null(known ? figure_round_beside(criterion->value,
                                                                                            limits->value[i])
                                                                      : NAN) },
                                          { "unit", json_text(rule->unit) },
                                          { "limit", json_number_or_null(limits->value[i]) },
                                          { "column", json_text(rule->column) },
                                          { "pass", known ? json_boolean(criterion->pass) : json_null() })) <
                    0)
                        return NULL;
        }
        return TAKE_PTR(array);
}

json_t *json_criteria(const Judgement *judgement)
{
        Limits limits = { 0 };

        for (size_t i = 0; i < N_CRITERIA; i++)
                limits.value[i] = judgement->criteria[i].limit;
        return json_criteria_with_limits(judgement, &limits);
}

json_t *json_limits(const Limits *limits)
{
        const Parameter *parameter = NULL;
        json_auto_t *object = json_object();

        if (!object)
                return NULL;
        for (size_t i = 0; (parameter = limits_parameter(i)); i++)
                if (!json_put_parameter(object, parameter, limits))
                        return NULL;
        return TAKE_PTR(object);
}
