/* SPDX-License-Identifier: Apache-2.0 */
/* A target: what its path stands on, and its samples. Looks at the path only through a child. */

#include "target.h"

#include "journal.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LOOK_TIMEOUT_NS (10 * NS_PER_S)
#define LOOK_EVERY_NS (60 * NS_PER_S) /* free space and mounts change under us */

/* ---- the device under the path ---- */

/* Since when the path has not answered, as text: a look that began so long ago is still at work. */
static const char *waiting_since(const Target *target, char buf[RFC3339_SIZE])
{
        uint64_t began_ns = look_began_ns(target->look), now_ns = clock_ns(CLOCK_MONOTONIC);
        int64_t ago_ns = began_ns && now_ns > began_ns ? (int64_t) (now_ns - began_ns) : 0;

        return rfc3339_format(buf, (int64_t) clock_ns(CLOCK_REALTIME) - ago_ns);
}

static void describe_path_error(Target *target, const PathFacts *facts)
{
        const char *path = target->config->path;
        char detail[PATH_ERROR_SIZE], since[RFC3339_SIZE];

        if (facts->error == ETIMEDOUT)
                (void) snprintf(
                        detail, sizeof detail,
                        "%.250s has not answered since %s: its file system hangs. Look for timeouts in "
                        "the kernel log.",
                        path, waiting_since(target, since));
        else
                path_error_describe(detail, sizeof detail, path, facts->error, &facts->denial);
        reasons_add(&target->problems, path_error_find(facts->error).code, "%s", detail);
}

static void say_device(const Target *target)
{
        const Device *found = target->device;
        char text[320];

        if (target_row(target))
                (void) snprintf(text, sizeof text, "is on %s (%s)%s%s", found->name,
                                found->filesystem ? found->filesystem : "?", found->detail ? "; " : "",
                                found->detail ? found->detail : "");
        else
                (void) snprintf(text, sizeof text, "%.300s",
                                target->problems.n > 0 ? target->problems.items[0].detail
                                                       : "has no block device");
        journal_target_changed(target->config->name, target->config->path, found ? found->name : "", text);
}

/* A minute is as often as anybody looks, and no drive is kept awake by it that was asleep. */
#define HEAT_EVERY_NS (60 * NS_PER_S)

static void follow_heat(Target *target)
{
        target->heat = heat_watch_free(target->heat);
        if (!target->device)
                return;
        int r = heat_watch_new(target->roots, target->device, HEAT_EVERY_NS, &target->heat);
        if (r < 0 && r != -ENODEV)
                log_warning("target %s: its temperature cannot be watched: %s", target->config->name,
                            strerror(-r));
}

/* Follows a change that the journal should tell; sampler and sensors start anew on another row. */
static void take_device(Target *target, Device *found)
{
        _cleanup_(device_freep) Device *before = target->device;

        target->device = found;
        if (found && before && device_same_rows(found, before) && found->status == before->status)
                return;
        int r = samples_follow(&target->samples, target->roots, target_row(target));
        if (r < 0)
                log_error("target %s: cannot sample %s: %s", target->config->name, found->name, strerror(-r));
        follow_heat(target);
        if (found || before)
                say_device(target);
}

/* ---- is it the right disk? ---- */

void target_set_home(Target *target, const char *mount_point)
{
        char *home = strdup(mount_point);

        if (!home)
                return;
        free(target->home);
        target->home = home;
}

/* Whether directory ABOVE holds BELOW. */
static bool is_above(const char *above, const char *below)
{
        size_t n = strlen(above);

        if (n > 0 && above[n - 1] == '/')
                n--;
        return strncmp(above, below, n) == 0 && below[n] == '/' && below[n + 1] != '\0';
}

/* A cache disk that is not mounted leaves its empty mount point behind, on the disk above: testing that one
 * would tell nothing, and fill it. `home` is the mount point it was last seen on. */
static bool is_at_home(Target *target, const Device *found)
{
        if (!found->mount_point)
                return true;
        if (target->home && is_above(found->mount_point, target->home)) {
                bool ok = found->status == DEVICE_OK;

                reasons_add(&target->problems, REASON_NOT_MOUNTED,
                            "%s is not mounted: %s fell back to %s%s%s. Mount it%s%s%s.", target->home,
                            target->config->path, found->mount_point, ok ? " on " : "", ok ? found->name : "",
                            ok ? ", or, if the move is meant, set device = " : "", ok ? found->name : "",
                            ok ? " for the target" : "");
                return false;
        }
        /* A path without a device is not remembered as the place of the target: the mount that was there
         * before is still missing. */
        if (found->status == DEVICE_OK && (!target->home || strcmp(target->home, found->mount_point) != 0))
                target_set_home(target, found->mount_point);
        return true;
}

/* The device the configuration names must be the one under the path, where that can be seen at all. */
static bool is_named_device(Target *target, const PathFacts *facts, const Device *named)
{
        _cleanup_(device_freep) Device *found = NULL;

        if (named->status != DEVICE_OK ||
            device_resolve(target->roots, facts->resolved, facts->dev, NULL, &found) < 0 ||
            found->status != DEVICE_OK || device_shares_disk(found, named))
                return true;
        reasons_add(&target->problems, REASON_WRONG_DEVICE,
                    "%s is on %s, not on %s as device = says. Mount the right disk or correct the setting.",
                    target->config->path, found->name, named->name);
        return false;
}

static bool is_right_device(Target *target, const PathFacts *facts, const Device *found)
{
        bool named = target->config->device && strcmp(target->config->device, "auto") != 0;

        return named ? is_named_device(target, facts, found) : is_at_home(target, found);
}

/* A path that leads elsewhere than it first did, by whatever link, is another place: to test that one, and to
 * take its verdict for this one's, must be meant. */
static bool leads_where_it_did(Target *target, const PathFacts *facts)
{
        if (!target->goal)
                target->goal = strdup(facts->resolved);
        if (!target->goal || strcmp(target->goal, facts->resolved) == 0)
                return true;
        reasons_add(
                &target->problems, REASON_WRONG_DEVICE,
                "%.120s led to %.120s and now leads to %.120s. Set the link right, or restart the daemon if "
                "the change is meant.",
                target->config->path, target->goal, facts->resolved);
        return false;
}

static Device *find_device(Target *target, const PathFacts *facts)
{
        Device *found = NULL;

        if (facts->error != 0) {
                describe_path_error(target, facts);
                return NULL;
        }
        if (!leads_where_it_did(target, facts))
                return NULL;
        int r = device_resolve(target->roots, facts->resolved, facts->dev, target->config->device, &found);
        if (r < 0) {
                reasons_add(&target->problems, REASON_NO_BLOCK_DEVICE,
                            "The mount table cannot be read: %s. Run again.", strerror(-r));
                return NULL;
        }
        if (!is_right_device(target, facts, found))
                return device_free(found);
        if (found->status == DEVICE_OK)
                return found;
        reasons_add(&target->problems,
                    found->status == DEVICE_NOT_MOUNTED ? REASON_NOT_MOUNTED : REASON_NO_BLOCK_DEVICE,
                    "%s: %s. Test a directory on a local disk.", target->config->path,
                    found->detail ? found->detail : "no block device");
        return found;
}

const Device *target_row(const Target *target)
{
        return target->device && target->device->status == DEVICE_OK ? target->device : NULL;
}

/* ---- looks ---- */

bool target_is_waiting(const Target *target)
{
        return look_is_waiting(target->look);
}

bool target_is_unseen(const Target *target)
{
        return target->facts.error == EAGAIN;
}

bool target_hangs(const Target *target)
{
        return target->facts.error == ETIMEDOUT && look_is_waiting(target->look);
}

static void on_seen(Look *look, const PathFacts *facts, void *userdata)
{
        Target *target = userdata;

        (void) look;
        target->facts = *facts;
        target->inspected_ns = clock_ns(CLOCK_MONOTONIC);
        target->problems.n = 0;
        /* A path that does not answer now keeps the device it had: that is the one that hangs. */
        if (facts->error == ETIMEDOUT)
                describe_path_error(target, facts);
        else
                take_device(target, find_device(target, facts));
        target->events.inspected(target, target->events.userdata);
}

/* Nothing is known yet: a reader must not take that for a target that is well. */
static void say_unseen(Target *target)
{
        char since[RFC3339_SIZE];

        reasons_add(
                &target->problems, REASON_STALLED,
                "%s is being looked at and has not answered since %s. Look for timeouts in the kernel log "
                "if that lasts.",
                target->config->path, waiting_since(target, since));
}

int target_inspect(Target *target)
{
        int r = look_ask(target->look);

        if (r < 0 && !target->inspect_failed)
                log_error("target %s: cannot look at its path: %s", target->config->name, strerror(-r));
        if (r < 0)
                target->inspected_ns = clock_ns(CLOCK_MONOTONIC); /* not again with every sample */
        target->inspect_failed = r < 0;
        if (r >= 0 && target_is_unseen(target) && target->problems.n == 0)
                say_unseen(target);
        return r;
}

void target_inspect_if_old(Target *target)
{
        if (!look_is_waiting(target->look) &&
            clock_ns(CLOCK_MONOTONIC) - target->inspected_ns >= LOOK_EVERY_NS)
                (void) target_inspect(target);
}

/* ---- making and freeing ---- */

int target_new(Target **ret, const TargetConfig *config, const DeviceRoots *roots, Looks *looks, int state_fd,
               uint64_t ring_capacity, const TargetEvents *events)
{
        _cleanup_(target_freep) Target *target = calloc(1, sizeof *target);

        if (!target)
                return -ENOMEM;
        target->config = config;
        target->roots = roots;
        target->events = *events;
        target->facts.error = EAGAIN;
        samples_init(&target->samples, config->name, state_fd, ring_capacity);
        int r = look_new(&target->look, looks, config->path, LOOK_TIMEOUT_NS, on_seen, target);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(target);
        return 0;
}

Target *target_free(Target *target)
{
        if (!target)
                return NULL;
        look_free(target->look);
        samples_done(&target->samples);
        heat_watch_free(target->heat);
        device_free(target->device);
        free(target->home);
        free(target->goal);
        free(target);
        return NULL;
}

void target_freep(Target **target)
{
        target_free(*target);
}
