/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands that ask a daemon share. Knows client. */

#include "client-command.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/cli.h"
#include "tierprobe/units.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const char common_help[] =
        "  --url URL            the daemon: http://HOST:PORT, https://..., unix:/PATH or HOST (its unix\n"
        "                       socket when there is one, else " CLIENT_URL_DEFAULT ")\n"
        "  --token-file FILE    token for a listener that asks for one; or TIERPROBE_TOKEN_FILE\n"
        "  --cacert FILE        authorities to trust for https, PEM\n"
        "  --timeout DURATION   give up after it (10s)\n"
        "  --json               print one JSON document on stdout\n"
        "  --help               this text\n"
        "  --version            the version\n";

typedef struct OwnOption {
        const char *name;
        size_t offset;
        bool is_flag;
} OwnOption;

static const OwnOption own_options[] = {
        { "url", offsetof(ClientCommand, url), false },
        { "target", offsetof(ClientCommand, target), false },
        { "profile", offsetof(ClientCommand, profile), false },
        { "since", offsetof(ClientCommand, since), false },
        { "from", offsetof(ClientCommand, from), false },
        { "to", offsetof(ClientCommand, to), false },
        { "limit", offsetof(ClientCommand, limit), false },
        { "step", offsetof(ClientCommand, step), false },
        { "run", offsetof(ClientCommand, run), false },
        { "html", offsetof(ClientCommand, html), false },
        { "markdown", offsetof(ClientCommand, markdown), false },
        { "wait", offsetof(ClientCommand, wait), true },
        { "together", offsetof(ClientCommand, together), true },
        { "csv", offsetof(ClientCommand, csv), true },
        { "json", offsetof(ClientCommand, json), true },
};

enum { OPT_TOKEN_FILE = 256, OPT_CACERT, OPT_TIMEOUT, OPT_VERSION };

static bool names_option(const char *own, const char *name)
{
        size_t length = strlen(name);

        for (const char *at = own; (at = strstr(at, name)); at += length)
                if ((at == own || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
                        return true;
        return false;
}

static int take_timeout(ClientCommand *command, const char *text)
{
        if (parse_duration(text, &command->options.timeout_ns) >= 0 &&
            command->options.timeout_ns >= 1000000 && command->options.timeout_ns <= UINT64_C(3600000000000))
                return 0;
        (void) fprintf(stderr, "tierprobe %s: --timeout %s: give a duration from 1ms to 1h, as in 10s\n",
                       command->name, text);
        return -EINVAL;
}

static int take_own(ClientCommand *command, const OwnOption *option)
{
        char *member = (char *) command + option->offset;

        if (option->is_flag) {
                *(bool *) (void *) member = true;
                return 0;
        }
        if (!*optarg) {
                (void) fprintf(stderr, "tierprobe %s: --%s needs a value\n", command->name, option->name);
                return -EINVAL;
        }
        *(const char **) (void *) member = optarg;
        return 0;
}

int client_command_parse(ClientCommand *command, const char *own, int argc, char *argv[])
{
        struct option options[ELEMENTSOF(own_options) + 6] = {
                { "token-file", required_argument, NULL, OPT_TOKEN_FILE },
                { "cacert", required_argument, NULL, OPT_CACERT },
                { "timeout", required_argument, NULL, OPT_TIMEOUT },
                { "version", no_argument, NULL, OPT_VERSION },
                { "help", no_argument, NULL, 'h' },
        };
        size_t n = 5;
        int c, r = 0;

        for (size_t i = 0; i < ELEMENTSOF(own_options); i++)
                if (names_option(own, own_options[i].name) || strcmp(own_options[i].name, "json") == 0)
                        options[n++] =
                                (struct option){ own_options[i].name,
                                                 own_options[i].is_flag ? no_argument : required_argument,
                                                 NULL, (int) i + 512 };
        optind = 0; /* a test may call this more than once */
        while (r >= 0 && (c = getopt_long(argc, argv, "h", options, NULL)) >= 0)
                switch (c) {
                case OPT_TOKEN_FILE:
                        command->options.token_file = optarg;
                        break;
                case OPT_CACERT:
                        command->options.cacert = optarg;
                        break;
                case OPT_TIMEOUT:
                        r = take_timeout(command, optarg);
                        break;
                case OPT_VERSION:
                        (void) printf("tierprobe %s\n", TIERPROBE_VERSION);
                        return 1;
                case 'h':
                        (void) printf("%s%s\nExit status: 0 pass, 1 warning (passed but stale or degraded), "
                                      "2 fail, "
                                      "3 inconclusive, usage\nerror or no answer.\n",
                                      command->help, common_help);
                        return 1;
                default:
                        r = c >= 512 ? take_own(command, &own_options[c - 512])
                                     : -EINVAL; /* getopt has said it */
                        break;
                }
        if (r < 0)
                (void) fprintf(stderr, "Try 'tierprobe %s --help'.\n", command->name);
        command->first = optind;
        return r < 0 ? r : 0;
}

Client *client_command_connect(const ClientCommand *command)
{
        _cleanup_free_ char *error = NULL;
        Client *client = NULL;

        int r = client_new(&client, &command->options, &error);
        if (r < 0)
                (void) fprintf(stderr, "tierprobe %s: %s\n", command->name, error ? error : strerror(-r));
        return client;
}

const char *client_command_url(const ClientCommand *command)
{
        return command->url ? command->url : client_default_url();
}

void client_print(FILE *out, const char *text)
{
        for (const unsigned char *c = (const unsigned char *) (text ? text : "-"); *c; c++)
                if (*c < 0x20 || *c == 0x7f)
                        (void) fputc('?', out);
                else if (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0) { /* U+0080 to U+009F */
                        (void) fputc('?', out);
                        c++;
                } else
                        (void) fputc(*c, out);
}

static void put_encoded(FILE *out, const char *text)
{
        for (const unsigned char *c = (const unsigned char *) text; *c; c++)
                if (strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:", *c))
                        (void) fputc(*c, out);
                else
                        (void) fprintf(out, "%%%02X", *c);
}

char *client_command_query(const ClientCommand *command, const char *path)
{
        const struct {
                const char *name, *value;
        } given[] = { { "target", command->target },
                      { "profile", command->profile },
                      { "since", command->since },
                      { "from", command->from },
                      { "to", command->to },
                      { "limit", command->limit },
                      { "step", command->step },
                      { "run", command->run },
                      { "together", command->together ? "yes" : NULL } };
        char *text = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);
        char mark = '?';

        if (!out)
                return NULL;
        (void) fputs(path, out);
        for (size_t i = 0; i < ELEMENTSOF(given); i++)
                if (given[i].value) {
                        (void) fprintf(out, "%c%s=", mark, given[i].name);
                        put_encoded(out, given[i].value);
                        mark = '&';
                }
        if (fclose(out) == 0)
                return text;
        free(text);
        return NULL;
}

int client_command_refused(const ClientCommand *command, const char *url, const ClientAnswer *answer)
{
        char buf[32];
        size_t i;
        json_t *refused;

        (void) fprintf(stderr, "tierprobe %s: ", command->name);
        client_print(stderr, url);
        (void) fputs(": ", stderr);
        client_print(stderr, answer->error ? answer->error : client_answer_detail(answer, buf));
        (void) fputc('\n', stderr);
        /* A problem that concerns several targets says of each what its matter is. */
        json_array_foreach(json_object_get(answer->document, "targets"), i, refused)
        {
                const char *detail = json_string_value(json_object_get(refused, "detail"));

                (void) fputs("  ", stderr);
                client_print(stderr, detail);
                (void) fputc('\n', stderr);
        }
        return CLI_UNKNOWN;
}

int client_exit_status(const json_t *judged)
{
        const char *verdict = json_string_value(json_object_get(judged, "verdict"));

        if (verdict && strcmp(verdict, "fail") == 0)
                return CLI_FAIL;
        if (!verdict || strcmp(verdict, "pass") != 0)
                return CLI_UNKNOWN;
        return json_is_true(json_object_get(judged, "stale")) ||
                               json_is_true(json_object_get(judged, "degraded"))
                       ? CLI_WARNING
                       : CLI_PASS;
}

int client_worse(int a, int b)
{
        static const int rank[] = { [CLI_PASS] = 0, [CLI_WARNING] = 1, [CLI_UNKNOWN] = 2, [CLI_FAIL] = 3 };

        return rank[a] >= rank[b] ? a : b;
}

double client_criterion(const json_t *run, const char *name, double *ret_limit)
{
        size_t i;
        json_t *criterion;

        *ret_limit = NAN;
        json_array_foreach(json_object_get(run, "criteria"), i, criterion)
        {
                const char *its = json_string_value(json_object_get(criterion, "name"));
                const json_t *value = json_object_get(criterion, "value");

                if (!its || strcmp(its, name) != 0)
                        continue;
                *ret_limit = json_number_value(json_object_get(criterion, "limit"));
                return json_is_number(value) ? json_number_value(value) : NAN;
        }
        return NAN;
}
