/* SPDX-License-Identifier: Apache-2.0 */
/* SIGHUP: reads a new configuration. Touches its files, and its paths through children. */

#include "reload.h"

#include "paths.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <systemd/sd-daemon.h>

#define LOOK_TIMEOUT_NS NS_PER_S

struct Reload {
        sd_event *event;
        Looks *looks;
        const ConfigOptions *options;
        Config *const *in_force;
        ReloadEvents events;
        Config *config;   /* that is being looked at; NULL: none */
        PathCheck *check; /* likewise */
        bool again;
};

static void start(Reload *reload);

/* One way or the other: CONFIG is taken, or ERROR says why there is none. */
static void finish(Reload *reload, Config *config, const char *error)
{
        if (config)
                reload->events.loaded(config, reload->events.userdata);
        else
                reload->events.refused(error, reload->events.userdata);
        (void) sd_notify(0, "READY=1");
        if (reload->again)
                start(reload);
}

static void on_checked(const char *faults, void *userdata)
{
        Reload *reload = userdata;
        _cleanup_(config_freep) Config *config = TAKE_PTR(reload->config);
        _cleanup_free_ char *error = faults ? strdup(faults) : NULL;

        reload->check = path_check_free(reload->check);
        finish(reload, faults ? NULL : TAKE_PTR(config), error ? error : "out of memory");
}

static void start(Reload *reload)
{
        _cleanup_free_ char *error = NULL;

        reload->again = false;
        (void) sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, clock_ns(CLOCK_MONOTONIC) / NS_PER_US);
        int r = config_load(reload->options, &reload->config, &error);
        if (r >= 0) {
                r = path_check_new(&reload->check, reload->event, reload->looks, reload->config,
                                   *reload->in_force, false, LOOK_TIMEOUT_NS, on_checked, reload);
                if (r < 0)
                        reload->config = config_free(reload->config);
        }
        if (r < 0)
                finish(reload, NULL, error ? error : strerror(-r));
}

int reload_new(Reload **ret, sd_event *event, Looks *looks, const ConfigOptions *options,
               Config *const *in_force, const ReloadEvents *events)
{
        Reload *reload = calloc(1, sizeof *reload);

        if (!reload)
                return -ENOMEM;
        *reload = (Reload){ .event = sd_event_ref(event),
                            .looks = looks,
                            .options = options,
                            .in_force = in_force,
                            .events = *events };
        *ret = reload;
        return 0;
}

Reload *reload_free(Reload *reload)
{
        if (!reload)
                return NULL;
        path_check_free(reload->check);
        config_free(reload->config);
        sd_event_unref(reload->event);
        free(reload);
        return NULL;
}

void reload_freep(Reload **reload)
{
        reload_free(*reload);
}

void reload_ask(Reload *reload)
{
        if (reload->check)
                reload->again = true;
        else
                start(reload);
}

/* ---- what a reload cannot change ---- */

static bool same_text(const char *a, const char *b)
{
        return a && b ? strcmp(a, b) == 0 : a == b;
}

bool reload_needs_restart(const Config *a, const Config *b)
{
        if (a->n_listen != b->n_listen)
                return true;
        for (size_t i = 0; i < a->n_listen; i++)
                if (!address_equal(&a->listen[i], &b->listen[i]))
                        return true;
        return !same_text(a->allowed_hosts, b->allowed_hosts) || !same_text(a->token_file, b->token_file) ||
               !same_text(a->tls_cert, b->tls_cert) || !same_text(a->tls_key, b->tls_key);
}
