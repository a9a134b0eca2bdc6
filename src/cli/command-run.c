/* SPDX-License-Identifier: Apache-2.0 */
/* `tierprobe run`: one test in the foreground, without a daemon. */

#include "tierprobe/cli.h"

#include "parameter-options.h"
#include "run-progress.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/config.h"
#include "tierprobe/file.h"
#include "tierprobe/json.h"
#include "tierprobe/run.h"
#include "tierprobe/signals.h"
#include "tierprobe/units.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <string.h>

#define BACKGROUND_NS NS_PER_S /* how long others' writes are watched before the test */
#define TURN_NS (NS_PER_S / 5) /* between two looks at whether another test has ended */
#define PATH_TIMEOUT_NS (10 * NS_PER_S)

typedef struct RunOptions {
        ConfigOptions config;
        const char *path, *profile;
        const char *procfs, *sysfs;
        ParameterOptions parameters;
        bool json, done;
} RunOptions;

/* All that lives while the test runs. */
typedef struct Foreground {
        sd_event *event;
        Run *run;
        const DeviceRoots *roots;
        char *place; /* where a path that is a link leads */
        Device *device;
        DiskLock *lock; /* until the run has it */
        unsigned n_waits;
        Sampler *sampler;
        Snapshot previous;
        bool have_previous;
        Progress progress;
        bool said_making, said_freeing;
        uint64_t interval_ns, next_tick_ns;
        uint64_t last_bytes, last_ns;
        RunRecord *record; /* once it has ended */
} Foreground;

static void run_options_done(RunOptions *options)
{
        parameter_options_done(&options->parameters);
}

static const ParameterTable tables[] = { profile_parameter, guard_parameter, limits_parameter, NULL };

static void print_help(const ParameterOptions *options)
{
        const Profile profile = PROFILE_PROCEDURE;
        const GuardRules guard = GUARD_RULES_DEFAULT;
        const Limits limits = limits_default();

        (void) fputs(
                "tierprobe run PATH [OPTION...]\n"
                "Tests PATH once in the foreground, as dd if=/dev/zero of=PATH/testfile bs=1M count=10000\n"
                "oflag=direct,dsync beside iostat -x would, and judges the device under it. Nothing stays on "
                "the "
                "disk. While\n"
                "another test of the disk goes on, the daemon's or a second command's, it waits.\n\n"
                "  --profile NAME       parameters by name, these or one of the configuration:\n"
                "                       procedure  what the documented dd does, the only one that certifies "
                "(default)\n"
                "                       quick      a tenth of it\n"
                "                       random     as much, but nothing that a device can compress\n"
                "                       sustained  10m of writing; twice 10000 MiB must be free\n"
                "                       ramp       with 1, 2, 4, ... 64 writers until the latency limit is "
                "reached: how\n"
                "                                  much the device takes; writes up to 70000 MiB\n",
                stdout);
        parameter_options_help(options, profile_parameter, &profile, stdout);
        parameter_options_help(options, guard_parameter, &guard, stdout);
        parameter_options_help(options, limits_parameter, &limits, stdout);
        (void) fputs("  --config FILE        take limits, guards and profiles from FILE and FILE.d; without "
                     "it from\n"
                     "                       " CONFIG_FILE_DEFAULT ", if there is one\n"
                     "  --json               print one JSON document on stdout\n"
                     "  --procfs DIR, --sysfs DIR   read DIR in place of /proc, /sys\n"
                     "  --help               this text\n\n"
                     "What it will write and take is said on stderr before it begins.\n"
                     "Exit status: 0 pass, 1 pass with a warning (stale or degraded, which only a daemon can "
                     "tell),\n"
                     "2 fail, 3 inconclusive, usage error or anything that kept it from judging.\n",
                     stdout);
}

enum { OPT_PROFILE = 256, OPT_CONFIG, OPT_PROCFS, OPT_SYSFS, OPT_JSON, OPT_HELP };

static const struct option own_options[] = {
        { "profile", required_argument, NULL, OPT_PROFILE },
        { "config", required_argument, NULL, OPT_CONFIG },
        { "procfs", required_argument, NULL, OPT_PROCFS },
        { "sysfs", required_argument, NULL, OPT_SYSFS },
        { "json", no_argument, NULL, OPT_JSON },
        { "help", no_argument, NULL, OPT_HELP },
        { 0 },
};

static int take_option(RunOptions *options, int c)
{
        switch (c) {
        case OPT_PROFILE:
                options->profile = optarg;
                return 0;
        case OPT_CONFIG:
                options->config.file = optarg;
                return 0;
        case OPT_PROCFS:
                options->procfs = optarg;
                return 0;
        case OPT_SYSFS:
                options->sysfs = optarg;
                return 0;
        case OPT_JSON:
                options->json = true;
                return 0;
        case 'h':
        case OPT_HELP:
                print_help(&options->parameters);
                options->done = true;
                return 0;
        default:
                return parameter_options_take(&options->parameters, c, optarg) ? 0 : -EINVAL;
        }
}

static int parse_options(int argc, char *argv[], RunOptions *options)
{
        int c, r = parameter_options_init(&options->parameters, own_options, tables);

        while (r >= 0 && (c = getopt_long(argc, argv, "h", options->parameters.long_options, NULL)) >= 0) {
                r = take_option(options, c);
                if (options->done)
                        return 0;
        }
        if (r >= 0 && (optind + 1 != argc || !*argv[optind])) {
                (void) fprintf(stderr, "tierprobe run: give exactly one PATH, the directory to test\n");
                r = -EINVAL;
        }
        if (r < 0)
                (void) fprintf(stderr, "Try 'tierprobe run --help'.\n");
        else
                options->path = argv[optind];
        return r;
}

static int override(const RunOptions *options, Profile *profile, Config *config)
{
        const ParameterOptions *given = &options->parameters;

        int r = parameter_options_apply(given, "tierprobe run", profile_parameter, profile);
        if (r >= 0)
                r = parameter_options_apply(given, "tierprobe run", guard_parameter, &config->guard);
        if (r >= 0)
                r = parameter_options_apply(given, "tierprobe run", limits_parameter, &config->limits);
        if (parameter_options_given(given, "count"))
                profile->duration_ns = 0;
        return r;
}

/* ---- while it runs ---- */

static void on_changed(Run *run, void *userdata)
{
        (void) run;
        (void) userdata;
}

static void on_ended(Run *run, void *userdata)
{
        Foreground *foreground = userdata;

        foreground->record = run_take_record(run);
        if (foreground->event)
                (void) sd_event_exit(foreground->event, 0);
}

static void on_gone(Run *run, void *userdata)
{
        (void) run;
        (void) userdata;
}

static int on_stop(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
        Foreground *foreground = userdata;

        (void) source;
        run_abort(foreground->run,
                  info->ssi_signo == SIGINT ? "Interrupted (Ctrl-C)" : "Terminated by a signal");
        return 0;
}

/* A file system that hangs may hold the test up before its first write and after its last. */
static void say_what_is_awaited(Foreground *foreground, const RunRecord *record)
{
        if (record->started_real_ns > 0 && record->elapsed_ns == 0 && !foreground->said_making) {
                foreground->said_making = true;
                progress_say(&foreground->progress, "waiting for the file system to make the test file");
        } else if (record->finished_real_ns > 0 && !foreground->said_freeing) {
                foreground->said_freeing = true;
                progress_say(&foreground->progress,
                             "waiting for the file system to give the test file's space back");
        }
}

static int on_tick(sd_event_source *source, uint64_t usec, void *userdata)
{
        Foreground *foreground = userdata;
        const RunRecord *record = run_record(foreground->run);
        Snapshot snapshot;
        Delta delta;

        (void) usec;
        if (record)
                say_what_is_awaited(foreground, record);
        if (record && record->elapsed_ns > 0 && foreground->sampler) {
                uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
                double seconds = (double) (now_ns - foreground->last_ns) / 1e9;
                double rate =
                        seconds > 0 ? (double) (record->bytes_written - foreground->last_bytes) / seconds : 0;

                sampler_read(foreground->sampler, &snapshot);
                if (foreground->have_previous &&
                    delta_compute(&foreground->previous, &snapshot, &delta) == GAP_NONE) {
                        Metrics metrics;

                        metrics_from_delta(&delta, &metrics);
                        progress_row(&foreground->progress, foreground->device->name, &metrics,
                                     (double) record->elapsed_ns / 1e9);
                }
                foreground->previous = snapshot;
                foreground->have_previous = true;
                foreground->last_bytes = record->bytes_written;
                foreground->last_ns = now_ns;
                progress_bar(&foreground->progress, record, rate);
        }
        foreground->next_tick_ns = tick_after(foreground->next_tick_ns, foreground->interval_ns,
                                              clock_ns(CLOCK_MONOTONIC), NULL);
        int r = sd_event_source_set_time(source, foreground->next_tick_ns / NS_PER_US);
        return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* The second of watching is over: what others wrote in it, and off. */
static int on_begin(sd_event_source *source, uint64_t usec, void *userdata)
{
        Foreground *foreground = userdata;
        double background = NAN;
        Snapshot snapshot;
        Delta delta;
        Metrics metrics;

        (void) source;
        (void) usec;
        if (run_record(foreground->run) == NULL)
                return 0;
        if (foreground->sampler) {
                sampler_read(foreground->sampler, &snapshot);
                if (delta_compute(&foreground->previous, &snapshot, &delta) == GAP_NONE) {
                        metrics_from_delta(&delta, &metrics);
                        background = metrics.wkb_s / 1000;
                }
                foreground->previous = snapshot;
                foreground->have_previous = true;
        }
        foreground->last_ns = clock_ns(CLOCK_MONOTONIC);
        run_start(foreground->run, foreground->place, foreground->device, TAKE_PTR(foreground->lock),
                  background);
        return 0;
}

/* The disks are this test's own from now on: watches them for a moment, then begins. */
static int take_turn(Foreground *foreground)
{
        uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC) + (foreground->sampler ? BACKGROUND_NS : 0);

        if (foreground->sampler)
                sampler_read(foreground->sampler, &foreground->previous);
        foreground->next_tick_ns = begin_ns + foreground->interval_ns;
        int r = sd_event_add_time(foreground->event, NULL, CLOCK_MONOTONIC, begin_ns / NS_PER_US, 500,
                                  on_begin, foreground);
        if (r >= 0)
                r = sd_event_add_time(foreground->event, NULL, CLOCK_MONOTONIC,
                                      foreground->next_tick_ns / NS_PER_US, 500, on_tick, foreground);
        return r;
}

/* Waits for its turn: another test on a disk would be taken for others' writes, by either of them. */
static int on_turn(sd_event_source *source, uint64_t usec, void *userdata)
{
        Foreground *foreground = userdata;
        char holder[DISK_HOLDER_SIZE], text[DISK_HOLDER_SIZE + DEVICE_NAME_SIZE + 64];

        (void) usec;
        if (run_record(foreground->run) == NULL)
                return 0;
        bool is_said = ++foreground->n_waits == DISK_LOCK_REFUSALS;
        int r = foreground->device ? disk_lock_new(&foreground->lock, foreground->roots, foreground->device,
                                                   is_said ? holder : NULL)
                                   : 0;
        if (r != -EBUSY)
                return r < 0 ? r : take_turn(foreground);
        if (is_said) {
                (void) snprintf(text, sizeof text, "waiting for the test of %s by %s to end",
                                foreground->device->name, holder);
                progress_say(&foreground->progress, text);
        }
        r = sd_event_source_set_time(source, (clock_ns(CLOCK_MONOTONIC) + TURN_NS) / NS_PER_US);
        return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* Finds the device; what is wrong with the path becomes the run's reason. */
static void look_at_path(Foreground *foreground, const char *path, const DeviceRoots *roots)
{
        const char *names[64];
        PathFacts facts;

        if (*path != '/') {
                run_refuse(foreground->run, REASON_PATH_MISSING,
                           "The working directory is gone or cannot be told. Give the path from / on.");
                return;
        }
        int r = path_inspect(path, PATH_TIMEOUT_NS, &facts);

        if (r < 0 && r != -ENAMETOOLONG) {
                char detail[256];

                if (r == -EIO)
                        (void) snprintf(
                                detail, sizeof detail,
                                "The child process that looked at %.150s was killed (out of memory?). "
                                "Run again.",
                                path);
                else
                        (void) snprintf(
                                detail, sizeof detail,
                                "No child process could look at %.150s: %s. Free memory, processes or "
                                "descriptors and run again.",
                                path, strerror(-r));
                run_refuse(foreground->run, REASON_ABORTED, detail);
                return;
        }
        if (r < 0)
                facts = (PathFacts){ .error = -r };
        if (facts.error != 0) {
                char detail[PATH_ERROR_SIZE];

                path_error_describe(detail, sizeof detail, path, facts.error, &facts.denial);
                run_refuse(foreground->run, path_error_find(facts.error).code, detail);
                return;
        }
        if (facts.is_link)
                foreground->place = strdup(facts.resolved);
        r = device_resolve(roots, facts.resolved, facts.dev, NULL, &foreground->device);
        if (r >= 0 && foreground->device->status == DEVICE_OK)
                (void) sampler_new(&foreground->sampler, roots->procfs, roots->sysfs, names,
                                   device_row_names(foreground->device, names, ELEMENTSOF(names)));
}

static int set_up_loop(Foreground *foreground)
{
        static const int ending[] = { SIGINT, SIGTERM, SIGHUP };
        sigset_t mask;

        int r = sd_event_default(&foreground->event);
        for (size_t i = 0; i < ELEMENTSOF(ending) && r >= 0; i++) {
                if (signal_is_ignored(ending[i]))
                        continue;
                (void) sigemptyset(&mask);
                (void) sigaddset(&mask, ending[i]);
                (void) sigprocmask(SIG_BLOCK, &mask, NULL);
                r = sd_event_add_signal(foreground->event, NULL, ending[i], on_stop, foreground);
        }
        return r;
}

static int start_in_foreground(Foreground *foreground, const Config *config, const char *path,
                               const DeviceRoots *roots)
{
        look_at_path(foreground, path, roots);
        if (foreground->record)
                return 0;

        foreground->interval_ns = config->sample_interval_ns;
        foreground->roots = roots;
        int r = sd_event_add_time(foreground->event, NULL, CLOCK_MONOTONIC, 0, 500, on_turn, foreground);
        return r < 0 ? r : sd_event_loop(foreground->event);
}

/* Leaves a record whatever happens, but for a lack of memory. */
static int run_in_foreground(Foreground *foreground, const RunOptions *options, const Config *config,
                             const Profile *profile, const char *path)
{
        const DeviceRoots roots = { .procfs = options->procfs ? options->procfs : "/proc",
                                    .sysfs = options->sysfs ? options->sysfs : "/sys" };
        const RunEvents events = {
                .userdata = foreground, .changed = on_changed, .ended = on_ended, .gone = on_gone
        };

        int loop = set_up_loop(foreground);
        int r = run_new(&foreground->run, foreground->event,
                        &(RunRequest){ .target = "cache",
                                       .path = path,
                                       .profile = profile,
                                       .limits = &config->limits,
                                       .guard = &config->guard,
                                       .trigger = TRIGGER_MANUAL,
                                       .interval_ns = config->sample_interval_ns,
                                       .procfs = roots.procfs,
                                       .sysfs = roots.sysfs },
                        &events);
        if (r < 0)
                return r;
        r = loop < 0 ? loop : start_in_foreground(foreground, config, path, &roots);
        if (!foreground->record) {
                char detail[128];

                (void) snprintf(detail, sizeof detail, "the test could not be set up: %s", strerror(-r));
                run_cut(foreground->run, detail);
        }
        return 0;
}

static void foreground_done(Foreground *foreground)
{
        run_free(foreground->run);
        run_record_free(foreground->record);
        sampler_free(foreground->sampler);
        disk_lock_free(foreground->lock);
        device_free(foreground->device);
        free(foreground->place);
        sd_event_unref(foreground->event);
}

static int print_result(const RunRecord *record, bool json)
{
        if (json) {
                size_t size = 0;
                json_auto_t *document = json_run(record, true);
                _cleanup_free_ char *text = document ? json_document(document, &size) : NULL;

                if (!text)
                        return -ENOMEM;
                errno = 0;
                (void) fwrite(text, 1, size, stdout);
        } else {
                errno = 0;
                report_run(stdout, record);
        }
        /* What did not fit the buffer has been written, or not, before. */
        if (fflush(stdout) != 0 || ferror(stdout))
                return errno ? -errno : -EIO;
        return 0;
}

/* What it will write and take, before it does. */
static void announce(Progress *progress, const Profile *profile, const Config *config)
{
        char plan[PROFILE_PLAN_SIZE], text[PROFILE_PLAN_SIZE + NAME_SIZE + 16];

        profile_describe_plan(plan, profile, config->limits.value[CRITERION_WRITE_THROUGHPUT],
                              config->guard.max_duration_ns);
        (void) snprintf(text, sizeof text, "profile %s %s", profile->name, plan);
        progress_say(progress, text);
}

int cli_run(int argc, char *argv[])
{
        _cleanup_(run_options_done) RunOptions options = { 0 };
        _cleanup_(config_freep) Config *config = NULL;
        _cleanup_free_ char *error = NULL, *path = NULL;
        _cleanup_(foreground_done) Foreground foreground = { 0 };

        if (parse_options(argc, argv, &options) < 0)
                return CLI_UNKNOWN;
        if (options.done)
                return CLI_PASS;
        int r = config_load_without_targets(&options.config, &config, &error);
        if (r < 0) {
                (void) fprintf(stderr, "tierprobe run: %s\n", error ? error : strerror(-r));
                return CLI_UNKNOWN;
        }
        const Profile *named = config_find_profile(config, options.profile ? options.profile : "procedure");
        if (!named) {
                (void) fprintf(stderr, "tierprobe run: no profile is named %s; there are:", options.profile);
                for (size_t i = 0; i < config->n_profiles; i++)
                        (void) fprintf(stderr, " %s", config->profiles[i].name);
                (void) fputc('\n', stderr);
                return CLI_UNKNOWN;
        }
        Profile profile = *named;
        if (override(&options, &profile, config) < 0)
                return CLI_UNKNOWN;
        if (path_absolute(options.path, &path) < 0)
                path = strdup(options.path); /* its run says what is wrong with it */
        if (!path)
                return CLI_UNKNOWN;

        progress_begin(&foreground.progress);
        announce(&foreground.progress, &profile, config);
        r = run_in_foreground(&foreground, &options, config, &profile, path);
        progress_end(&foreground.progress);
        if (r >= 0 && foreground.record)
                r = print_result(foreground.record, options.json);
        if (r < 0 || !foreground.record) {
                (void) fprintf(stderr, "tierprobe run: the result could not be printed: %s\n",
                               strerror(r < 0 ? -r : ENOMEM));
                return CLI_UNKNOWN;
        }
        return cli_status(foreground.record->judgement.verdict);
}
