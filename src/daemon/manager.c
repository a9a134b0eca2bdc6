/* SPDX-License-Identifier: Apache-2.0 */
/* The root of the daemon: owns the loop, the state, the targets and the server; starts, reloads and stops. */

#include "manager.h"

#include "confirm.h"
#include "journal.h"
#include "ledger-fill.h"
#include "looks.h"
#include "mount-watch.h"
#include "parts.h"
#include "paths.h"
#include "plan.h"
#include "publish.h"
#include "readers.h"
#include "reload.h"
#include "start.h"
#include "state-directory.h"
#include "targets.h"
#include "trim.h"
#include "web.h"
#include "yield.h"

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

struct Manager {
        sd_event *event;
        ConfigOptions options;
        Parts parts;
        Reload *reload;
        Publish *publish;
        MountWatch mounts;
        sd_event_source *idle; /* goes through the samples of before the start */
        Service service;
};

/* ---- readers and the service manager ---- */

static void next_generation(Manager *manager)
{
        manager->parts.generation++;
        if (manager->parts.http)
                http_server_follow(manager->parts.http);
}

/* Something a reader would see has changed. */
static void changed(Manager *manager)
{
        ServiceView view;

        next_generation(manager);
        if (!manager->parts.http || runs_are_stopping(manager->parts.runs))
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
        ssize_t n = count_set_aside_at(manager->parts.state_fd);

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
        if (target_hangs(target))
                runs_set_ready(parts->runs, target);
        else if (!target_is_waiting(target))
                start_take_look(parts, target);
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

        target->give_way = (GiveWay){ 0 };
        ledger_file_set_device(manager->parts.ledger, record->id, record->device);
        past_keep(manager->parts.past, record);
}

static void on_run_ended(Target *target, RunRecord *record, void *userdata)
{
        Manager *manager = userdata;

        if (record->swept)
                log_info("target %s: removed %u empty file%s that a killed test had left in %s",
                         record->target, record->swept, record->swept == 1 ? "" : "s", record->path);
        /* What told nothing may be tried again at once, as far as the budget goes. */
        ledger_file_settle(manager->parts.ledger, record->id, record->bytes_written,
                           record->judgement.verdict != VERDICT_INCONCLUSIVE);
        if (target)
                confirm_mark(&manager->parts, target, record);
        journal_run_ended(record);
        past_add(manager->parts.past, record);
        if (target) {
                plan_run(&manager->parts, target);
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

        int r = start_run(&manager->parts,
                          &(StartOrder){ .target = name,
                                         .trigger = missed ? TRIGGER_START : TRIGGER_SCHEDULE,
                                         .who = missed ? "missed" : "schedule",
                                         .together = manager->parts.config->schedule.together },
                          &answer);
        if (r < 0)
                log_error("target %s: the scheduled run could not start: %s", name, strerror(-r));
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
        start_look_for_space(parts, target);
        verdicts_update_if_old(parts->verdicts, target, standing_of(parts, target), parts->config);
        if (!samples_read(&target->samples, &snapshot)) {
                samples_work(&target->samples);
                return;
        }
        const RunRecord *run = runs_of(parts->runs, target), *at_work = runs_at_work(parts->runs, target);
        const char *test = at_work                                    ? at_work->id
                           : runs_others_at_work(parts->runs, target) ? RUN_OF_OTHERS
                                                                      : NULL;
        samples_keep(&target->samples, &snapshot, test);
        if (!run || run != at_work)
                return;
        ledger_file_count(parts->ledger, run->id, run->bytes_written);
        yield_run(parts->runs, target, run, &parts->roots, &parts->config->guard);
}

/* Whenever the loop has nothing else to do. */
static int on_idle(sd_event_source *source, void *userdata)
{
        const Parts *parts = &((Manager *) userdata)->parts;

        for (size_t i = 0; i < parts->n_targets; i++)
                if (samples_observe_more(&parts->targets[i]->samples))
                        return 0;
        return sd_event_source_set_enabled(source, SD_EVENT_OFF);
}

static void publish(Manager *manager)
{
        const Parts *parts = &manager->parts;
        const TargetConfig *targets[CONFIG_MAX_TARGETS];
        Verdict verdicts[CONFIG_MAX_TARGETS];

        for (size_t i = 0; i < parts->n_targets; i++) {
                targets[i] = parts->targets[i]->config;
                verdicts[i] = verdicts_of(parts->verdicts, parts->targets[i])->verdict;
        }
        publish_verdicts(manager->publish, parts->config->feature_file, targets, verdicts, parts->n_targets,
                         parts->state_fd);
}

static void on_tick(void *userdata)
{
        Manager *manager = userdata;
        const Parts *parts = &manager->parts;

        for (size_t i = 0; i < parts->n_targets; i++)
                take_sample(parts, parts->targets[i]);
        next_generation(manager);
        if (timetable_follow_clock(parts->timetable))
                changed(manager);
        (void) probe_reap_abandoned();
        past_work(parts->past);
        if (past_settle(parts->past))
                for (size_t i = 0; i < parts->n_targets; i++) {
                        plan_run(parts, parts->targets[i]);
                        update_verdict(parts, parts->targets[i]);
                }
        ledger_file_work(parts->ledger);
        publish(manager);
}

static void on_mounts_changed(void *userdata)
{
        const Parts *parts = &((Manager *) userdata)->parts;

        for (size_t i = 0; i < parts->n_targets; i++)
                (void) target_inspect(parts->targets[i]);
}

/* ---- putting a configuration in force ---- */

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
                plan_run(&manager->parts, target);
                update_verdict(parts, target);
                samples_observe(&target->samples, parts->config->limits.value[CRITERION_WRITE_LATENCY]);
                (void) target_inspect(target);
        }
        (void) sd_event_source_set_enabled(manager->idle, SD_EVENT_ON);
}

static int start_ticking(Manager *manager)
{
        return ticker_start(&manager->parts.ticker, manager->event, manager->parts.config->sample_interval_ns,
                            &(TickerEvents){ .userdata = manager, .tick = on_tick });
}

static void set_config_error(Parts *parts, const char *error)
{
        free(parts->config_error);
        parts->config_error = error ? strdup(error) : NULL;
        if (error && !parts->config_error)
                log_error("why the configuration was refused is not shown: out of memory");
}

static void on_loaded(Config *config, HttpAccess *access, void *userdata)
{
        Manager *manager = userdata;

        if (runs_are_stopping(manager->parts.runs)) { /* too late */
                config_free(config);
                http_access_unref(access);
                return;
        }
        _cleanup_(config_freep) Config *before = manager->parts.config;
        if (web_is_same(before, config)) {
                http_server_set_access(manager->parts.http, access);
        } else {
                http_access_unref(access);
                log_warning(
                        "[http] listen or TLS has changed: that takes a restart of tierprobed; until then it "
                        "serves as before");
        }
        targets_keep(&manager->parts, config);
        manager->parts.config = config;
        set_config_error(&manager->parts, NULL);
        int r = targets_add(&manager->parts,
                            &(TargetEvents){ .userdata = manager, .inspected = on_inspected });
        if (r < 0)
                log_error("not every target of the new configuration could be made: %s", strerror(-r));
        begin_targets(manager);
        (void) start_ticking(manager);
        journal_reloaded(manager->parts.n_targets);
        changed(manager);
}

static void on_refused(const char *error, void *userdata)
{
        Manager *manager = userdata;

        journal_config_invalid(error);
        log_warning("the configuration stays as it was");
        set_config_error(&manager->parts, error);
        changed(manager);
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

/* ---- life ---- */

static int make_parts(Manager *manager)
{
        Parts *parts = &manager->parts;

        int r = looks_new(&manager->parts.looks, manager->event, true);
        if (r >= 0)
                r = past_new(&parts->past, manager->parts.state_fd, &parts->config->keep,
                             &(PastEvents){ .userdata = manager, .interrupted = on_interrupted });
        if (r >= 0)
                r = ledger_file_new(&parts->ledger, manager->event, manager->parts.state_fd);
        if (r >= 0)
                r = runs_new(&parts->runs, manager->event, &manager->parts.roots,
                             &(RunsEvents){ .userdata = manager,
                                            .changed = on_runs_changed,
                                            .started = on_run_started,
                                            .ended = on_run_ended,
                                            .gone = on_run_gone });
        if (r >= 0)
                r = verdicts_new(&parts->verdicts,
                                 &(VerdictsEvents){ .userdata = manager, .changed = on_verdict_changed });
        if (r >= 0)
                r = publish_new(&manager->publish);
        if (r >= 0)
                r = timetable_new(&parts->timetable, manager->event,
                                  &(TimetableEvents){ .userdata = manager, .due = on_due });
        if (r >= 0)
                r = reload_new(
                        &manager->reload, manager->event, manager->parts.looks, &parts->roots,
                        &manager->options, &parts->config,
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
                              .parts.roots = *roots,
                              .parts.state_fd = -1,
                              .parts.config = config,
                              .mounts = MOUNT_WATCH_NONE,
                              .parts.started_real_ns = (int64_t) clock_ns(CLOCK_REALTIME),
                              .parts.started_ns = clock_ns(CLOCK_MONOTONIC) };
        manager->service = readers_service(&manager->parts);
        int r = sd_event_default(&manager->event);
        if (r >= 0)
                r = state_directory_open(state_dir, &manager->parts.state_fd);
        if (r < 0)
                return r;
        r = sd_event_add_defer(manager->event, &manager->idle, on_idle, manager);
        if (r >= 0)
                r = sd_event_source_set_priority(manager->idle, SD_EVENT_PRIORITY_IDLE);
        if (r >= 0)
                r = make_parts(manager);
        if (r < 0) {
                log_error("%s: cannot start: %s", state_dir, strerror(-r));
                return r;
        }
        r = targets_add(&manager->parts, &(TargetEvents){ .userdata = manager, .inspected = on_inspected });
        if (r < 0)
                return r;
        begin_targets(manager);
        ledger_fill(&manager->parts);
        *ret = TAKE_PTR(manager);
        return 0;
}

Manager *manager_free(Manager *manager)
{
        if (!manager)
                return NULL;
        http_server_free(manager->parts.http);
        mount_watch_stop(&manager->mounts);
        ticker_stop(&manager->parts.ticker);
        sd_event_source_unref(manager->idle);
        reload_free(manager->reload);
        publish_free(manager->publish);
        runs_free(manager->parts.runs);
        timetable_free(manager->parts.timetable);
        verdicts_free(manager->parts.verdicts);
        for (size_t i = 0; i < manager->parts.n_targets; i++)
                target_free(manager->parts.targets[i]);
        looks_free(manager->parts.looks);
        past_free(manager->parts.past);
        ledger_file_free(manager->parts.ledger);
        close_fdp(&manager->parts.state_fd);
        sd_event_unref(manager->event);
        config_free(manager->parts.config);
        free(manager->parts.config_error);
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

        int r = path_check_new(&paths, manager->event, manager->parts.looks, &manager->parts.roots,
                               manager->parts.config, NULL, false, START_LOOK_NS, on_checked, &check);
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

        int r = http_server_new(&manager->parts.http, manager->event, &options, &error);
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
                mount_watch_start(&manager->mounts, manager->event, manager->parts.roots.procfs,
                                  on_mounts_changed, manager);
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
        char addresses[1024];
        journal_started(manager->parts.n_targets,
                        web_addresses(manager->parts.http, addresses, sizeof addresses));
        (void) sd_notify(0, "READY=1");
        changed(manager);
        r = sd_event_loop(manager->event);
        if (r < 0) {
                log_error("the event loop failed: %s", strerror(-r));
                (void) sd_notifyf(0, "STOPPING=1\nERRNO=%d", -r);
        }
        return r;
}
