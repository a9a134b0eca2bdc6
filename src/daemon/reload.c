/* SPDX-License-Identifier: Apache-2.0 */
/* SIGHUP: reads a new configuration. Touches its files, and its paths through children. */

#include "reload.h"

#include "paths.h"
#include "web.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/file.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <systemd/sd-daemon.h>

#define LOOK_TIMEOUT_NS NS_PER_S

struct Reload {
        sd_event *event;
        Looks *looks;
        const DeviceRoots *roots;
        const ConfigOptions *options;
        Config *const *in_force;
        ReloadEvents events;
        Config *config;     /* that is being looked at; NULL: none */
        HttpAccess *access; /* of it */
        PathCheck *check;   /* likewise */
        bool again;
};

static void start(Reload *reload);

/* One way or the other: what was read is taken, or ERROR says why it is not. */
static void finish(Reload *reload, const char *error)
{
        if (error) {
                reload->config = config_free(reload->config);
                reload->access = http_access_unref(reload->access);
                reload->events.refused(error, reload->events.userdata);
        } else {
                reload->events.loaded(TAKE_PTR(reload->config), TAKE_PTR(reload->access),
                                      reload->events.userdata);
        }
        (void) sd_notify(0, "READY=1");
        if (reload->again)
                start(reload);
}

static void on_checked(const char *faults, void *userdata)
{
        Reload *reload = userdata;
        _cleanup_free_ char *error = faults ? strdup(faults) : NULL;

        reload->check = path_check_free(reload->check);
        finish(reload, !faults ? NULL : error ? error : "out of memory");
}

static void start(Reload *reload)
{
        _cleanup_free_ char *error = NULL;
        int r = -ESPIPE;

        reload->again = false;
        (void) sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, clock_ns(CLOCK_MONOTONIC) / NS_PER_US);
        if (config_can_be_reread(reload->options))
                r = config_load(reload->options, &reload->config, &error);
        else
                error = path_format("%s was a pipe and cannot be read again; start tierprobed anew",
                                    reload->options->file);
        if (r >= 0)
                r = web_load_access(reload->config, &reload->access, &error);
        if (r >= 0)
                r = path_check_new(&reload->check, reload->event, reload->looks, reload->roots,
                                   reload->config, *reload->in_force, false, LOOK_TIMEOUT_NS, on_checked,
                                   reload);
        if (r < 0)
                finish(reload, error ? error : strerror(-r));
}

int reload_new(Reload **ret, sd_event *event, Looks *looks, const DeviceRoots *roots,
               const ConfigOptions *options, Config *const *in_force, const ReloadEvents *events)
{
        Reload *reload = calloc(1, sizeof *reload);

        if (!reload)
                return -ENOMEM;
        *reload = (Reload){ .event = sd_event_ref(event),
                            .looks = looks,
                            .roots = roots,
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
        http_access_unref(reload->access);
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
