/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands that ask a daemon share: their options, their texts, the vocabulary of verdicts. Knows
 * client. */
#pragma once

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include "tierprobe/client.h"

typedef struct ClientCommand {
        const char *name; /* of the subcommand, for messages */
        const char *help; /* its own part of --help; the common options follow it */
        ClientOptions options;
        const char *url; /* NULL: not given */
        const char *target, *profile, *since, *from, *to, *limit, *step, *run, *html, *markdown;
        bool json, csv, wait, together;
        int first; /* index of the first argument that is not an option */
} ClientCommand;

/* The options a command may have besides the common ones (--url, --token-file, --cacert, --timeout, --json),
 * as a text of their names: " target profile wait". 0: go on; 1: all is done (--help); negative: the usage
 * was wrong, and that was said. */
int client_command_parse(ClientCommand *command, const char *own, int argc, char *argv[]);

/* A client with the command's options; NULL when that was impossible, and said. */
Client *client_command_connect(const ClientCommand *command);

const char *client_command_url(const ClientCommand *command);

/* Prints text of a daemon for a person: what a terminal would obey becomes "?". NULL prints "-". */
void client_print(FILE *out, const char *text);

/* "PATH?target=...&limit=..." of the options that were given, percent-encoded. Owned by the caller, NULL
 * without memory. */
char *client_command_query(const ClientCommand *command, const char *path);

/* Says on stderr why there is no good answer. Returns CLI_UNKNOWN. */
int client_command_refused(const ClientCommand *command, const char *url, const ClientAnswer *answer);

/* The exit status of a target, or of a run ("degraded" and "stale" missing there), by its verdict. */
int client_exit_status(const json_t *judged);

/* Of two exit statuses the worse one: fail before unknown before warning before pass. */
int client_worse(int a, int b);

/* A criterion's value by its name in a RUN; NAN when there is none. */
double client_criterion(const json_t *run, const char *name, double *ret_limit);
