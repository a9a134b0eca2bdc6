/* SPDX-License-Identifier: Apache-2.0 */
/* `tierprobe history`: the samples that a daemon has kept, as a table for people, CSV or JSON. Knows client.
 */

#include "client-command.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/cli.h"

#include <math.h>
#include <string.h>

typedef struct Column {
        const char *key;
        int width, digits;
} Column;

static const Column columns[] = { { "w/s", 10, 2 },     { "wkB/s", 12, 2 }, { "w_await", 8, 2 },
                                  { "wareq-sz", 9, 2 }, { "r/s", 9, 2 },    { "rkB/s", 11, 2 },
                                  { "r_await", 8, 2 },  { "aqu-sz", 7, 2 }, { "util", 7, 2 } };

/* A sample's figure; of a bucket its mean. */
static double figure(const json_t *sample, const char *key)
{
        const json_t *value = json_object_get(sample, key);

        if (json_is_object(value))
                value = json_object_get(value, "mean");
        return json_is_number(value) ? json_number_value(value) : NAN;
}

static void print_sample(const json_t *sample)
{
        const char *run = json_string_value(json_object_get(sample, "run_id"));
        const char *time = json_string_value(json_object_get(sample, "time"));

        (void) printf("%-24.24s", time ? time : "-");
        for (size_t i = 0; i < ELEMENTSOF(columns); i++) {
                double value = figure(sample, columns[i].key);

                if (isfinite(value))
                        (void) printf(" %*.*f", columns[i].width, columns[i].digits, value);
                else
                        (void) printf(" %*s", columns[i].width, "-");
        }
        if (run) {
                (void) printf("  ");
                client_print(stdout, run);
        }
        (void) printf("\n");
}

static void print_table(const json_t *document)
{
        const json_t *samples = json_object_get(document, "samples");
        size_t i;
        json_t *sample;

        if (!samples)
                samples = json_object_get(document, "buckets");
        (void) printf("%-24s", "time");
        for (size_t column = 0; column < ELEMENTSOF(columns); column++)
                (void) printf(" %*s", columns[column].width, columns[column].key);
        (void) printf("  run\n");
        json_array_foreach(samples, i, sample) print_sample(sample);
}

static const char help[] =
        "tierprobe history [OPTION...]\n"
        "The samples that the daemon has kept of a target's device, oldest first: iostat's columns.\n\n"
        "  --target NAME        the target (needed when there are several)\n"
        "  --limit N            how many samples at most, the newest ones (60)\n"
        "  --since CURSOR       those after an earlier answer's next_cursor\n"
        "  --run ID             only those of a run\n"
        "  --step SECONDS       means over so many seconds, with --from and --to (RFC 3339) any part of what "
        "is kept\n"
        "  --from TIME, --to TIME\n"
        "  --csv                as CSV\n";

int cli_history(int argc, char *argv[])
{
        ClientCommand command = { .name = "history", .help = help };
        int r = client_command_parse(&command, " url target limit since run step from to csv", argc, argv);

        if (r != 0)
                return r < 0 ? CLI_UNKNOWN : CLI_PASS;
        if (command.first < argc) {
                (void) fprintf(stderr, "tierprobe history: '%s': name a target as --target\n",
                               argv[command.first]);
                return CLI_UNKNOWN;
        }
        if (!command.limit && !command.step && !command.run)
                command.limit = "60";
        _cleanup_(client_freep) Client *client = client_command_connect(&command);
        _cleanup_free_ char *path = client_command_query(&command, "/history");
        const char *url = client_command_url(&command);
        ClientAnswer answer = { 0 };
        int status = CLI_PASS;

        if (!client || !path)
                return CLI_UNKNOWN;
        client_request(client, url, "GET", path, command.csv ? "text/csv" : NULL, 0, &answer);
        if (answer.error || answer.status != 200)
                status = client_command_refused(&command, url, &answer);
        else if (command.json || command.csv)
                (void) fwrite(answer.text, 1, answer.size, stdout);
        else
                print_table(answer.document);
        client_answer_done(&answer);
        return fflush(stdout) == 0 ? status : CLI_UNKNOWN;
}
