/* SPDX-License-Identifier: Apache-2.0 */
/* The root of the daemon: owns the loop, the state, the targets and the server; starts, reloads and stops. */

#include "manager.h"

#include "journal.h"
#include "looks.h"
#include "mount-watch.h"
#include "parts.h"
#include "paths.h"
#include "readers.h"
#include "reload.h"
#include "start.h"
#include "state-directory.h"
#include "trim.h"
#include "web.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/file.h"
#include "tierprobe/http.h"
#include "tierprobe/log.h"
#include "tierprobe/signals.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include <systemd/sd-daemon.h>

#define TRIM_AFTER_US (3 * 1000 * 1000)
#define START_LOOK_NS NS_PER_S
#define AFTER_ABORT_NS (3600 * NS_PER_S)

struct Manager {
        sd_event *event;
        ConfigOptions options;
        DeviceRoots roots;
        int state_fd; /* the state directory, locked */
        Looks *looks;
        Parts parts;
        Reload *reload;
        MountWatch mounts;
        HttpServer *http;
        Service service;
        uint64_t generation; /* counts what a reader would see */
        int64_t started_real_ns;
        uint64_t started_ns;
};

/* ---- readers and the service manager ---- */

/* Something a reader would see has changed. */
static void changed(Manager *manager)
{
        ServiceView view;

        manager->generation++;
        if (!manager->http || runs_are_stopping(manager->parts.runs))
                return;
        readers_view_service(&manager->parts, &view);
        (void) sd_notifyf(0, "STATUS=%s, verdict %s, %zu target%s", view.running ? "running" : "idle",
                          verdict_to_string(view.verdict), view.n_targets, view.n_targets == 1 ? "" : "s");
}

/* Ends the loop if it is to end and nothing holds it any more. */
static void end_if_done(Manager *manager)
{
        if (runs_are_stopping(manager->parts.runs) && runs_count(manager->parts.runs) == 0)
                (void) sd_event_exit(manager->event, 0);
}

/* ---- what the parts say ---- */

static const PastStanding *standing_of(const Parts *parts, const Target *target)
{
        return past_standing(parts->past, target->config->name);
}

static void update_verdict(const Parts *parts, const Target *target)
{
        verdicts_update(parts->verdicts, target, standing_of(parts, target), parts->config);
}

/* An official run that was aborted is made up for, but whoever aborted it is left in peace for a while. */
static int64_t not_before_real_ns(const Parts *parts, const Target *target)
{
        const PastRun *last = past_last_run(parts->past, target->config->name);
        uint64_t interval_ns = parts->config->schedule.interval_ns;

        if (!last || last->state != RUN_ABORTED || strcmp(last->profile, target->config->profile) != 0)
                return 0;
        return last->finished_real_ns +
               (int64_t) (interval_ns < AFTER_ABORT_NS ? interval_ns : AFTER_ABORT_NS);
}

/* By the run that stands: one of another profile, or that was cut, is not what the schedule is for. */
static void plan(Manager *manager, Target *target)
{
        const Parts *parts = &manager->parts;
        const PastStanding *standing = standing_of(parts, target);
        int64_t since_ns = samples_since_real_ns(&target->samples);
        /* A new target is tested one interval after it came: nobody expects ten gigabytes of writes from an
         * installation. Not one after this start, or a daemon restarted every day would never test. */
        int64_t known_since_ns =
                since_ns && since_ns < manager->started_real_ns ? since_ns : manager->started_real_ns;

        timetable_plan(parts->timetable, target, target->config->name,
                       standing && standing->run ? past_run_begin_real_ns(standing->run) : known_since_ns,
                       not_before_real_ns(parts, target));
}

static void say_verdict(const TargetVerdict *verdict, char buf[64])
{
        (void) snprintf(buf, 64, "%s%s%s", verdict_to_string(verdict->verdict),
                        verdict->stale ? ", stale" : "", verdict->degraded ? ", degraded" : "");
}

static void on_verdict_changed(const Target *target, const TargetVerdict *before, const TargetVerdict *now,
                               void *userdata)
{
        char was[64], is[64];

        say_verdict(before, was);
        say_verdict(now, is);
        journal_verdict_changed(target->config->name, was, is, &now->warnings);
        changed(userdata);
}

static void count_set_aside(Manager *manager)
{
        ssize_t n = count_set_aside_at(manager->state_fd);

        manager->parts.n_set_aside = n < 0 ? 0 : (size_t) n;
}

static void reopen_ring(Manager *manager, Target *target)
{
        samples_reopen(&target->samples, config_ring_capacity(manager->parts.config));
        count_set_aside(manager);
}

static void on_inspected(Target *target, void *userdata)
{
        Manager *manager = userdata;
        const Parts *parts = &manager->parts;

        if (!target->samples.ring) /* the state directory may be well again */
                reopen_ring(manager, target);
        /* A run that waits begins with the newest facts. */
        if (!target_is_waiting(target) || target_hangs(target))
                runs_set_ready(parts->runs, target);
        update_verdict(parts, target);
        changed(manager);
        runs_dispatch(parts->runs);
}

static void on_runs_changed(void *userdata)
{
        changed(userdata);
}

static void on_run_started(Target *target, const RunRecord *record, void *userdata)
{
        Manager *manager = userdata;

        (void) target;
        ledger_file_set_device(manager->parts.ledger, record->id, record->device);
        past_keep(manager->parts.past, record);
}

static void on_run_ended(Target *target, const RunRecord *record, void *userdata)
{
        Manager *manager = userdata;

        journal_run_ended(record);
        ledger_file_settle(manager->parts.ledger, record->id, record->bytes_written);
        past_add(manager->parts.past, record);
        if (target) {
                plan(manager, target);
                update_verdict(&manager->parts, target);
        }
        changed(manager);
        if (target && !runs_are_stopping(manager->parts.runs))
                (void) target_inspect(target); /* its free space has changed */
        end_if_done(manager);
}

static void on_run_gone(Target *target, void *userdata)
{
        Manager *manager = userdata;

        if (!runs_are_stopping(manager->parts.runs))
                (void) target_inspect(target); /* only now is its space free again */
}

static void on_due(Target *target, bool missed, void *userdata)
{
        Manager *manager = userdata;
        const char *name = target->config->name;
        StartAnswer answer;

        int r = start_run(&manager->parts, name, NULL, missed ? TRIGGER_START : TRIGGER_SCHEDULE,
                          missed ? "missed" : "schedule", &answer);
        if (r < 0)
                log_error("target %s: the scheduled run could not start: %s", name, strerror(-r));
        else if (answer.result != START_ACCEPTED)
                journal_run_refused(name, answer.detail);
        /* The end of a run plans the next one; without one, it is tried again. */
        if (r < 0 || answer.result != START_ACCEPTED)
                timetable_retry(manager->parts.timetable, target,
                                r < 0 ? 0 : answer.retry_after_s * NS_PER_S);
        changed(manager);
}

static void on_interrupted(const PastRun *run, void *userdata)
{
        (void) userdata;
        journal_run_interrupted(run);
}

static void take_sample(const Parts *parts, Target *target)
{
        Snapshot snapshot;

        target_inspect_if_old(target);
        verdicts_update_if_old(parts->verdicts, target, standing_of(parts, target), parts->config);
        if (!samples_read(&target->samples, &snapshot))
                return;
        const RunRecord *run = runs_of(parts->runs, target);
        bool is_running = run && run->state == RUN_RUNNING;
        samples_keep(&target->samples, &snapshot, is_running ? run->id : NULL);
        if (is_running)
                ledger_file_count(parts->ledger, run->id, run->bytes_written);
}

static void on_tick(void *userdata)
{
        Manager *manager = userdata;
        const Parts *parts = &manager->parts;

        for (size_t i = 0; i < parts->n_targets; i++)
                take_sample(parts, parts->targets[i]);
        manager->generation++;
        if (timetable_follow_clock(parts->timetable))
                changed(manager);
        (void) probe_reap_abandoned();
        past_work(parts->past);
        ledger_file_work(parts->ledger);
}

static void on_mounts_changed(void *userdata)
{
        const Parts *parts = &((Manager *) userdata)->parts;

        for (size_t i = 0; i < parts->n_targets; i++)
                (void) target_inspect(parts->targets[i]);
}

/* ---- putting a configuration in force ---- */

static int add_target(Manager *manager, const TargetConfig *config)
{
        Parts *parts = &manager->parts;

        int r = target_new(&parts->targets[parts->n_targets], config, &manager->roots, manager->looks,
                           manager->state_fd, config_ring_capacity(parts->config),
                           &(TargetEvents){ .userdata = manager, .inspected = on_inspected });
        if (r >= 0)
                parts->n_targets++;
        return r;
}

static void drop_target(Parts *parts, Target *target)
{
        runs_drop(parts->runs, target);
        timetable_drop(parts->timetable, target);
        verdicts_drop(parts->verdicts, target);
        target_free(target);
}

/* Drops the targets that CONFIG has not; the others keep their samples, runs and device. */
static void keep_targets(Parts *parts, const Config *config)
{
        bool rings_differ = config_ring_capacity(parts->config) != config_ring_capacity(config);
        size_t n = 0;

        for (size_t i = 0; i < parts->n_targets; i++) {
                Target *target = parts->targets[i];
                const TargetConfig *same = paths_find_same(config, target->config);

                if (!same) {
                        drop_target(parts, target);
                        continue;
                }
                target->config = same;
                if (rings_differ)
                        samples_reopen(&target->samples, config_ring_capacity(config));
                parts->targets[n++] = target;
        }
        parts->n_targets = n;
}

/* Makes the targets that the configuration has more, and brings all into its order. */
static int add_targets(Manager *manager)
{
        Parts *parts = &manager->parts;
        const Config *config = parts->config;

        for (size_t i = 0; i < config->n_targets; i++) {
                size_t at = i;

                while (at < parts->n_targets && parts->targets[at]->config != &config->targets[i])
                        at++;
                if (at == parts->n_targets) {
                        int r = add_target(manager, &config->targets[i]);
                        if (r < 0)
                                return r;
                }
                Target *target = parts->targets[at];
                memmove(parts->targets + i + 1, parts->targets + i, (at - i) * sizeof(Target *));
                parts->targets[i] = target;
        }
        return 0;
}

/* Finds what is kept of the targets, plans their runs, looks at their paths. */
static void begin_targets(Manager *manager)
{
        Parts *parts = &manager->parts;
        PastSubject subjects[CONFIG_MAX_TARGETS];

        for (size_t i = 0; i < parts->n_targets; i++)
                subjects[i] = (PastSubject){ .target = parts->targets[i]->config->name,
                                             .path = parts->targets[i]->config->path,
                                             .profile = parts->targets[i]->config->profile };
        past_follow(parts->past, subjects, parts->n_targets, &parts->config->keep);
        count_set_aside(manager);
        timetable_set_rules(parts->timetable, &parts->config->schedule);
        for (size_t i = 0; i < parts->n_targets; i++) {
                Target *target = parts->targets[i];
                const char *home = past_mount_point(parts->past, target->config->name);

                if (!target->home && home)
                        target_set_home(target, home);
                plan(manager, target);
                update_verdict(parts, target);
                (void) target_inspect(target);
        }
}

static int start_ticking(Manager *manager)
{
        return ticker_start(&manager->parts.ticker, manager->event, manager->parts.config->sample_interval_ns,
                            &(TickerEvents){ .userdata = manager, .tick = on_tick });
}

static void on_loaded(Config *config, HttpAccess *access, void *userdata)
{
        Manager *manager = userdata;
        _cleanup_(config_freep) Config *before = manager->parts.config;

        if (runs_are_stopping(manager->parts.runs)) {
                before = config; /* too late */
                http_access_unref(access);
                return;
        }
        if (web_is_same(before, config)) {
                http_server_set_access(manager->http, access);
        } else {
                http_access_unref(access);
                log_warning(
                        "[http] listen or TLS has changed: that takes a restart of tierprobed; until then it "
                        "serves as before");
        }
        keep_targets(&manager->parts, config);
        manager->parts.config = config;
        int r = add_targets(manager);
        if (r < 0)
                log_error("not every target of the new configuration could be made: %s", strerror(-r));
        begin_targets(manager);
        (void) start_ticking(manager);
        journal_reloaded(manager->parts.n_targets);
        changed(manager);
}

static void on_refused(const char *error, void *userdata)
{
        (void) userdata;
        journal_config_invalid(error);
        log_warning("the configuration stays as it was");
}

/* ---- signals ---- */

static int on_reload(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
        Manager *manager = userdata;

        (void) source;
        (void) info;
        if (!runs_are_stopping(manager->parts.runs))
                reload_ask(manager->reload);
        return 0;
}

static int on_stop(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
        Manager *manager = userdata;

        (void) source;
        if (runs_are_stopping(manager->parts.runs))
                return 0;
        log_info("stopping on %s", info->ssi_signo == SIGINT ? "SIGINT" : "SIGTERM");
        (void) sd_notify(0, "STOPPING=1");
        runs_stop(manager->parts.runs, "the daemon was stopped in the middle of the run");
        end_if_done(manager);
        return 0;
}

/* ---- what http asks ---- */

static void get(void *userdata, ServiceView *ret)
{
        const Manager *manager = userdata;

        readers_view_service(&manager->parts, ret);
        ret->started_real_ns = manager->started_real_ns;
        ret->uptime_ns = clock_ns(CLOCK_MONOTONIC) - manager->started_ns;
        ret->pid = getpid();
        if (manager->http)
                ret->certificate_expiry_real_ns = http_server_certificate_expiry_real_ns(manager->http);
}

static bool get_target(void *userdata, size_t index, TargetView *ret)
{
        const Parts *parts = &((const Manager *) userdata)->parts;

        if (index >= parts->n_targets)
                return false;
        readers_view_target(parts, parts->targets[index], ret);
        return true;
}

static uint64_t get_generation(void *userdata)
{
        return ((const Manager *) userdata)->generation;
}

static int ask_for_run(void *userdata, const char *target, const char *profile, RunTrigger trigger,
                       const char *who, StartAnswer *ret)
{
        Manager *manager = userdata;
        int r = start_run(&manager->parts, target, profile, trigger, who, ret);

        if (r >= 0 && ret->result == START_ACCEPTED)
                changed(manager);
        return r;
}

static AbortResult abort_run(void *userdata, const char *id, const char *who)
{
        const Parts *parts = &((const Manager *) userdata)->parts;
        char detail[160];

        (void) snprintf(detail, sizeof detail, "Aborted by %s", who);
        if (runs_abort(parts->runs, id, detail))
                return ABORT_ACCEPTED;
        return past_has(parts->past, id) ? ABORT_ENDED : ABORT_NO_RUN;
}

static const RunRecord *current_run(void *userdata, size_t index)
{
        return runs_at(((const Manager *) userdata)->parts.runs, index);
}

static const RunRecord *find_current(void *userdata, const char *id)
{
        return runs_find(((const Manager *) userdata)->parts.runs, id);
}

static const char *older_run(void *userdata, const char *before)
{
        return past_older(((const Manager *) userdata)->parts.past, before);
}

static int read_run(void *userdata, const char *id, PastRun **ret, char **ret_text, size_t *ret_size)
{
        return past_read(((const Manager *) userdata)->parts.past, id, ret, ret_text, ret_size);
}

/* ---- life ---- */

/* A ledger that begins anew knows at least of the runs that are kept. */
static void fill_ledger(const Parts *parts)
{
        enum { MAX_DISKS = 64 };
        char before[RUN_ID_SIZE];
        LedgerState state = ledger_file_state(parts->ledger);
        _cleanup_free_ DiskKey *disks = calloc(MAX_DISKS, sizeof *disks);

        if (!disks || (state != LEDGER_MISSING && state != LEDGER_DAMAGED))
                return;
        for (const char *id = past_older(parts->past, NULL); id; id = past_older(parts->past, before)) {
                _cleanup_(past_run_freep) PastRun *run = NULL;

                (void) snprintf(before, sizeof before, "%s", id);
                if (past_read(parts->past, before, &run, NULL, NULL) < 0 || run->bytes_written == 0)
                        continue;
                ledger_file_add(parts->ledger, (const DiskKey *) disks, past_run_disks(run, disks, MAX_DISKS),
                                run->bytes_written, run->finished_real_ns);
        }
}

static int make_parts(Manager *manager)
{
        Parts *parts = &manager->parts;

        int r = looks_new(&manager->looks, manager->event);
        if (r >= 0)
                r = past_new(&parts->past, manager->state_fd, &parts->config->keep,
                             &(PastEvents){ .userdata = manager, .interrupted = on_interrupted });
        if (r >= 0)
                r = ledger_file_new(&parts->ledger, manager->event, manager->state_fd);
        if (r >= 0)
                r = runs_new(&parts->runs, manager->event, &manager->roots,
                             &(RunsEvents){ .userdata = manager,
                                            .changed = on_runs_changed,
                                            .started = on_run_started,
                                            .ended = on_run_ended,
                                            .gone = on_run_gone });
        if (r >= 0)
                r = verdicts_new(&parts->verdicts,
                                 &(VerdictsEvents){ .userdata = manager, .changed = on_verdict_changed });
        if (r >= 0)
                r = timetable_new(&parts->timetable, manager->event,
                                  &(TimetableEvents){ .userdata = manager, .due = on_due });
        if (r >= 0)
                r = reload_new(
                        &manager->reload, manager->event, manager->looks, &manager->options, &parts->config,
                        &(ReloadEvents){ .userdata = manager, .loaded = on_loaded, .refused = on_refused });
        return r;
}

int manager_new(Manager **ret, const ConfigOptions *options, Config *config, const DeviceRoots *roots,
                const char *state_dir)
{
        _cleanup_(manager_freep) Manager *manager = calloc(1, sizeof *manager);

        if (!manager) {
                config_free(config);
                return -ENOMEM;
        }
        *manager = (Manager){ .options = *options,
                              .roots = *roots,
                              .state_fd = -1,
                              .parts.config = config,
                              .mounts = MOUNT_WATCH_NONE,
                              .started_real_ns = (int64_t) clock_ns(CLOCK_REALTIME),
                              .started_ns = clock_ns(CLOCK_MONOTONIC) };
        manager->service = (Service){ .userdata = manager,
                                      .get = get,
                                      .get_target = get_target,
                                      .generation = get_generation,
                                      .start_run = ask_for_run,
                                      .abort_run = abort_run,
                                      .current_run = current_run,
                                      .find_current = find_current,
                                      .older_run = older_run,
                                      .read_run = read_run };
        int r = sd_event_default(&manager->event);
        if (r >= 0)
                r = state_directory_open(state_dir, &manager->state_fd);
        if (r < 0)
                return r;
        r = make_parts(manager);
        if (r < 0) {
                log_error("%s: cannot start: %s", state_dir, strerror(-r));
                return r;
        }
        r = add_targets(manager);
        if (r < 0)
                return r;
        begin_targets(manager);
        fill_ledger(&manager->parts);
        *ret = TAKE_PTR(manager);
        return 0;
}

Manager *manager_free(Manager *manager)
{
        if (!manager)
                return NULL;
        http_server_free(manager->http);
        mount_watch_stop(&manager->mounts);
        ticker_stop(&manager->parts.ticker);
        reload_free(manager->reload);
        runs_free(manager->parts.runs);
        timetable_free(manager->parts.timetable);
        verdicts_free(manager->parts.verdicts);
        for (size_t i = 0; i < manager->parts.n_targets; i++)
                target_free(manager->parts.targets[i]);
        looks_free(manager->looks);
        past_free(manager->parts.past);
        ledger_file_free(manager->parts.ledger);
        close_fdp(&manager->state_fd);
        sd_event_unref(manager->event);
        config_free(manager->parts.config);
        free(manager);
        return NULL;
}

void manager_freep(Manager **manager)
{
        manager_free(*manager);
}

typedef struct Check {
        bool over, faults;
} Check;

static void on_checked(const char *error, void *userdata)
{
        Check *check = userdata;

        check->over = true;
        check->faults = error != NULL;
        if (error)
                journal_config_invalid(error);
}

int manager_check_paths(Manager *manager)
{
        _cleanup_(path_check_freep) PathCheck *paths = NULL;
        Check check = { 0 };

        int r = path_check_new(&paths, manager->event, manager->looks, manager->parts.config, NULL, false,
                               START_LOOK_NS, on_checked, &check);
        while (r >= 0 && !check.over)
                r = sd_event_run(manager->event, UINT64_MAX);
        return r < 0 ? r : check.faults ? -EINVAL : 0;
}

static int on_settled(sd_event_source *source, uint64_t usec, void *userdata)
{
        (void) source;
        (void) usec;
        (void) userdata;
        memory_trim();
        return 0;
}

static int listen_and_watch(Manager *manager)
{
        _cleanup_free_ char *error = NULL;
        const HttpOptions options = web_options(manager->parts.config, &manager->service);

        int r = http_server_new(&manager->http, manager->event, &options, &error);
        if (r < 0) {
                log_error("%s", error ? error : strerror(-r));
                return r;
        }
        r = sd_event_add_signal(manager->event, NULL, SIGTERM, on_stop, manager);
        if (r >= 0 && !signal_is_ignored(SIGINT))
                r = sd_event_add_signal(manager->event, NULL, SIGINT, on_stop, manager);
        if (r >= 0)
                r = sd_event_add_signal(manager->event, NULL, SIGHUP, on_reload, manager);
        if (r >= 0)
                r = sd_event_set_watchdog(manager->event, true);
        if (r >= 0)
                r = start_ticking(manager);
        if (r >= 0)
                r = sd_event_add_time_relative(manager->event, NULL, CLOCK_MONOTONIC, TRIM_AFTER_US,
                                               TRIM_AFTER_US, on_settled, NULL);
        if (r >= 0)
                mount_watch_start(&manager->mounts, manager->event, manager->roots.procfs, on_mounts_changed,
                                  manager);
        return r;
}

int manager_run(Manager *manager)
{
        int r = listen_and_watch(manager);

        if (r < 0)
                return r;
        /* The first sample is taken before anyone is told to come. */
        r = sd_event_run(manager->event, 0);
        if (r < 0)
                return r;
        journal_started(manager->parts.n_targets, http_server_address(manager->http, 0));
        (void) sd_notify(0, "READY=1");
        changed(manager);
        r = sd_event_loop(manager->event);
        if (r < 0) {
                log_error("the event loop failed: %s", strerror(-r));
                (void) sd_notifyf(0, "STOPPING=1\nERRNO=%d", -r);
        }
        return r;
}
