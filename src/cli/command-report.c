/* SPDX-License-Identifier: Apache-2.0 */
/* `tierprobe report`: what goes to a vendor's support or a project's acceptance, as one file. Knows client,
 * page. */

#include "client-command.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/cli.h"
#include "tierprobe/file.h"
#include "tierprobe/page.h"
#include "tierprobe/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_RUN_BYTES ((size_t) 64 << 20)

/* What the report is made of: three arrays, as page.h takes them. */
typedef struct Parts {
        const json_t **documents;
        const char **names, **errors;
        size_t n;
} Parts;

static void parts_done(Parts *parts)
{
        for (size_t i = 0; i < parts->n; i++) {
                json_decref((json_t *) (uintptr_t) parts->documents[i]);
                free((char *) (uintptr_t) parts->names[i]);
                free((char *) (uintptr_t) parts->errors[i]);
        }
        free(parts->documents);
        free(parts->names);
        free(parts->errors);
}

/* Room for one more. */
static bool parts_grow(Parts *parts)
{
        const json_t **documents = reallocarray(parts->documents, parts->n + 1, sizeof(void *));
        if (documents)
                parts->documents = documents;
        const char **names = reallocarray(parts->names, parts->n + 1, sizeof *names);
        if (names)
                parts->names = names;
        const char **errors = reallocarray(parts->errors, parts->n + 1, sizeof *errors);
        if (errors)
                parts->errors = errors;
        return documents && names && errors;
}

/* Adds a part; DOCUMENT's reference is taken. ERROR NULL: there is a document. False: no memory, which is
 * said. */
static bool parts_add(Parts *parts, json_t *document, const char *name, const char *error)
{
        if (!parts_grow(parts)) {
                json_decref(document);
                (void) fprintf(stderr, "tierprobe report: no memory for %s\n", name);
                return false;
        }
        parts->documents[parts->n] = document;
        parts->names[parts->n] = strdup(name);
        parts->errors[parts->n] = error ? strdup(error) : NULL;
        parts->n++;
        return true;
}

static int status_of(const json_t *document)
{
        const json_t *targets = json_object_get(document, "targets");
        int status = CLI_PASS;
        size_t i;
        json_t *target;

        if (!targets)
                return client_exit_status(document);
        json_array_foreach(targets, i, target) status = client_worse(status, client_exit_status(target));
        return json_array_size(targets) > 0 ? status : CLI_UNKNOWN;
}

/* ---- whence the parts come ---- */

/* A run's document in a file, as `tierprobe run --json` prints it. */
static int add_file(Parts *parts, const char *file)
{
        _cleanup_free_ char *text = NULL;
        size_t size = 0;

        int r = read_file_at(AT_FDCWD, file, MAX_RUN_BYTES, &text, &size);
        if (r < 0) {
                (void) fprintf(stderr, "tierprobe report: %s: %s\n", file, strerror(-r));
                return CLI_UNKNOWN;
        }
        json_t *document = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
        if (!json_is_object(document) ||
            (!json_object_get(document, "id") && !json_object_get(document, "targets"))) {
                json_decref(document);
                (void) fprintf(
                        stderr,
                        "tierprobe report: %s holds no run; give what 'tierprobe run --json' printed\n",
                        file);
                return CLI_UNKNOWN;
        }
        int status = status_of(document);
        return parts_add(parts, document, file, NULL) ? status : CLI_UNKNOWN;
}

static int add_run(Parts *parts, const ClientCommand *command, Client *client, const char *url,
                   const char *id)
{
        _cleanup_free_ char *path = path_format("/runs/%s", id);
        ClientAnswer answer = { 0 };
        int status = CLI_UNKNOWN;

        if (!path)
                return CLI_UNKNOWN;
        client_request(client, url, "GET", path, NULL, 0, &answer);
        if (answer.error || answer.status != 200 || !answer.document)
                status = client_command_refused(command, url, &answer);
        else {
                status = client_exit_status(answer.document);
                if (!parts_add(parts, json_incref(answer.document), url, NULL))
                        status = CLI_UNKNOWN;
        }
        client_answer_done(&answer);
        return status;
}

/* Every host's status, then the deciding run of each of its targets with its evidence. */
static int add_hosts(Parts *parts, const ClientCommand *command, Client *client, const char *const *urls,
                     size_t n)
{
        ClientAnswer *answers = calloc(n, sizeof *answers);
        int status = CLI_PASS;

        if (!answers)
                return CLI_UNKNOWN;
        client_get_all(client, urls, n, "/status", answers);
        for (size_t i = 0; i < n; i++) {
                bool good =
                        !answers[i].error && json_is_array(json_object_get(answers[i].document, "targets"));
                char buf[32];

                bool added = good ? parts_add(parts, json_incref(answers[i].document), urls[i], NULL)
                                  : parts_add(parts, NULL, urls[i],
                                              answers[i].error ? answers[i].error
                                                               : client_answer_detail(&answers[i], buf));
                status = client_worse(status, good && added ? status_of(answers[i].document) : CLI_UNKNOWN);
        }
        for (size_t i = 0; i < n; i++) {
                size_t j;
                json_t *target;

                json_array_foreach(json_object_get(answers[i].document, "targets"), j, target)
                {
                        const json_t *run = json_object_get(target, "standing_run");
                        const char *id = json_string_value(json_object_get(
                                json_is_object(run) ? run : json_object_get(target, "last_run"), "id"));

                        if (id && run_id_is_valid(id))
                                status = client_worse(status, add_run(parts, command, client, urls[i], id) ==
                                                                              CLI_UNKNOWN
                                                                      ? CLI_UNKNOWN
                                                                      : CLI_PASS);
                }
                client_answer_done(&answers[i]);
        }
        free(answers);
        return status;
}

/* ---- the report ---- */

static int write_report(const ClientCommand *command, const Parts *parts)
{
        const char *file = command->html ? command->html : command->markdown;
        bool to_stdout = !file || strcmp(file, "-") == 0;
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);

        if (!out)
                return CLI_UNKNOWN;
        if (command->html)
                page_write_report(out, parts->documents, parts->names, parts->errors, parts->n);
        else
                page_write_markdown(out, parts->documents, parts->names, parts->errors, parts->n);
        if (fclose(out) != 0)
                return CLI_UNKNOWN;
        if (to_stdout)
                return fwrite(text, 1, size, stdout) == size && fflush(stdout) == 0 ? CLI_PASS : CLI_UNKNOWN;
        int r = write_file_atomic_at(AT_FDCWD, file, text, size, 0644);
        if (r < 0)
                (void) fprintf(stderr, "tierprobe report: %s: %s\n", file, strerror(-r));
        return r < 0 ? CLI_UNKNOWN : CLI_PASS;
}

static const char help[] =
        "tierprobe report [OPTION...] [RUN | URL...]\n"
        "One file for a vendor's support or an acceptance: verdicts, figures against their limits, charts, "
        "device,\n"
        "versions, and how to reproduce it by hand. RUN is the id of a run of the daemon, or a file with "
        "what\n"
        "'tierprobe run --json' printed; URLs are hosts. The exit status is that of the worst.\n\n"
        "  --html FILE          as HTML that needs nothing else (- is standard output)\n"
        "  --markdown FILE      as Markdown (the default, on standard output)\n";

int cli_report(int argc, char *argv[])
{
        ClientCommand command = { .name = "report", .help = help };
        static Parts parts;
        int r = client_command_parse(&command, " url html markdown", argc, argv);

        if (r != 0)
                return r < 0 ? CLI_UNKNOWN : CLI_PASS;
        if (command.html && command.markdown) {
                (void) fprintf(stderr, "tierprobe report: give --html or --markdown, not both\n");
                return CLI_UNKNOWN;
        }
        const char *one = client_command_url(&command),
                   *first = command.first < argc ? argv[command.first] : NULL;
        size_t n = (size_t) (argc - command.first);
        _cleanup_(client_freep) Client *client = client_command_connect(&command);
        int status;

        if (!client)
                return CLI_UNKNOWN;
        if (first && n == 1 && run_id_is_valid(first))
                status = add_run(&parts, &command, client, one, first);
        else if (first && n == 1 && access(first, F_OK) == 0)
                status = add_file(&parts, first);
        else
                status = add_hosts(&parts, &command, client,
                                   n > 0 ? (const char *const *) argv + command.first : &one, n > 0 ? n : 1);
        if (parts.n == 0)
                return CLI_UNKNOWN;
        status = client_worse(status, write_report(&command, &parts));
        parts_done(&parts);
        return status;
}
