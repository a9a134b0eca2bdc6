/* SPDX-License-Identifier: Apache-2.0 */
/* Tells when the mount table changes. Opens /proc/self/mountinfo alone. */

#include "mount-watch.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/file.h"

#include <fcntl.h>

static int on_changed(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        MountWatch *watch = userdata;

        (void) source;
        (void) fd;
        (void) revents;
        watch->changed(watch->userdata);
        return 0;
}

void mount_watch_start(MountWatch *watch, sd_event *event, const char *procfs,
                       void (*changed)(void *userdata), void *userdata)
{
        _cleanup_free_ char *path = path_format("%s/self/mountinfo", procfs);

        watch->changed = changed;
        watch->userdata = userdata;
        watch->fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        if (watch->fd < 0)
                return;
        int r = sd_event_add_io(event, &watch->source, watch->fd, EPOLLPRI, on_changed, watch);
        if (r >= 0) /* hosts full of containers mount all day long */
                (void) sd_event_source_set_ratelimit(watch->source, 2 * 1000 * 1000, 1);
}

void mount_watch_stop(MountWatch *watch)
{
        watch->source = sd_event_source_disable_unref(watch->source);
        close_fdp(&watch->fd);
        watch->fd = -1;
}
