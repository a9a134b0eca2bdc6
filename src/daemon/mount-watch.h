/* SPDX-License-Identifier: Apache-2.0 */
/* Tells when the mount table changes. Knows libc. */
#pragma once

#include <systemd/sd-event.h>

typedef struct MountWatch {
        int fd; /* of mountinfo; -1: it cannot be watched */
        sd_event_source *source;
        void (*changed)(void *userdata);
        void *userdata;
} MountWatch;

#define MOUNT_WATCH_NONE ((MountWatch){ .fd = -1 })

/* Watches PROCFS/self/mountinfo; of many changes at once one call every 2 s follows. Where it cannot be
 * watched (a recorded tree) nothing happens. */
void mount_watch_start(MountWatch *watch, sd_event *event, const char *procfs,
                       void (*changed)(void *userdata), void *userdata);
void mount_watch_stop(MountWatch *watch);
