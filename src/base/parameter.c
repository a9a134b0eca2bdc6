/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of the plain kinds: whole numbers, sizes, durations, other numbers, yes and no. */

#include "tierprobe/parameter.h"

#include "tierprobe/units.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* ---- whole numbers ---- */

static int set_whole(const Parameter *parameter, uint64_t *field, const char *text,
                     int (*parse)(const char *text, uint64_t *ret))
{
        uint64_t value = 0;

        int r = parse(text, &value);
        if (r < 0)
                return r;
        if (value < parameter->min || value > parameter->max)
                return -ERANGE;
        if (parameter->multiple && value % parameter->multiple != 0)
                return -EINVAL;
        *field = value;
        return 0;
}

static int parse_as_duration(const Parameter *parameter, void *field, const char *text, char why[WHY_SIZE])
{
        (void) why;
        return set_whole(parameter, field, text, parse_duration);
}

static void print_duration(const Parameter *parameter, const void *field, FILE *out)
{
        char buf[FORMAT_SIZE];

        (void) parameter;
        (void) fputs(format_duration(buf, *(const uint64_t *) field), out);
}

static int parse_as_size(const Parameter *parameter, void *field, const char *text, char why[WHY_SIZE])
{
        (void) why;
        return set_whole(parameter, field, text, parse_size);
}

static void print_size(const Parameter *parameter, const void *field, FILE *out)
{
        char buf[FORMAT_SIZE];

        (void) parameter;
        (void) fputs(format_size(buf, *(const uint64_t *) field), out);
}

static int parse_as_count(const Parameter *parameter, void *field, const char *text, char why[WHY_SIZE])
{
        (void) why;
        return set_whole(parameter, field, text, parse_u64);
}

static void print_count(const Parameter *parameter, const void *field, FILE *out)
{
        (void) parameter;
        (void) fprintf(out, "%" PRIu64, *(const uint64_t *) field);
}

static int parse_as_unsigned(const Parameter *parameter, void *field, const char *text, char why[WHY_SIZE])
{
        uint64_t value = 0;

        int r = parse_as_count(parameter, &value, text, why);
        if (r >= 0)
                *(unsigned *) field = (unsigned) value;
        return r;
}

static void print_unsigned(const Parameter *parameter, const void *field, FILE *out)
{
        (void) parameter;
        (void) fprintf(out, "%u", *(const unsigned *) field);
}

/* ---- other kinds ---- */

static int parse_as_number(const Parameter *parameter, void *field, const char *text, char why[WHY_SIZE])
{
        double value = 0;

        (void) why;
        int r = parse_number(text, &value);
        if (r < 0)
                return r;
        if (value < parameter->low || value > parameter->high)
                return -ERANGE;
        *(double *) field = value;
        return 0;
}

static void print_number(const Parameter *parameter, const void *field, FILE *out)
{
        char buf[FORMAT_SIZE];

        (void) parameter;
        (void) fputs(format_number(buf, *(const double *) field), out);
}

static int parse_as_bool(const Parameter *parameter, void *field, const char *text, char why[WHY_SIZE])
{
        (void) parameter;
        (void) why;
        return parse_bool(text, field);
}

static void print_bool(const Parameter *parameter, const void *field, FILE *out)
{
        (void) parameter;
        (void) fputs(*(const bool *) field ? "yes" : "no", out);
}

const ParameterType parameter_duration = { "DUR", sizeof(uint64_t), parse_as_duration, print_duration, NULL };
const ParameterType parameter_size = { "SIZE", sizeof(uint64_t), parse_as_size, print_size, NULL };
const ParameterType parameter_count = { "N", sizeof(uint64_t), parse_as_count, print_count, NULL };
const ParameterType parameter_unsigned = { "N", sizeof(unsigned), parse_as_unsigned, print_unsigned, NULL };
const ParameterType parameter_number = { "N", sizeof(double), parse_as_number, print_number, NULL };
const ParameterType parameter_bool = { "yes|no", sizeof(bool), parse_as_bool, print_bool, NULL };

/* ---- whatever the kind ---- */

static bool is_set(const Parameter *parameter, const char *field)
{
        for (size_t i = 0; i < parameter->type->size; i++)
                if (field[i])
                        return true;
        return false;
}

int parameter_set(const Parameter *parameter, void *base, const char *text, char why[WHY_SIZE])
{
        why[0] = '\0';
        if (parameter->unset && strcmp(text, parameter->unset) == 0) {
                parameter_clear(parameter, base);
                return 0;
        }
        int r = parameter->type->parse(parameter, (char *) base + parameter->offset, text, why);
        if (r != -ERANGE)
                return r;
        if (!why[0])
                (void) snprintf(why, WHY_SIZE, "out of range");
        return -EINVAL;
}

void parameter_clear(const Parameter *parameter, void *base)
{
        void *field = (char *) base + parameter->offset;

        if (parameter->type->release)
                parameter->type->release(field);
        memset(field, 0, parameter->type->size);
}

void parameter_print(const Parameter *parameter, const void *base, FILE *out)
{
        const char *field = (const char *) base + parameter->offset;

        if (parameter->unset && !is_set(parameter, field))
                (void) fputs(parameter->unset, out);
        else
                parameter->type->print(parameter, field, out);
}
