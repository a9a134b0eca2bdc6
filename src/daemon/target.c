/* SPDX-License-Identifier: Apache-2.0 */
/* A target: what its path stands on, and its samples. Looks at the path only through a child. */

#include "manager.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/file.h"
#include "tierprobe/log.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define INSPECTION_TIMEOUT_NS (10 * NS_PER_S)
#define INSPECTION_EVERY_NS (60 * NS_PER_S) /* free space and mounts change under us */

/* ---- making and freeing ---- */

static int open_ring(Target *target)
{
        const Config *config = target->manager->config;
        _cleanup_free_ char *name = path_format("%s.ring", target->config->name);
        bool damaged = false;

        if (!name)
                return -ENOMEM;
        int r = ring_open(&target->ring, target->manager->state_fd, name, config_ring_capacity(config),
                          &damaged);
        if (damaged) {
                target->manager->n_rings_aside++;
                log_warning("target %s: its samples in %s were damaged and are set aside",
                            target->config->name, name);
        }
        return r;
}

void target_reopen_ring(Target *target)
{
        target->ring = ring_free(target->ring);
        int r = open_ring(target);
        if (r < 0 && !target->ring_failed)
                log_error("target %s: samples cannot be kept: %s", target->config->name, strerror(-r));
        target->ring_failed = r < 0;
}

int64_t target_known_since_real_ns(const Target *target)
{
        RingRecord oldest;

        if (target->ring && ring_read(target->ring, ring_first_seq(target->ring), &oldest) >= 0 &&
            oldest.snapshot.real_ns < target->manager->started_real_ns)
                return oldest.snapshot.real_ns;
        return target->manager->started_real_ns;
}

int target_new(Manager *manager, const TargetConfig *config, Target **ret)
{
        _cleanup_(target_freep) Target *target = calloc(1, sizeof *target);

        if (!target)
                return -ENOMEM;
        target->manager = manager;
        target->config = config;
        target->next_run_real_ns = SCHEDULE_NEVER;
        target->sample_gap = GAP_FIRST;
        target_reopen_ring(target); /* the disk is tested and judged without history, too */
        *ret = TAKE_PTR(target);
        return 0;
}

static void inspection_done(Target *target)
{
        target->inspection_source = sd_event_source_disable_unref(target->inspection_source);
        target->inspection_timer = sd_event_source_disable_unref(target->inspection_timer);
        target->inspection = path_inspection_free(target->inspection);
}

Target *target_free(Target *target)
{
        if (!target)
                return NULL;
        inspection_done(target);
        target->schedule_timer = sd_event_source_disable_unref(target->schedule_timer);
        sampler_free(target->sampler);
        ring_free(target->ring);
        device_free(target->device);
        free(target->home);
        free(target);
        return NULL;
}

void target_freep(Target **target)
{
        target_free(*target);
}

/* ---- the device under the path ---- */

static void describe_path_error(const Target *target, const PathFacts *facts, Reasons *reasons)
{
        char detail[PATH_ERROR_SIZE];

        path_error_describe(detail, sizeof detail, target->config->path, facts->error, &facts->denial);
        reasons_add(reasons, path_error_find(facts->error).code, "%s", detail);
}

/* A change that the journal should tell; the sampler starts anew on another row. */
static void take_device(Target *target, Device *found)
{
        Manager *manager = target->manager;
        _cleanup_(device_freep) Device *before = target->device;
        const char *names[64];

        target->device = found;
        if (found && before && device_same_rows(found, before) && found->status == before->status)
                return;
        target->sampler = sampler_free(target->sampler);
        if (found && found->status == DEVICE_OK) {
                int r = sampler_new(&target->sampler, manager->roots.procfs, manager->roots.sysfs, names,
                                    device_row_names(found, names, ELEMENTSOF(names)));
                if (r < 0)
                        log_error("target %s: cannot sample %s: %s", target->config->name, found->name,
                                  strerror(-r));
                char text[320];
                (void) snprintf(text, sizeof text, "is on %s (%s)%s%s", found->name,
                                found->filesystem ? found->filesystem : "?", found->detail ? "; " : "",
                                found->detail ? found->detail : "");
                journal_target_changed(target, text);
        } else if (found || before)
                journal_target_changed(target, target->device_reasons.n
                                                       ? target->device_reasons.items[0].detail
                                                       : "has no block device");
        manager_changed(manager);
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
 * would tell nothing, and fill it. The target's home is the mount point it was last seen on. */
static bool is_at_home(Target *target, const Device *found)
{
        if (!found->mount_point)
                return true;
        if (target->home && is_above(found->mount_point, target->home)) {
                bool ok = found->status == DEVICE_OK;

                reasons_add(&target->device_reasons, REASON_NOT_MOUNTED,
                            "%s is not mounted: %s fell back to %s%s%s. Mount it%s%s%s.", target->home,
                            target->config->path, found->mount_point, ok ? " on " : "", ok ? found->name : "",
                            ok ? ", or, if the move is meant, set device = " : "", ok ? found->name : "",
                            ok ? " for the target" : "");
                return false;
        }
        /* A place without a device is nobody's home: what was there before is still missed. */
        if (found->status == DEVICE_OK && (!target->home || strcmp(target->home, found->mount_point) != 0))
                target_set_home(target, found->mount_point);
        return true;
}

/* The device the configuration names must be the one under the path, where that can be seen at all. */
static bool is_named_device(Target *target, const PathFacts *facts, const Device *named)
{
        _cleanup_(device_freep) Device *found = NULL;
        Manager *manager = target->manager;

        if (named->status != DEVICE_OK ||
            device_resolve(&manager->roots, facts->resolved, facts->dev, NULL, &found) < 0 ||
            found->status != DEVICE_OK || device_shares_disk(found, named))
                return true;
        reasons_add(&target->device_reasons, REASON_WRONG_DEVICE,
                    "%s is on %s, not on %s as device = says. Mount the right disk or correct the setting.",
                    target->config->path, found->name, named->name);
        return false;
}

static bool is_right_device(Target *target, const PathFacts *facts, const Device *found)
{
        bool named = target->config->device && strcmp(target->config->device, "auto") != 0;

        return named ? is_named_device(target, facts, found) : is_at_home(target, found);
}

static Device *find_device(Target *target, const PathFacts *facts)
{
        Manager *manager = target->manager;
        Reasons *reasons = &target->device_reasons;
        Device *found = NULL;

        if (facts->error != 0) {
                describe_path_error(target, facts, reasons);
                return NULL;
        }
        int r = device_resolve(&manager->roots, facts->resolved, facts->dev, target->config->device, &found);
        if (r < 0) {
                reasons_add(reasons, REASON_NO_BLOCK_DEVICE, "The mount table cannot be read: %s. Run again.",
                            strerror(-r));
                return NULL;
        }
        if (!is_right_device(target, facts, found))
                return device_free(found);
        if (found->status == DEVICE_OK)
                return found;
        reasons_add(reasons,
                    found->status == DEVICE_NOT_MOUNTED ? REASON_NOT_MOUNTED : REASON_NO_BLOCK_DEVICE,
                    "%s: %s. Test a directory on a local disk.", target->config->path,
                    found->detail ? found->detail : "no block device");
        return found;
}

void target_take_facts(Target *target, const PathFacts *facts)
{
        target->facts = *facts;
        target->facts_known = true;
        target->inspected_ns = clock_ns(CLOCK_MONOTONIC);
        target->device_reasons.n = 0;
        /* A path that does not answer now keeps the device it had: that is the one that hangs. */
        if (facts->error == ETIMEDOUT)
                describe_path_error(target, facts, &target->device_reasons);
        else
                take_device(target, find_device(target, facts));
}

static void inspection_answered(Target *target, const PathFacts *facts)
{
        inspection_done(target);
        if (!target->ring)
                target_reopen_ring(target); /* the state directory may be well again */
        target_take_facts(target, facts);
        if (target->inspect_again) {
                target_inspect(target);
                if (target->inspection)
                        return; /* a run that waits begins with the newer facts */
        }
        target->run_ready = target->run != NULL;
        runs_dispatch(target->manager);
}

static int on_inspection(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        Target *target = userdata;
        PathFacts facts;

        (void) source;
        (void) fd;
        (void) revents;
        int r = path_inspection_collect(target->inspection, &facts);
        if (r == -EAGAIN)
                return 0;
        if (r < 0)
                facts = (PathFacts){ .error = -r };
        inspection_answered(target, &facts);
        return 0;
}

static int on_inspection_timeout(sd_event_source *source, uint64_t usec, void *userdata)
{
        (void) source;
        (void) usec;
        inspection_answered(userdata, &(PathFacts){ .error = ETIMEDOUT });
        return 0;
}

void target_inspect(Target *target)
{
        sd_event *event = target->manager->event;

        if (target->inspection) {
                target->inspect_again = true;
                return;
        }
        target->inspect_again = false;
        int r = path_inspection_new(target->config->path, &target->inspection);
        if (r >= 0)
                r = sd_event_add_io(event, &target->inspection_source,
                                    path_inspection_get_fd(target->inspection), EPOLLIN, on_inspection,
                                    target);
        if (r >= 0)
                r = sd_event_add_time_relative(event, &target->inspection_timer, CLOCK_MONOTONIC,
                                               INSPECTION_TIMEOUT_NS / NS_PER_US, 0, on_inspection_timeout,
                                               target);
        if (r < 0) {
                if (!target->inspect_failed)
                        log_error("target %s: cannot look at its path: %s", target->config->name,
                                  strerror(-r));
                inspection_done(target);
                target->inspected_ns = clock_ns(CLOCK_MONOTONIC); /* not again with every sample */
        }
        target->inspect_failed = r < 0;
}

/* ---- samples ---- */

static void keep_sample(Target *target, uint64_t previous_seq)
{
        int r = -EBADF;

        if (target->ring)
                r = ring_append(target->ring, &target->sample);
        else
                target->sample.seq = previous_seq + 1; /* it is a sample all the same */
        if (r < 0 && !target->ring_failed)
                log_error("target %s: samples cannot be kept: %s", target->config->name, strerror(-r));
        if (r >= 0 && target->ring_failed)
                log_info("target %s: samples are kept again", target->config->name);
        target->ring_failed = r < 0;
}

void target_tick(Target *target)
{
        if (!target->inspection && clock_ns(CLOCK_MONOTONIC) - target->inspected_ns >= INSPECTION_EVERY_NS)
                target_inspect(target);
        if (!target->sampler)
                return;

        RingRecord previous = target->sample;
        RingRecord *sample = &target->sample;
        bool first = previous.seq == 0 || strcmp(previous.device, target->device->name) != 0;

        *sample = (RingRecord){ 0 };
        sampler_read(target->sampler, &sample->snapshot);
        if (target->run)
                run_tick(target->run, &sample->snapshot);
        (void) snprintf(sample->device, sizeof sample->device, "%.31s", target->device->name);
        const RunRecord *record = target->run ? run_record(target->run) : NULL;
        if (record && record->state == RUN_RUNNING)
                (void) snprintf(sample->run_id, sizeof sample->run_id, "%s", record->id);
        /* What happened before this start, or on another device, is nobody's interval. */
        if (first && sample->snapshot.gap == GAP_NONE)
                sample->snapshot.gap = GAP_FIRST;
        target->sample_gap =
                delta_compute(first ? NULL : &previous.snapshot, &sample->snapshot, &target->sample_delta);
        if (target->sample_gap != GAP_NONE && target->sample_gap != GAP_FIRST)
                target->gaps[target->sample_gap]++;
        keep_sample(target, previous.seq);
}
