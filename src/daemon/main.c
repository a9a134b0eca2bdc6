/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's command line. */

#include "tierprobe/daemon.h"

#include "journal.h"
#include "manager.h"
#include "paths.h"
#include "timetable.h"
#include "web.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/log.h"
#include "tierprobe/signals.h"
#include "tierprobe/units.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#define EXIT_USAGE 2
#define CHECK_LOOK_NS (5 * NS_PER_S)

typedef enum Action { ACTION_SERVE, ACTION_CHECK_CONFIG, ACTION_PRINT_CONFIG, ACTION_SHOW_SCHEDULE } Action;

typedef struct Options {
        ConfigOptions config;
        DeviceRoots roots;
        const char *state_dir;
        Action action;
        bool done; /* --help or --version has said all */
} Options;

static const char help[] =
        "tierprobed [OPTION...]\n"
        "Tests whether local disks are fit to be a database's caching tier, on a schedule and on demand,\n"
        "and serves the verdicts over HTTP.\n\n"
        "  --config FILE      configuration; default " CONFIG_FILE_DEFAULT "\n"
        "  --path DIR         test DIR as the one target, named cache (needs no configuration file)\n"
        "  --listen ADDR      serve on ADDR: 127.0.0.1:7620 (default), [::1]:7620, unix:/run/x.sock\n"
        "  --state-dir DIR    keep samples and runs in DIR; default $STATE_DIRECTORY or " STATE_DIR_DEFAULT
        "\n"
        "  --procfs DIR       read DIR in place of /proc\n"
        "  --sysfs DIR        read DIR in place of /sys\n"
        "  --check-config     check the configuration and its paths, then exit\n"
        "  --print-config     print the configuration in force, then exit\n"
        "  --show-schedule    print when each target's next runs are due, then exit\n"
        "  --verbose          log what is for developers, too\n"
        "  --help             this text\n"
        "  --version          the version\n\n"
        "Exit status: 0 stopped as asked, 1 could not run, 2 usage error, 78 the configuration is wrong.\n"
        "Signals: SIGHUP reloads the configuration, SIGTERM and SIGINT stop (a run under way is aborted).\n";

enum {
        OPT_CONFIG = 256,
        OPT_PATH,
        OPT_LISTEN,
        OPT_STATE_DIR,
        OPT_PROCFS,
        OPT_SYSFS,
        OPT_CHECK,
        OPT_PRINT,
        OPT_SCHEDULE,
        OPT_VERBOSE,
        OPT_HELP,
        OPT_VERSION
};

static const struct option long_options[] = {
        { "config", required_argument, NULL, OPT_CONFIG },
        { "path", required_argument, NULL, OPT_PATH },
        { "listen", required_argument, NULL, OPT_LISTEN },
        { "state-dir", required_argument, NULL, OPT_STATE_DIR },
        { "procfs", required_argument, NULL, OPT_PROCFS },
        { "sysfs", required_argument, NULL, OPT_SYSFS },
        { "check-config", no_argument, NULL, OPT_CHECK },
        { "print-config", no_argument, NULL, OPT_PRINT },
        { "show-schedule", no_argument, NULL, OPT_SCHEDULE },
        { "verbose", no_argument, NULL, OPT_VERBOSE },
        { "help", no_argument, NULL, OPT_HELP },
        { "version", no_argument, NULL, OPT_VERSION },
        { 0 },
};

/* The value of an option that can be given once: of two one would have no effect. */
static int take_once(const char **ret, const char *option, const char *right)
{
        if (*ret) {
                (void) fprintf(stderr, "tierprobed: %s is given twice; %s\n", option, right);
                return -EINVAL;
        }
        *ret = optarg;
        return 0;
}

static int parse_options(int argc, char *argv[], Options *options)
{
        int c;

        while ((c = getopt_long(argc, argv, "h", long_options, NULL)) >= 0) {
                if (c > OPT_CONFIG - 1 && c <= OPT_SYSFS && !*optarg) {
                        (void) fprintf(stderr,
                                       "tierprobed: an option's value is empty; see tierprobed --help\n");
                        return -EINVAL;
                }
                switch (c) {
                case OPT_CONFIG:
                        options->config.file = optarg;
                        break;
                case OPT_PATH:
                        if (take_once(&options->config.path, "--path",
                                      "several targets stand in the configuration") < 0)
                                return -EINVAL;
                        break;
                case OPT_LISTEN:
                        if (take_once(&options->config.listen, "--listen",
                                      "several addresses are parted by commas") < 0)
                                return -EINVAL;
                        break;
                case OPT_STATE_DIR:
                        options->state_dir = optarg;
                        break;
                case OPT_PROCFS:
                        options->roots.procfs = optarg;
                        break;
                case OPT_SYSFS:
                        options->roots.sysfs = optarg;
                        break;
                case OPT_CHECK:
                        options->action = ACTION_CHECK_CONFIG;
                        break;
                case OPT_PRINT:
                        options->action = ACTION_PRINT_CONFIG;
                        break;
                case OPT_SCHEDULE:
                        options->action = ACTION_SHOW_SCHEDULE;
                        break;
                case OPT_VERBOSE:
                        log_set_max_level(LOG_DEBUG);
                        break;
                case 'h':
                case OPT_HELP:
                        (void) fputs(help, stdout);
                        options->done = true;
                        return 0;
                case OPT_VERSION:
                        (void) printf("tierprobed %s\n", TIERPROBE_VERSION);
                        options->done = true;
                        return 0;
                default: /* getopt has said what is wrong */
                        (void) fprintf(stderr, "Try 'tierprobed --help'.\n");
                        return -EINVAL;
                }
        }
        if (optind < argc) {
                (void) fprintf(stderr,
                               "tierprobed: '%s' is not an option; give the path to test as --path %s\n"
                               "Try 'tierprobed --help'.\n",
                               argv[optind], argv[optind]);
                return -EINVAL;
        }
        return 0;
}

/* systemd names a StateDirectory= here; of several the first. */
static const char *default_state_dir(void)
{
        const char *directory = getenv("STATE_DIRECTORY");

        return directory && *directory && !strchr(directory, ':') ? directory : STATE_DIR_DEFAULT;
}

#define RUNS_SHOWN 5

/* What makes the times what they are. */
static void explain_schedule(const ScheduleRules *rules, uint64_t seed)
{
        const ScheduleWindow *window = &rules->window;
        char interval[FORMAT_SIZE], jitter[FORMAT_SIZE], place[FORMAT_SIZE];

        if (rules->interval_ns == 0) {
                (void) puts("never, [schedule] interval is never");
                return;
        }
        uint64_t place_ns = schedule_place_ns(rules, seed);

        (void) printf("every %s", format_duration(interval, rules->interval_ns));
        if (window->set)
                (void) printf(", in the window %02u:%02u-%02u:%02u", window->start_min / 60U,
                              window->start_min % 60U, window->end_min / 60U, window->end_min % 60U);
        if (rules->jitter_ns > 0)
                (void) printf(", %s later, its place in a jitter of %s",
                              format_duration(place, place_ns - place_ns % NS_PER_S),
                              format_duration(jitter, rules->jitter_ns));
        (void) printf("%s\n", rules->together ? ", together with the others" : "");
}

/* The next due times of each target, as the daemon has them for one that was not tested a short while ago. */
static void show_schedule(const Config *config)
{
        const ScheduleRules *rules = &config->schedule;
        int64_t now_ns = (int64_t) clock_ns(CLOCK_REALTIME);

        for (size_t i = 0; i < config->n_targets; i++) {
                const TargetConfig *target = &config->targets[i];
                int64_t at_ns = now_ns, last_ns = now_ns - (int64_t) (rules->interval_ns / 4);

                (void) printf("%s (%s, profile %s): ", target->name, target->path, target->profile);
                explain_schedule(rules, timetable_seed(rules, target->name));
                for (int n = 0; n < RUNS_SHOWN; n++) {
                        int64_t next_ns =
                                schedule_next(rules, last_ns, at_ns, timetable_seed(rules, target->name));
                        time_t seconds = next_ns / (int64_t) NS_PER_S;
                        char text[64];
                        struct tm tm;

                        if (next_ns == SCHEDULE_NEVER || !localtime_r(&seconds, &tm) ||
                            strftime(text, sizeof text, "%a %Y-%m-%d %H:%M:%S %z", &tm) == 0)
                                break;
                        (void) printf("  %s\n", text);
                        last_ns = at_ns = next_ns;
                }
        }
}

static int serve(const Options *options, Config *config)
{
        _cleanup_(manager_freep) Manager *manager = NULL;
        sigset_t mask;

        journal_init();
        (void) sigemptyset(&mask);
        (void) sigaddset(&mask, SIGTERM);
        if (!signal_is_ignored(SIGINT))
                (void) sigaddset(&mask, SIGINT);
        (void) sigaddset(&mask, SIGHUP);
        (void) sigprocmask(SIG_BLOCK, &mask, NULL);

        int r = manager_new(&manager, &options->config, config, &options->roots,
                            options->state_dir ? options->state_dir : default_state_dir());
        if (r >= 0) {
                r = manager_check_paths(manager);
                if (r == -EINVAL)
                        return EX_CONFIG;
        }
        if (r >= 0)
                r = manager_run(manager);
        return r < 0 && r != -EINTR ? EXIT_FAILURE : EXIT_SUCCESS;
}

int daemon_main(int argc, char *argv[])
{
        Options options = { .roots = { .procfs = "/proc", .sysfs = "/sys" },
                            .config.runtime_dir = getenv("RUNTIME_DIRECTORY") };
        _cleanup_(config_freep) Config *config = NULL;
        _cleanup_free_ char *error = NULL;

        signals_prepare();
        if (parse_options(argc, argv, &options) < 0)
                return EXIT_USAGE;
        if (options.done)
                return EXIT_SUCCESS;
        int r = config_load(&options.config, &config, &error);
        if (r >= 0 && (options.action == ACTION_SERVE || options.action == ACTION_CHECK_CONFIG))
                r = web_check(config, &error);
        if (r >= 0 && options.action == ACTION_CHECK_CONFIG)
                r = paths_check_now(&options.roots, config, CHECK_LOOK_NS, &error);
        if (r < 0) {
                if (options.action == ACTION_SERVE)
                        journal_init();
                journal_config_invalid(error ? error : strerror(-r));
                return EX_CONFIG;
        }
        switch (options.action) {
        case ACTION_SERVE:
                return serve(&options, TAKE_PTR(config));
        case ACTION_CHECK_CONFIG:
                (void) printf("the configuration is valid: %zu target%s\n", config->n_targets,
                              config->n_targets == 1 ? "" : "s");
                break;
        case ACTION_PRINT_CONFIG:
                config_print(config, stdout);
                break;
        case ACTION_SHOW_SCHEDULE:
                show_schedule(config);
                break;
        }
        if (fflush(stdout) != 0 || ferror(stdout)) {
                (void) fprintf(stderr, "tierprobed: cannot write the result: %s\n", strerror(errno));
                return EXIT_FAILURE;
        }
        return EXIT_SUCCESS;
}
