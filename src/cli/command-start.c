/* SPDX-License-Identifier: Apache-2.0 */
/* `tierprobe start` and `tierprobe abort`: runs of a daemon. Knows client. */

#include "client-command.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/cli.h"
#include "tierprobe/clock.h"
#include "tierprobe/file.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

#define WAIT_S 20                            /* how long one request waits for a run's end */
#define UNREACHABLE_AFTER_NS (60 * NS_PER_S) /* a daemon that restarts is back by then */

static const char *text_of(const json_t *object, const char *key)
{
        return json_string_value(json_object_get(object, key));
}

static bool has_ended(const json_t *run)
{
        const char *state = text_of(run, "state");

        return !state || (strcmp(state, "queued") != 0 && strcmp(state, "running") != 0);
}

static void print_run(const json_t *run)
{
        double throughput_limit, latency_limit;
        double throughput = client_criterion(run, "write_throughput", &throughput_limit);
        double latency = client_criterion(run, "write_latency", &latency_limit);
        size_t i;
        json_t *reason;

        client_print(stdout, text_of(run, "target"));
        (void) printf(" ");
        client_print(stdout, text_of(run, "id"));
        (void) printf(": ");
        client_print(stdout, text_of(run, "verdict") ? text_of(run, "verdict") : text_of(run, "state"));
        if (isfinite(throughput))
                (void) printf(", %.1f MB/s (at least %g)", throughput, throughput_limit);
        if (isfinite(latency))
                (void) printf(", w_await %.2f ms (under %g)", latency, latency_limit);
        (void) printf("\n");
        json_array_foreach(json_object_get(run, "reasons"), i, reason)
        {
                (void) printf("  ");
                client_print(stdout, text_of(reason, "code"));
                (void) printf(": ");
                client_print(stdout, text_of(reason, "detail"));
                (void) printf("\n");
        }
}

/* Waits for the end of run ID. Returns it, or NULL with the fault said. */
static json_t *wait_for_end(const ClientCommand *command, Client *client, const char *url, const char *id)
{
        _cleanup_free_ char *waiting = path_format("/runs/%s?wait=%d", id, WAIT_S);
        _cleanup_free_ char *plain = path_format("/runs/%s", id);
        const char *path = waiting;
        uint64_t reached_ns = clock_ns(CLOCK_MONOTONIC);

        while (waiting && plain) {
                _cleanup_(client_answer_done) ClientAnswer answer = { 0 };

                client_request(client, url, "GET", path, NULL, WAIT_S * NS_PER_S, &answer);
                bool good = !answer.error && answer.status == 200 && answer.document;
                if (good && has_ended(answer.document))
                        return json_incref(answer.document);
                if (good)
                        reached_ns = clock_ns(CLOCK_MONOTONIC);
                else if (answer.status == 400 && path == waiting)
                        path = plain; /* a release that does not know to wait */
                else if (!answer.error || clock_ns(CLOCK_MONOTONIC) - reached_ns > UNREACHABLE_AFTER_NS) {
                        (void) client_command_refused(command, url, &answer);
                        return NULL;
                }
                if (!good || path == plain) /* it may be restarting */
                        (void) nanosleep(&(struct timespec){ .tv_sec = 1 }, NULL);
        }
        return NULL;
}

static int wait_for_all(const ClientCommand *command, Client *client, const char *url, json_t *runs)
{
        int status = CLI_PASS;
        size_t i;
        json_t *run;

        json_array_foreach(runs, i, run)
        {
                const char *id = text_of(run, "id");
                json_t *ended = id ? wait_for_end(command, client, url, id) : NULL;

                status = client_worse(status, ended ? client_exit_status(ended) : CLI_UNKNOWN);
                if (ended)
                        (void) json_array_set_new(runs, i, ended);
        }
        return status;
}

static int print_json(const json_t *document)
{
        if (json_dumpf(document, stdout, JSON_COMPACT | JSON_REAL_PRECISION(15)) < 0)
                return CLI_UNKNOWN;
        (void) putchar('\n');
        return fflush(stdout) == 0 ? CLI_PASS : CLI_UNKNOWN;
}

static const char start_help[] =
        "tierprobe start [OPTION...]\n"
        "Asks the daemon for a run of a target, or of each. Without --wait the exit status says whether it "
        "was\n"
        "accepted (0 or 3), with it what the verdict is.\n\n"
        "  --target NAME        only this target (each, one run)\n"
        "  --profile NAME       a profile of the daemon's configuration (the target's own)\n"
        "  --together           tests of different disks begin at the same moment\n"
        "  --wait               until the runs have ended; Ctrl-C leaves them running\n";

int cli_start(int argc, char *argv[])
{
        ClientCommand command = { .name = "start", .help = start_help };
        int r = client_command_parse(&command, " url target profile together wait", argc, argv);

        if (r != 0)
                return r < 0 ? CLI_UNKNOWN : CLI_PASS;
        if (command.first < argc) {
                (void) fprintf(stderr, "tierprobe start: '%s': name a target as --target\n",
                               argv[command.first]);
                return CLI_UNKNOWN;
        }
        _cleanup_(client_freep) Client *client = client_command_connect(&command);
        _cleanup_free_ char *path = client_command_query(&command, "/run");
        const char *url = client_command_url(&command);
        ClientAnswer answer = { 0 };
        int status = CLI_PASS;
        size_t i;
        json_t *run;

        if (!client || !path)
                return CLI_UNKNOWN;
        client_request(client, url, "POST", path, NULL, 0, &answer);
        json_t *runs = json_object_get(answer.document, "runs");
        if (answer.error || answer.status != 202 || !json_is_array(runs)) {
                status = client_command_refused(&command, url, &answer);
        } else {
                if (!command.json && command.wait)
                        json_array_foreach(runs, i, run)(void)
                                fprintf(stderr, "waiting for run %s\n", text_of(run, "id"));
                if (command.wait)
                        status = wait_for_all(&command, client, url, runs);
                if (command.json)
                        status = client_worse(status, print_json(answer.document));
                else
                        json_array_foreach(runs, i, run) print_run(run);
        }
        client_answer_done(&answer);
        return fflush(stdout) == 0 ? status : CLI_UNKNOWN;
}

static const char abort_help[] =
        "tierprobe abort [OPTION...] ID\n"
        "Aborts a queued or running run of the daemon. The target keeps its verdict.\n\n";

int cli_abort(int argc, char *argv[])
{
        ClientCommand command = { .name = "abort", .help = abort_help };
        int r = client_command_parse(&command, " url", argc, argv);

        if (r != 0)
                return r < 0 ? CLI_UNKNOWN : CLI_PASS;
        const char *id = argc - command.first == 1 ? argv[command.first] : NULL;
        if (!id || !*id ||
            id[strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")]) {
                (void) fprintf(stderr,
                               "tierprobe abort: give the ID of one run, as 'tierprobe start' prints it\n"
                               "Try 'tierprobe abort --help'.\n");
                return CLI_UNKNOWN;
        }
        _cleanup_(client_freep) Client *client = client_command_connect(&command);
        _cleanup_free_ char *path = path_format("/runs/%s", id);
        const char *url = client_command_url(&command);
        ClientAnswer answer = { 0 };
        int status = CLI_PASS;

        if (!client || !path)
                return CLI_UNKNOWN;
        client_request(client, url, "DELETE", path, NULL, 0, &answer);
        if (answer.error || answer.status != 202)
                status = client_command_refused(&command, url, &answer);
        else if (command.json)
                status = print_json(answer.document);
        else
                (void) printf("run %s is being aborted\n", id);
        client_answer_done(&answer);
        return fflush(stdout) == 0 ? status : CLI_UNKNOWN;
}
