/* SPDX-License-Identifier: Apache-2.0 */
/* `tierprobe status` and `tierprobe check`: what daemons say of their targets, for people and for monitoring.
 * Knows client. */

#include "client-command.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/cli.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define NAME_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."

/* The run that the verdict is of; a daemon of a release without standing runs has only the last one. */
static const json_t *deciding_run(const json_t *target)
{
        const json_t *run = json_object_get(target, "standing_run");

        return json_is_object(run) ? run : json_object_get(target, "last_run");
}

static const char *text_of(const json_t *object, const char *key)
{
        return json_string_value(json_object_get(object, key));
}

static bool is_status(const ClientAnswer *answer)
{
        return !answer->error && answer->status == 200 &&
               json_is_array(json_object_get(answer->document, "targets"));
}

static const char *why_no_status(const ClientAnswer *answer, char buf[32])
{
        if (answer->error)
                return answer->error;
        return answer->status == 200 ? "this is no tierprobed: its /status has no targets"
                                     : client_answer_detail(answer, buf);
}

/* ---- the table ---- */

#define N_COLUMNS 9
static const char *const columns[N_COLUMNS] = { "HOST",       "TARGET",     "VERDICT", "AGE", "WRITE MB/s",
                                                "W_AWAIT ms", "P99 DAY ms", "DEVICE",  "PATH" };

typedef struct Row {
        char *cells[N_COLUMNS];
} Row;

typedef struct Table {
        Row *rows;
        size_t n;
} Table;

static char *format_age(double s)
{
        char text[32];

        if (!isfinite(s) || s < 0)
                return strdup("-");
        if (s < 120)
                (void) snprintf(text, sizeof text, "%.0f s", s);
        else if (s < 7200)
                (void) snprintf(text, sizeof text, "%.0f min", s / 60);
        else if (s < 172800)
                (void) snprintf(text, sizeof text, "%.0f h", s / 3600);
        else
                (void) snprintf(text, sizeof text, "%.0f d", s / 86400);
        return strdup(text);
}

static char *format_figure(double value)
{
        char text[32];

        if (!isfinite(value))
                return strdup("-");
        (void) snprintf(text, sizeof text, "%.*f", value < 100 ? 2 : 1, value);
        return strdup(text);
}

/* The w_await below which 99 of 100 writes of the last day were that no test did; NAN: there were none. */
static double observed_p99_ms(const json_t *target)
{
        const json_t *day = json_object_get(json_object_get(target, "observed"), "day");
        const json_t *p99 = json_object_get(json_object_get(day, "w_await"), "p99");

        return json_is_number(p99) ? json_number_value(p99) : NAN;
}

static char *printable(const char *text)
{
        char *safe = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&safe, &size);

        if (!out)
                return NULL;
        client_print(out, text);
        return fclose(out) == 0 ? safe : NULL;
}

static void add_target(Table *table, const char *host, const json_t *target)
{
        Row *rows = realloc(table->rows, (table->n + 1) * sizeof *rows);
        const json_t *run = deciding_run(target), *age = json_object_get(target, "age_s");
        const json_t *device = json_object_get(target, "device");
        char verdict[64];
        double limit;

        if (!rows)
                return;
        table->rows = rows;
        (void) snprintf(verdict, sizeof verdict, "%.20s%s%s",
                        text_of(target, "verdict") ? text_of(target, "verdict") : "-",
                        json_is_true(json_object_get(target, "stale")) ? " stale" : "",
                        json_is_true(json_object_get(target, "degraded")) ? " degraded" : "");
        rows[table->n++] =
                (Row){ { printable(host), printable(text_of(target, "name")), printable(verdict),
                         format_age(json_is_number(age) ? json_number_value(age) : NAN),
                         format_figure(client_criterion(run, "write_throughput", &limit)),
                         format_figure(client_criterion(run, "write_latency", &limit)),
                         format_figure(observed_p99_ms(target)), printable(text_of(device, "name")),
                         printable(text_of(target, "path")) } };
}

static void print_row(const char *const cells[N_COLUMNS], const int widths[N_COLUMNS])
{
        for (int i = 0; i < N_COLUMNS; i++)
                if (i == N_COLUMNS - 1)
                        (void) printf("%s\n", cells[i] ? cells[i] : "-");
                else
                        (void) printf("%-*s  ", widths[i], cells[i] ? cells[i] : "-");
}

static void print_table(const Table *table)
{
        int widths[N_COLUMNS];

        for (int i = 0; i < N_COLUMNS; i++) {
                widths[i] = (int) strlen(columns[i]);
                for (size_t row = 0; row < table->n; row++)
                        if (table->rows[row].cells[i] && (int) strlen(table->rows[row].cells[i]) > widths[i])
                                widths[i] = (int) strlen(table->rows[row].cells[i]);
        }
        if (table->n > 0)
                print_row(columns, widths);
        for (size_t row = 0; row < table->n; row++)
                print_row((const char *const *) table->rows[row].cells, widths);
}

static void table_done(Table *table)
{
        for (size_t row = 0; row < table->n; row++)
                for (int i = 0; i < N_COLUMNS; i++)
                        free(table->rows[row].cells[i]);
        free(table->rows);
}

static void print_reasons(const char *host, const json_t *target, const char *key)
{
        size_t i;
        json_t *reason;

        json_array_foreach(json_object_get(target, key), i, reason)
        {
                client_print(stdout, host);
                (void) printf(" ");
                client_print(stdout, text_of(target, "name"));
                (void) printf(": ");
                client_print(stdout, text_of(reason, "code"));
                (void) printf(": ");
                client_print(stdout, text_of(reason, "detail"));
                (void) printf("\n");
        }
}

/* ---- status ---- */

static int status_of_host(const ClientAnswer *answer, const char *wanted)
{
        int status = CLI_PASS;
        size_t i, n = 0;
        json_t *target;

        if (!is_status(answer))
                return CLI_UNKNOWN;
        json_array_foreach(json_object_get(answer->document, "targets"), i,
                           target) if (!wanted || (text_of(target, "name") &&
                                                   strcmp(text_of(target, "name"), wanted) == 0))
        {
                status = client_worse(status, client_exit_status(target));
                n++;
        }
        return n > 0 ? status : CLI_UNKNOWN;
}

static void print_hosts(const char *const *urls, const ClientAnswer *answers, size_t n, const char *wanted)
{
        Table table = { 0 };
        char buf[32];
        size_t i;
        json_t *target;

        for (size_t host = 0; host < n; host++)
                json_array_foreach(json_object_get(answers[host].document, "targets"), i,
                                   target) if (!wanted || (text_of(target, "name") &&
                                                           strcmp(text_of(target, "name"), wanted) == 0))
                        add_target(&table, urls[host], target);
        print_table(&table);
        table_done(&table);
        for (size_t host = 0; host < n; host++) {
                if (!is_status(&answers[host])) {
                        client_print(stdout, urls[host]);
                        (void) printf(": no answer: ");
                        client_print(stdout, why_no_status(&answers[host], buf));
                        (void) printf("\n");
                        continue;
                }
                json_array_foreach(json_object_get(answers[host].document, "targets"), i, target)
                {
                        if (wanted &&
                            (!text_of(target, "name") || strcmp(text_of(target, "name"), wanted) != 0))
                                continue;
                        if (client_exit_status(target) != CLI_PASS)
                                print_reasons(urls[host], target, "reasons");
                }
        }
}

static int print_hosts_json(const char *const *urls, const ClientAnswer *answers, size_t n)
{
        json_auto_t *document = json_pack("{s:i, s:[]}", "schema", 1, "hosts");
        char buf[32];

        for (size_t i = 0; i < n; i++) {
                bool good = is_status(&answers[i]);
                json_t *host = good ? json_pack("{s:s, s:O}", "url", urls[i], "status", answers[i].document)
                                    : json_pack("{s:s, s:n, s:s}", "url", urls[i], "status", "error",
                                                why_no_status(&answers[i], buf));

                if (!host || json_array_append_new(json_object_get(document, "hosts"), host) < 0)
                        return -ENOMEM;
        }
        if (json_dumpf(document, stdout, JSON_COMPACT | JSON_REAL_PRECISION(15)) < 0)
                return -EIO;
        (void) putchar('\n');
        return 0;
}

static const char status_help[] = "tierprobe status [OPTION...] [URL...]\n"
                                  "What the daemon of this host, or those of many hosts, say of their "
                                  "targets: a table, then the reasons\n"
                                  "of each that is not green. P99 DAY is what production's own writes took "
                                  "in the last day. The exit status is that of the worst.\n\n"
                                  "  --target NAME        only targets of this name\n";

int cli_status_command(int argc, char *argv[])
{
        ClientCommand command = { .name = "status", .help = status_help };
        int r = client_command_parse(&command, " url target", argc, argv);

        if (r != 0)
                return r < 0 ? CLI_UNKNOWN : CLI_PASS;
        const char *one = client_command_url(&command);
        const char *const *urls = argc > command.first ? (const char *const *) argv + command.first : &one;
        size_t n = argc > command.first ? (size_t) (argc - command.first) : 1;
        _cleanup_(client_freep) Client *client = client_command_connect(&command);
        ClientAnswer *answers = calloc(n, sizeof *answers);
        int status = CLI_PASS;

        if (!client || !answers) {
                free(answers);
                return CLI_UNKNOWN;
        }
        client_get_all(client, urls, n, "/status", answers);
        if (!command.json)
                print_hosts(urls, answers, n, command.target);
        else if (print_hosts_json(urls, answers, n) < 0)
                status = CLI_UNKNOWN;
        for (size_t i = 0; i < n; i++) {
                status = client_worse(status, status_of_host(&answers[i], command.target));
                client_answer_done(&answers[i]);
        }
        free(answers);
        return fflush(stdout) == 0 ? status : CLI_UNKNOWN;
}

/* ---- check ---- */

static const char *const check_words[] = {
        [CLI_PASS] = "OK", [CLI_WARNING] = "WARNING", [CLI_FAIL] = "CRITICAL", [CLI_UNKNOWN] = "UNKNOWN"
};

/* What stands before the bar of a plugin's line may hold neither a bar nor a line's end. */
static void print_plugin(const char *text)
{
        _cleanup_free_ char *safe = printable(text);

        for (char *bar = safe; bar && (bar = strchr(bar, '|'));)
                *bar = '/';
        (void) fputs(safe ? safe : "-", stdout);
}

static void print_check_target(const json_t *target)
{
        const char *verdict = text_of(target, "verdict");
        double limit, throughput = client_criterion(deciding_run(target), "write_throughput", &limit);
        double latency = client_criterion(deciding_run(target), "write_latency", &limit);
        const json_t *reason = json_array_get(json_object_get(target, "reasons"), 0);

        print_plugin(text_of(target, "name"));
        (void) printf(" ");
        print_plugin(verdict);
        if (json_is_true(json_object_get(target, "stale")))
                (void) printf(" (stale)");
        if (json_is_true(json_object_get(target, "degraded")))
                (void) printf(" (degraded)");
        if (isfinite(throughput) && isfinite(latency))
                (void) printf(" %.1f MB/s %.2f ms", throughput, latency);
        if (client_exit_status(target) != CLI_PASS && reason) {
                (void) printf(": ");
                print_plugin(text_of(reason, "detail"));
        }
}

/* Performance data: 'label'=value[unit];warn;crit;min, where the range N: alerts below N. FIRST: it is the
 * first item. */
__attribute__((format(printf, 4, 5))) static void print_datum(bool *first, const char *name,
                                                              const char *figure, const char *format, ...)
{
        va_list ap;

        (void) printf("%s'%s_%s'=", *first ? " | " : " ", name, figure);
        va_start(ap, format);
        (void) vprintf(format, ap);
        va_end(ap);
        *first = false;
}

static void print_perfdata(const json_t *target, bool *first)
{
        const char *name = text_of(target, "name");
        double throughput_limit, latency_limit;
        double throughput = client_criterion(deciding_run(target), "write_throughput", &throughput_limit);
        double latency = client_criterion(deciding_run(target), "write_latency", &latency_limit);
        const json_t *age = json_object_get(target, "age_s");

        /* A target's name is plain; what no daemon would send is left out. */
        if (!name || !*name || name[strspn(name, NAME_CHARACTERS)])
                return;
        if (isfinite(throughput))
                print_datum(first, name, "write_mb_per_s", "%.2f;;%g:;0", throughput, throughput_limit);
        if (isfinite(latency))
                print_datum(first, name, "w_await", "%.3fms;;%g;0", latency, latency_limit);
        if (json_is_number(age))
                print_datum(first, name, "age", "%.0fs;;;0", json_number_value(age));
}

static void print_check(const ClientAnswer *answer, const char *url, const char *wanted, int status)
{
        char buf[32];
        bool first = true;
        size_t i, n = 0;
        json_t *target;

        (void) printf("TIERPROBE %s - ", check_words[status]);
        if (!is_status(answer)) {
                print_plugin(url);
                (void) printf(": ");
                print_plugin(why_no_status(answer, buf));
                (void) printf("\n");
                return;
        }
        const json_t *targets = json_object_get(answer->document, "targets");
        json_array_foreach(targets, i, target) if (!wanted || (text_of(target, "name") &&
                                                               strcmp(text_of(target, "name"), wanted) == 0))
        {
                (void) printf("%s", n++ ? ", " : "");
                print_check_target(target);
        }
        if (n == 0) {
                (void) printf("no target is %s", wanted ? "named " : "configured");
                print_plugin(wanted ? wanted : "");
        }
        json_array_foreach(targets, i, target) if (!wanted || (text_of(target, "name") &&
                                                               strcmp(text_of(target, "name"), wanted) == 0))
                print_perfdata(target, &first);
        (void) printf("\n");
}

static const char check_help[] =
        "tierprobe check [OPTION...]\n"
        "A monitoring plugin: one line with performance data from a running daemon.\n\n"
        "  --target NAME        only this target (all)\n";

int cli_check(int argc, char *argv[])
{
        ClientCommand command = { .name = "check", .help = check_help };
        int r = client_command_parse(&command, " url target", argc, argv);

        if (r != 0)
                return r < 0 ? CLI_UNKNOWN : CLI_PASS;
        if (command.first < argc) {
                (void) fprintf(stderr, "tierprobe check: '%s': give the address as --url\n",
                               argv[command.first]);
                return CLI_UNKNOWN;
        }
        _cleanup_(client_freep) Client *client = client_command_connect(&command);
        ClientAnswer answer = { 0 };
        const char *url = client_command_url(&command);

        if (!client)
                return CLI_UNKNOWN;
        client_request(client, url, "GET", "/status", NULL, 0, &answer);
        int status = status_of_host(&answer, command.target);
        if (!command.json)
                print_check(&answer, url, command.target, status);
        else if (print_hosts_json(&url, &answer, 1) < 0)
                status = CLI_UNKNOWN;
        client_answer_done(&answer);
        return fflush(stdout) == 0 ? status : CLI_UNKNOWN;
}
