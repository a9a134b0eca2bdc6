/* SPDX-License-Identifier: Apache-2.0 */
/* The root of the daemon: owns the loop, the state, the targets and the server; starts, reloads and stops. */

#include "manager.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/file.h"
#include "tierprobe/log.h"
#include "tierprobe/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <systemd/sd-daemon.h>

#define TICK_ACCURACY_US 1 /* 0 would mean 250 ms; nothing here is worth waiting for together */
#define TRIM_AFTER_US (3 * 1000 * 1000)
#define START_INSPECTION_NS (5 * NS_PER_S)

/* ---- readers and the service manager ---- */

static void notify_status(Manager *manager)
{
        ServiceView view;

        manager->service.get(manager, &view);
        (void) sd_notifyf(0, "STATUS=%s, verdict %s, %zu target%s", view.running ? "running" : "idle",
                          verdict_to_string(view.verdict), view.n_targets, view.n_targets == 1 ? "" : "s");
}

void manager_changed(Manager *manager)
{
        manager->generation++;
        if (!manager->http)
                return;
        if (manager->stopping) {
                if (!runs_active(manager))
                        (void) sd_event_exit(manager->event, 0);
                return;
        }
        notify_status(manager);
}

/* ---- samples ---- */

static int on_tick(sd_event_source *source, uint64_t usec, void *userdata)
{
        Manager *manager = userdata;
        uint64_t interval_ns = manager->config->sample_interval_ns;
        uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

        (void) usec;
        histogram_add(manager->lateness, now_ns > manager->next_tick_ns ? now_ns - manager->next_tick_ns : 0);
        for (size_t i = 0; i < manager->n_targets; i++)
                target_tick(manager->targets[i]);
        manager->generation++;
        timetable_follow_clock(manager);
        (void) probe_reap_abandoned();
        past_work(manager->past);

        /* Absolute times: what one tick is late, the next does not inherit. */
        manager->next_tick_ns += interval_ns;
        if (manager->next_tick_ns <= now_ns) {
                uint64_t missed = (now_ns - manager->next_tick_ns) / interval_ns + 1;

                /* What is left of the interval must be long enough for a figure. */
                if (manager->next_tick_ns + missed * interval_ns - now_ns < interval_ns / 2)
                        missed++;

                manager->samples_missed += missed;
                manager->next_tick_ns += missed * interval_ns;
        }
        int r = sd_event_source_set_time(source, manager->next_tick_ns / NS_PER_US);
        return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

int manager_start_ticking(Manager *manager)
{
        manager->tick_timer = sd_event_source_disable_unref(manager->tick_timer);
        manager->next_tick_ns = clock_ns(CLOCK_MONOTONIC);
        int r = sd_event_add_time(manager->event, &manager->tick_timer, CLOCK_MONOTONIC,
                                  manager->next_tick_ns / NS_PER_US, TICK_ACCURACY_US, on_tick, manager);
        if (r < 0)
                return r;
        (void) sd_event_source_set_description(manager->tick_timer, "sample-tick");
        /* A sampler that dies unnoticed is the worst end: better none at all. */
        (void) sd_event_source_set_exit_on_failure(manager->tick_timer, true);
        return sd_event_source_set_priority(manager->tick_timer, SD_EVENT_PRIORITY_IMPORTANT);
}

static int on_mounts_changed(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        Manager *manager = userdata;

        (void) source;
        (void) fd;
        (void) revents;
        for (size_t i = 0; i < manager->n_targets; i++)
                target_inspect(manager->targets[i]);
        return 0;
}

static void watch_mounts(Manager *manager)
{
        _cleanup_free_ char *path = path_format("%s/self/mountinfo", manager->roots.procfs);

        manager->mounts_fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        if (manager->mounts_fd < 0)
                return;
        /* A recorded tree's plain file cannot be polled; then the regular inspections have to do. */
        int r = sd_event_add_io(manager->event, &manager->mounts_source, manager->mounts_fd, EPOLLPRI,
                                on_mounts_changed, manager);
        if (r >= 0) /* hosts full of containers mount all day long */
                (void) sd_event_source_set_ratelimit(manager->mounts_source, 2 * 1000 * 1000, 1);
}

/* ---- targets ---- */

/* Asks a child about the path and waits: only at the start, when there is nothing to hold up yet. */
static void inspect_now(Target *target)
{
        PathFacts facts;
        int r = path_inspect(target->config->path, START_INSPECTION_NS, &facts);

        if (r < 0)
                facts = (PathFacts){ .error = -r };
        target_take_facts(target, &facts);
}

int manager_add_target(Manager *manager, const TargetConfig *config)
{
        Target *target = NULL;

        int r = target_new(manager, config, &target);
        if (r < 0)
                return r;
        manager->targets[manager->n_targets++] = target;
        return 0;
}

/* ---- stopping ---- */

static int on_stop(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
        Manager *manager = userdata;

        (void) source;
        if (manager->stopping)
                return 0;
        log_info("stopping on %s", info->ssi_signo == SIGINT ? "SIGINT" : "SIGTERM");
        (void) sd_notify(0, "STOPPING=1");
        manager->stopping = true;
        runs_abort_all(manager, "the daemon was stopped in the middle of the run");
        if (!runs_active(manager))
                return sd_event_exit(manager->event, 0);
        return 0;
}

/* ---- past runs ---- */

static void on_interrupted(const PastRun *run, void *userdata)
{
        (void) userdata;
        journal_run_interrupted(run);
}

void manager_follow_past(Manager *manager)
{
        PastSubject subjects[CONFIG_MAX_TARGETS];

        for (size_t i = 0; i < manager->n_targets; i++)
                subjects[i] = (PastSubject){ .target = manager->targets[i]->config->name,
                                             .path = manager->targets[i]->config->path };
        past_follow(manager->past, subjects, manager->n_targets, &manager->config->keep);
        for (size_t i = 0; i < manager->n_targets; i++) {
                Target *target = manager->targets[i];
                const char *home = past_mount_point(manager->past, target->config->name);

                if (!target->home && home)
                        target_set_home(target, home);
        }
}

/* ---- life ---- */

static int open_state(Manager *manager, const char *state_dir)
{
        if (mkdir(state_dir, 0750) < 0 && errno != EEXIST) {
                int r = -errno;
                log_error(
                        "%s: cannot make the state directory: %s; make it, or name another with --state-dir",
                        state_dir, strerror(-r));
                return r;
        }
        manager->state_fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (manager->state_fd < 0 || faccessat(manager->state_fd, ".", W_OK | X_OK, AT_EACCESS) < 0) {
                int r = -errno;
                log_error("%s: the state directory cannot be written: %s", state_dir, strerror(-r));
                return r;
        }
        if (flock(manager->state_fd, LOCK_EX | LOCK_NB) < 0) {
                int r = -errno;
                log_error("%s: another tierprobed uses this state directory; stop it, or name another with "
                          "--state-dir",
                          state_dir);
                return r;
        }
        int r = past_new(&manager->past, manager->state_fd, &manager->config->keep,
                         &(PastEvents){ .userdata = manager, .interrupted = on_interrupted });
        if (r < 0)
                log_error("%s/runs: past runs cannot be kept: %s", state_dir, strerror(-r));
        ssize_t n_aside = count_set_aside_at(manager->state_fd);
        manager->n_rings_aside = n_aside < 0 ? 0 : (size_t) n_aside;
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
        manager->state_fd = -1;
        manager->mounts_fd = -1;
        manager->config = config;
        manager->options = *options;
        manager->roots = *roots;
        manager->started_real_ns = (int64_t) clock_ns(CLOCK_REALTIME);
        manager->started_ns = clock_ns(CLOCK_MONOTONIC);
        manager->clock_offset_ns = manager->started_real_ns - (int64_t) clock_ns(CLOCK_BOOTTIME);
        manager->lateness = calloc(1, sizeof *manager->lateness);
        if (!manager->lateness)
                return -ENOMEM;
        service_init(manager);
        int r = sd_event_default(&manager->event);
        if (r < 0)
                return r;
        r = open_state(manager, state_dir);
        if (r < 0)
                return r;
        for (size_t i = 0; i < config->n_targets; i++) {
                r = manager_add_target(manager, &config->targets[i]);
                if (r < 0)
                        return r;
        }
        manager_follow_past(manager);
        for (size_t i = 0; i < manager->n_targets; i++) {
                inspect_now(manager->targets[i]);
                timetable_plan(manager->targets[i]);
        }
        *ret = TAKE_PTR(manager);
        return 0;
}

Manager *manager_free(Manager *manager)
{
        if (!manager)
                return NULL;
        http_server_free(manager->http);
        runs_free(manager);
        for (size_t i = 0; i < manager->n_targets; i++)
                target_free(manager->targets[i]);
        past_free(manager->past);
        sd_event_source_disable_unref(manager->tick_timer);
        sd_event_source_disable_unref(manager->mounts_source);
        close_fdp(&manager->mounts_fd);
        close_fdp(&manager->state_fd);
        sd_event_unref(manager->event);
        config_free(manager->config);
        free(manager->lateness);
        free(manager);
        return NULL;
}

void manager_freep(Manager **manager)
{
        manager_free(*manager);
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
        const Config *config = manager->config;
        _cleanup_free_ char *error = NULL;

        int r = http_server_new(&manager->http, manager->event,
                                &(HttpOptions){ .listen = config->listen,
                                                .n_listen = config->n_listen,
                                                .allowed_hosts = config->allowed_hosts,
                                                .service = &manager->service },
                                &error);
        if (r < 0) {
                log_error("%s", error ? error : strerror(-r));
                return r;
        }
        r = sd_event_add_signal(manager->event, NULL, SIGTERM, on_stop, manager);
        if (r >= 0)
                r = sd_event_add_signal(manager->event, NULL, SIGINT, on_stop, manager);
        if (r >= 0)
                r = sd_event_add_signal(manager->event, NULL, SIGHUP, manager_on_reload, manager);
        if (r >= 0)
                r = sd_event_set_watchdog(manager->event, true);
        if (r >= 0)
                r = manager_start_ticking(manager);
        if (r >= 0)
                r = sd_event_add_time_relative(manager->event, NULL, CLOCK_MONOTONIC, TRIM_AFTER_US,
                                               TRIM_AFTER_US, on_settled, NULL);
        if (r >= 0)
                watch_mounts(manager);
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
        journal_started(manager);
        (void) sd_notify(0, "READY=1");
        notify_status(manager);
        r = sd_event_loop(manager->event);
        if (r < 0) {
                log_error("the event loop failed: %s", strerror(-r));
                (void) sd_notifyf(0, "STOPPING=1\nERRNO=%d", -r);
        }
        return r;
}
