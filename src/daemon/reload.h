/* SPDX-License-Identifier: Apache-2.0 */
/* SIGHUP: reads a new configuration and the files that it names, and looks at its paths, without holding up
 * the loop. What it finds goes up by callbacks. */
#pragma once

#include <stdbool.h>

#include <systemd/sd-event.h>

#include "looks.h"

#include "tierprobe/config.h"
#include "tierprobe/http.h"

typedef struct Reload Reload;

typedef struct ReloadEvents {
        void *userdata;
        void (*loaded)(Config *config, HttpAccess *access,
                       void *userdata);                     /* it is good; both are the receiver's */
        void (*refused)(const char *error, void *userdata); /* one line for each fault */
} ReloadEvents;

/* LOOKS, ROOTS, OPTIONS and IN_FORCE, which points to wherever the configuration in force stands, are
 * borrowed. */
int reload_new(Reload **ret, sd_event *event, Looks *looks, const DeviceRoots *roots,
               const ConfigOptions *options, Config *const *in_force, const ReloadEvents *events);
Reload *reload_free(Reload *reload);
void reload_freep(Reload **reload);

/* Reads it; one of the callbacks follows. While one is being read, another reading follows that. */
void reload_ask(Reload *reload);
