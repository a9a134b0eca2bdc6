/* SPDX-License-Identifier: Apache-2.0 */
/* Options made from the tables of parameters. Touches the streams it is given, and stderr. */

#include "parameter-options.h"

#include "tierprobe/cleanup.h"

#include <errno.h>
#include <string.h>

/* What getopt_long() returns for the first of them: above every character and every command's own. */
#define FIRST_VALUE 1000

static void add(ParameterOptions *options, ParameterTable table, const Parameter *parameter)
{
        ParameterOption *option = &options->items[options->n++];

        option->table = table;
        option->parameter = parameter;
        (void) snprintf(option->name, sizeof option->name, "%s", parameter->name);
        for (char *p = option->name; (p = strchr(p, '_'));)
                *p = '-';
}

int parameter_options_init(ParameterOptions *options, const struct option *own, const ParameterTable *tables)
{
        const Parameter *parameter = NULL;
        size_t n_own = 0;

        memset(options, 0, sizeof *options);
        for (; *tables; tables++)
                for (size_t i = 0; (parameter = (*tables)(i)); i++)
                        if (parameter->help && options->n < MAX_PARAMETER_OPTIONS)
                                add(options, *tables, parameter);
        while (own[n_own].name)
                n_own++;
        options->long_options = calloc(n_own + options->n + 1, sizeof *own);
        if (!options->long_options)
                return -ENOMEM;
        memcpy(options->long_options, own, n_own * sizeof *own);
        for (size_t i = 0; i < options->n; i++)
                options->long_options[n_own + i] = (struct option){ .name = options->items[i].name,
                                                                    .has_arg = required_argument,
                                                                    .val = FIRST_VALUE + (int) i };
        return 0;
}

void parameter_options_done(ParameterOptions *options)
{
        free(options->long_options);
}

bool parameter_options_take(ParameterOptions *options, int c, const char *text)
{
        if (c < FIRST_VALUE || c >= FIRST_VALUE + (int) options->n)
                return false;
        options->items[c - FIRST_VALUE].text = text;
        return true;
}

int parameter_options_apply(const ParameterOptions *options, const char *command, ParameterTable table,
                            void *base)
{
        char why[WHY_SIZE];

        for (size_t i = 0; i < options->n; i++) {
                const ParameterOption *option = &options->items[i];

                if (option->table != table || !option->text)
                        continue;
                int r = parameter_set(option->parameter, base, option->text, why);
                if (r == -EINVAL)
                        (void) fprintf(stderr, "%s: --%s %s: %s%sgive %s\n", command, option->name,
                                       option->text, why, why[0] ? "; " : "", option->parameter->right);
                if (r < 0)
                        return r;
        }
        return 0;
}

void parameter_options_help(const ParameterOptions *options, ParameterTable table, const void *defaults,
                            FILE *out)
{
        char name[64];

        for (size_t i = 0; i < options->n; i++) {
                const ParameterOption *option = &options->items[i];

                if (option->table != table)
                        continue;
                (void) snprintf(name, sizeof name, "--%s %s", option->name, option->parameter->type->word);
                (void) fprintf(out, "  %-20s %s (", name, option->parameter->help);
                parameter_print(option->parameter, defaults, out);
                (void) fputs(")\n", out);
        }
}

bool parameter_options_given(const ParameterOptions *options, const char *name)
{
        for (size_t i = 0; i < options->n; i++)
                if (strcmp(options->items[i].parameter->name, name) == 0)
                        return options->items[i].text;
        return false;
}
