/* SPDX-License-Identifier: Apache-2.0 */
/* Single values and whole documents: numbers, texts, times, and their serialised form. */

#include "json-internal.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/figure.h"
#include "tierprobe/json.h"
#include "tierprobe/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

bool json_put(json_t *object, const char *key, json_t *value)
{
        return json_object_set_new_nocheck(object, key, value) == 0;
}

json_t *json_object_from(const JsonMember *members)
{
        json_auto_t *object = json_object();
        bool good = object;

        /* Every value is handed to the object, also after a failure: nothing else would free it. */
        for (const JsonMember *m = members; m->key; m++)
                if (!object)
                        json_decref(m->value);
                else if (!json_put(object, m->key, m->value))
                        good = false;
        return good ? TAKE_PTR(object) : NULL;
}

json_t *json_u64(uint64_t value)
{
        return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t) value);
}

/* The kinds that have a form of their own in JSON. */
static json_t *parameter_value(const Parameter *parameter, const void *base)
{
        const void *field = (const char *) base + parameter->offset;
        const ParameterType *type = parameter->type;
        _cleanup_free_ char *text = NULL;
        size_t size = 0;

        if (type == &parameter_duration)
                return *(const uint64_t *) field > 0 ? json_seconds_from_ns(*(const uint64_t *) field)
                                                     : json_null();
        if (type == &parameter_size || type == &parameter_count)
                return json_u64(*(const uint64_t *) field);
        if (type == &parameter_unsigned)
                return json_u64(*(const unsigned *) field);
        if (type == &parameter_number)
                return json_number_or_null(*(const double *) field);
        if (type == &parameter_bool)
                return json_boolean(*(const bool *) field);

        FILE *out = open_memstream(&text, &size);
        if (!out)
                return NULL;
        parameter_print(parameter, base, out);
        return fclose(out) == 0 ? json_text(text) : NULL;
}

bool json_put_parameter(json_t *object, const Parameter *parameter, const void *base)
{
        char key[64];

        (void) snprintf(key, sizeof key, "%s%s", parameter->name,
                        parameter->type == &parameter_duration ? "_s" : "");
        return json_put(object, key, parameter_value(parameter, base));
}

json_t *json_number_or_null(double value)
{
        return isfinite(value) ? json_real(value) : json_null();
}

json_t *json_figure(double value)
{
        return json_number_or_null(figure_round(value));
}

json_t *json_seconds_from_ns(uint64_t ns)
{
        return json_figure((double) ns / 1e9);
}

json_t *json_time_or_null(int64_t real_ns)
{
        char text[RFC3339_SIZE];

        if (real_ns == 0 || real_ns == SCHEDULE_NEVER)
                return json_null();
        return json_string_nocheck(rfc3339_format(text, real_ns));
}

json_t *json_epoch_or_null(int64_t real_ns)
{
        if (real_ns == 0 || real_ns == SCHEDULE_NEVER)
                return json_null();
        return json_integer(real_ns / (int64_t) NS_PER_S);
}

json_t *json_text(const char *text)
{
        if (!text)
                return json_null();
        if (utf8_is_valid(text, strlen(text)))
                return json_string_nocheck(text);
        _cleanup_free_ char *mended = utf8_mended(text);
        return mended ? json_string_nocheck(mended) : NULL;
}

json_t *json_text_or_null(const char *text)
{
        return text && *text ? json_text(text) : json_null();
}

json_t *json_major_minor(uint32_t major, uint32_t minor)
{
        char text[24];

        (void) snprintf(text, sizeof text, "%" PRIu32 ":%" PRIu32, major, minor);
        return json_string_nocheck(text);
}

char *json_document(json_t *document, size_t *ret_size)
{
        /* Measured first, so that one allocation of the right size is all that the text costs. */
        size_t size = json_dumpb(document, NULL, 0, JSON_TEXT_FLAGS);
        if (size == 0)
                return NULL;
        char *text = malloc(size + 2);
        if (!text)
                return NULL;
        if (json_dumpb(document, text, size, JSON_TEXT_FLAGS) != size) {
                free(text);
                return NULL;
        }
        text[size] = '\n';
        text[size + 1] = '\0';
        if (ret_size)
                *ret_size = size + 1;
        return text;
}
