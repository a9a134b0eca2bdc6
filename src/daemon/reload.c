/* SPDX-License-Identifier: Apache-2.0 */
/* SIGHUP: a new configuration in place of the old one, or the old one stays. What both have keeps its samples
 * and runs. */

#include "manager.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/log.h"
#include "tierprobe/paths.h"

#include <inttypes.h>
#include <string.h>

#include <systemd/sd-daemon.h>

#define RELOAD_INSPECTION_NS NS_PER_S

static Target *take_target(Target **targets, size_t n, const TargetConfig *config)
{
        for (size_t i = 0; i < n; i++)
                if (targets[i] && strcmp(targets[i]->config->name, config->name) == 0 &&
                    strcmp(targets[i]->config->path, config->path) == 0)
                        return TAKE_PTR(targets[i]);
        return NULL;
}

static bool stays(const Target *target, const Config *config)
{
        for (size_t i = 0; i < config->n_targets; i++)
                if (strcmp(target->config->name, config->targets[i].name) == 0 &&
                    strcmp(target->config->path, config->targets[i].path) == 0)
                        return true;
        return false;
}

static bool same_text(const char *a, const char *b)
{
        return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_listeners(const Config *a, const Config *b)
{
        if (a->n_listen != b->n_listen)
                return false;
        for (size_t i = 0; i < a->n_listen; i++)
                if (!address_equal(&a->listen[i], &b->listen[i]))
                        return false;
        return same_text(a->allowed_hosts, b->allowed_hosts) && same_text(a->token_file, b->token_file) &&
               same_text(a->tls_cert, b->tls_cert) && same_text(a->tls_key, b->tls_key);
}

/* Puts CONFIG in force; targets that stay keep their samples, runs and device. */
static void apply(Manager *manager, Config *config)
{
        Config *before = manager->config;
        Target *old[CONFIG_MAX_TARGETS];
        size_t n_old = manager->n_targets;
        bool rings_differ = config_ring_capacity(before) != config_ring_capacity(config);

        if (!same_listeners(before, config))
                log_warning("[http] has changed: that takes a restart of tierprobed; until then it serves as "
                            "before");
        for (size_t i = 0; i < n_old; i++)
                if (!stays(manager->targets[i], config))
                        runs_drop_target(manager->targets[i]);
        memcpy(old, manager->targets, sizeof old);
        manager->config = config;
        manager->n_targets = 0;
        for (size_t i = 0; i < config->n_targets; i++) {
                Target *target = take_target(old, n_old, &config->targets[i]);

                if (target) {
                        target->config = &config->targets[i];
                        manager->targets[manager->n_targets++] = target;
                        if (rings_differ)
                                target_reopen_ring(target);
                }
        }
        /* The ones that go must release their names before new ones take them. */
        for (size_t i = 0; i < n_old; i++)
                target_free(old[i]);
        for (size_t i = 0; i < config->n_targets; i++) {
                bool there = false;

                for (size_t j = 0; j < manager->n_targets; j++)
                        there = there || manager->targets[j]->config == &config->targets[i];
                if (!there)
                        (void) manager_add_target(manager, &config->targets[i]);
        }
        config_free(before);
        manager_follow_past(manager);
        for (size_t i = 0; i < manager->n_targets; i++) {
                target_inspect(manager->targets[i]);
                timetable_plan(manager->targets[i]);
        }
        (void) manager_start_ticking(manager);
}

int manager_on_reload(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
        Manager *manager = userdata;
        _cleanup_(config_freep) Config *config = NULL;
        _cleanup_free_ char *error = NULL;

        (void) source;
        (void) info;
        if (manager->stopping)
                return 0;
        (void) sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, clock_ns(CLOCK_MONOTONIC) / NS_PER_US);
        int r = config_load(&manager->options, &config, &error);
        if (r >= 0)
                r = config_check_paths(config, RELOAD_INSPECTION_NS, false, &error);
        if (r < 0) {
                journal_config_invalid(error ? error : strerror(-r));
                log_warning("the configuration stays as it was");
        } else {
                apply(manager, TAKE_PTR(config));
                journal_reloaded(manager);
        }
        (void) sd_notify(0, "READY=1");
        manager_changed(manager);
        return 0;
}
