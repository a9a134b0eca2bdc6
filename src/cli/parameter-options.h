/* SPDX-License-Identifier: Apache-2.0 */
/* Options of a command that are parameters: "--write-mb-per-s N" for write_mb_per_s. Inside the cli room. */
#pragma once

#include <getopt.h>
#include <stdbool.h>

#include "tierprobe/parameter.h"

#define MAX_PARAMETER_OPTIONS 16

/* A table of parameters: those with `help` are options. */
typedef const Parameter *(*ParameterTable)(size_t index);

typedef struct ParameterOption {
        ParameterTable table; /* where it is from */
        const Parameter *parameter;
        char name[40];    /* without "--" */
        const char *text; /* as given last; NULL: not given */
} ParameterOption;

typedef struct ParameterOptions {
        ParameterOption items[MAX_PARAMETER_OPTIONS];
        size_t n;
        struct option *long_options; /* owned: a command's own and these */
} ParameterOptions;

/* Gathers the options of TABLES (NULL ends them) behind a command's OWN (a row of zeroes ends them), for
 * getopt_long(): options->long_options. 0 or -ENOMEM. */
int parameter_options_init(ParameterOptions *options, const struct option *own, const ParameterTable *tables);
void parameter_options_done(ParameterOptions *options);

/* Keeps TEXT when C, from getopt_long(), is one of them; else false. */
bool parameter_options_take(ParameterOptions *options, int c, const char *text);

/* Sets in BASE, the struct of TABLE, what was given. -EINVAL after saying on stderr what is wrong; -ENOMEM.
 */
int parameter_options_apply(const ParameterOptions *options, const char *command, ParameterTable table,
                            void *base);

/* The lines for --help of those of TABLE, with their values in DEFAULTS. */
void parameter_options_help(const ParameterOptions *options, ParameterTable table, const void *defaults,
                            FILE *out);

/* Whether the one of this parameter was given. */
bool parameter_options_given(const ParameterOptions *options, const char *name);
