/* SPDX-License-Identifier: Apache-2.0 */
/* tierprobe: the command line's thin main. Picks the subcommand. */

#include "tierprobe/cli.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/signals.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

typedef struct Command {
        const char *name;
        int (*run)(int argc, char *argv[]);
        const char *summary;
} Command;

static const Command commands[] = {
        { "run", cli_run, "test a path once, in the foreground" },
        { "judge", cli_judge, "judge a capture of iostat -x" },
        { "iostat", cli_iostat, "the extended statistics of block devices, live or from records" },
        { "target", cli_target, "make a directory ready for the service (root)" },
        { "status", cli_status_command, "what the daemons of one or many hosts say of their targets" },
        { "check", cli_check, "the same as one line for a monitoring system" },
        { "start", cli_start, "ask the daemon for a run" },
        { "abort", cli_abort, "abort a run of the daemon" },
        { "history", cli_history, "the samples that the daemon has kept" },
        { "report", cli_report, "a report of a run, a host or many hosts, as HTML or Markdown" },
};

static void print_help(FILE *out)
{
        (void) fprintf(out, "tierprobe COMMAND [ARGUMENT...]\n"
                            "Tells whether a local disk is fit to be a database's caching tier.\n\n");
        for (size_t i = 0; i < ELEMENTSOF(commands); i++)
                (void) fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].summary);
        (void) fprintf(out, "\n'tierprobe COMMAND --help' tells more.\n"
                            "Exit status: 0 pass, 1 warning, 2 fail, 3 inconclusive or an error.\n");
}

/* With one of the standard descriptors closed, the next file opened would take its place, and the result or
 * the progress would go there. Writing to what stands in for stdout fails, as it would have. */
static void hold_standard_descriptors(void)
{
        static const int modes[] = { O_RDONLY, O_RDONLY, O_WRONLY };

        for (int fd = 0; fd <= STDERR_FILENO; fd++)
                if (fcntl(fd, F_GETFD) < 0)
                        (void) open("/dev/null", modes[fd]); /* takes the lowest free one: this */
}

int main(int argc, char *argv[])
{
        hold_standard_descriptors();
        signals_prepare();
        if (argc < 2) {
                print_help(stderr);
                return CLI_UNKNOWN;
        }
        if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
                print_help(stdout);
                return CLI_PASS;
        }
        if (strcmp(argv[1], "--version") == 0) {
                (void) printf("tierprobe %s\n", TIERPROBE_VERSION);
                return CLI_PASS;
        }
        for (size_t i = 0; i < ELEMENTSOF(commands); i++)
                if (strcmp(argv[1], commands[i].name) == 0) {
                        if (argc == 3 && strcmp(argv[2], "--version") == 0) {
                                (void) printf("tierprobe %s\n", TIERPROBE_VERSION);
                                return CLI_PASS;
                        }
                        return commands[i].run(argc - 1, argv + 1);
                }
        (void) fprintf(stderr, "tierprobe: '%s' is not a command\nTry 'tierprobe --help'.\n", argv[1]);
        return CLI_UNKNOWN;
}
