/* SPDX-License-Identifier: Apache-2.0 */
/* One run: the state machine around the writers. It lets them go and takes note of their end, watches for
 * stalls and limits, and has the whole judged. What is measured is measured by the children: nothing that
 * holds up this loop makes a figure wrong. Touches its own children and /sys through sampler and probe,
 * nothing on the tested path. */

#include "run-internal.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/file.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/utsname.h>

#define WATCH_NS (500 * NS_PER_MS) /* how often stalls are looked for */
#define GRACE_NS (3 * NS_PER_S)    /* how long writers may take to stop before they are killed */
#define CLOSING_NS (10 * NS_PER_S) /* how long freeing the files may hold back the verdict */

static void source_free(sd_event_source **source)
{
        *source = sd_event_source_disable_unref(*source);
}

/* ---- making and freeing ---- */

static void describe_host(RunRecord *record)
{
        struct utsname uts;

        (void) snprintf(record->version, sizeof record->version, "%s", TIERPROBE_VERSION);
        if (uname(&uts) < 0)
                return;
        (void) snprintf(record->kernel, sizeof record->kernel, "%.60s %.64s", uts.release, uts.machine);
        (void) snprintf(record->hostname, sizeof record->hostname, "%s", uts.nodename);
}

bool run_is_certifying(const Profile *profile, const Limits *limits)
{
        return profile_is_procedure(profile) && limits_are_documented(limits);
}

int run_new(Run **ret, sd_event *event, const RunRequest *request, const RunEvents *events)
{
        _cleanup_(run_freep) Run *run = calloc(1, sizeof *run);

        if (!run)
                return -ENOMEM;
        run->event = sd_event_ref(event);
        run->events = *events;
        run->profile = *request->profile;
        run->guard = *request->guard;
        run->interval_ns = request->interval_ns;
        run->procfs = strdup(request->procfs);
        run->sysfs = strdup(request->sysfs);
        if (!run->procfs || !run->sysfs)
                return -ENOMEM;
        int r = run_record_new(&run->record);
        if (r < 0)
                return r;

        RunRecord *record = run->record;
        record->path = strdup(request->path);
        if (!record->path)
                return -ENOMEM;
        (void) snprintf(record->target, sizeof record->target, "%s", request->target);
        record->profile = *request->profile;
        record->certifying = run_is_certifying(request->profile, request->limits);
        record->official = request->official;
        record->trigger = request->trigger;
        (void) snprintf(record->confirms, sizeof record->confirms, "%s",
                        request->confirms ? request->confirms : "");
        record->state = RUN_QUEUED;
        record->queued_real_ns = (int64_t) clock_ns(CLOCK_REALTIME);
        run_id_make(record->id, record->queued_real_ns);
        run->streams = ramp_first_streams(request->profile);
        record->max_duration_ns = request->guard->max_duration_ns;
        record->bytes_total = request->profile->duration_ns > 0 || request->profile->ramp
                                      ? 0
                                      : profile_bytes(request->profile);
        record->limits = *request->limits;
        record->background_write_mb_per_s = NAN;
        describe_host(record);
        *ret = TAKE_PTR(run);
        return 0;
}

Run *run_free(Run *run)
{
        if (!run)
                return NULL;
        source_free(&run->probe_source);
        source_free(&run->watch_timer);
        source_free(&run->deadline_timer);
        source_free(&run->grace_timer);
        probe_free(run->probe);
        surroundings_free(run->watchful);
        sampler_free(run->sampler);
        disk_lock_free(run->lock);
        run_record_free(run->record);
        run_record_free(run->best);
        free(run->procfs);
        free(run->sysfs);
        sd_event_unref(run->event);
        free(run);
        return NULL;
}

void run_freep(Run **run)
{
        run_free(*run);
}

/* ---- the end ---- */

static void refresh(Run *run)
{
        RunRecord *record = run->record;

        if (!record || run->ended || run->judged || !run->probe)
                return;
        probe_progress(run->probe, &run->progress);
        if (run->progress.swept > record->swept)
                record->swept = run->progress.swept;
        record->bytes_written = run->bytes_before + run->progress.bytes_written;
        const ProbeProgress *progress = &run->progress;
        if (progress->begin_ns > 0) {
                uint64_t end_ns = progress->end_ns     ? progress->end_ns
                                  : run->window_closed ? run->last.row.mono_ns
                                                       : clock_ns(CLOCK_MONOTONIC);
                record->elapsed_ns = run->elapsed_before_ns +
                                     (end_ns > progress->begin_ns ? end_ns - progress->begin_ns : 0);
        }
}

/* The verdict stands. The caller must not touch the run after this: the event may free it. */
static void finish(Run *run)
{
        if (run->ended)
                return;
        refresh(run);
        source_free(&run->watch_timer);
        source_free(&run->deadline_timer);
        run->record->stalled_ns = 0;
        if (!run->record->finished_real_ns)
                run->record->finished_real_ns = (int64_t) clock_ns(CLOCK_REALTIME);
        if (!run->judged)
                run_judge(run);
        run->record->state = run_state_after(run->end);
        run->record->certifying = run->record->certifying && run->end == TEST_COMPLETE;
        run->ended = true;

        bool gone = run->gone;
        void (*gone_event)(Run *, void *) = run->events.gone;
        void *userdata = run->events.userdata;
        run->events.ended(run, userdata);
        if (gone)
                gone_event(run, userdata);
}

static void finish_unstarted(Run *run)
{
        run->gone = true;
        finish(run);
}

/* ---- the window ---- */

static void close_window(Run *run)
{
        if (!run->window_open || run->window_closed)
                return;
        /* Writers that were killed, or do not come back, have not read it. */
        if (!probe_last_reading(run->probe, &run->last)) {
                sampler_read(run->sampler, &run->last.row);
                run->last.written_bytes = run->progress.bytes_written;
        }
        run->window_closed = true;
        surroundings_end(run);
        run->record->finished_real_ns = run->last.row.real_ns;
        source_free(&run->watch_timer);
        source_free(&run->deadline_timer);
}

static int arm(Run *run, sd_event_source **source, uint64_t at_ns, sd_event_time_handler_t handler)
{
        if (*source) {
                int r = sd_event_source_set_time(*source, at_ns / NS_PER_US);
                return r < 0 ? r : sd_event_source_set_enabled(*source, SD_EVENT_ONESHOT);
        }
        return sd_event_add_time(run->event, source, CLOCK_MONOTONIC, at_ns / NS_PER_US, 500, handler, run);
}

/* Looks for a write that hangs. */
static int on_watch(sd_event_source *source, uint64_t usec, void *userdata)
{
        Run *run = userdata;

        (void) source;
        (void) usec;
        refresh(run);
        uint64_t outstanding_ns = run->progress.oldest_write_ns;
        bool was_stalled = run->record->stalled_ns > 0;
        run->record->stalled_ns = outstanding_ns > STALL_LIMIT_NS ? outstanding_ns : 0;
        if (outstanding_ns > run->longest_stall_ns)
                run->longest_stall_ns = outstanding_ns;

        int r = arm(run, &run->watch_timer, clock_ns(CLOCK_MONOTONIC) + WATCH_NS, on_watch);
        if (was_stalled || run->record->stalled_ns > 0)
                run->events.changed(run, run->events.userdata);
        return r;
}

/* The kernel holds a writer, or frees its file for long: the verdict does not wait any longer. */
static int on_grace_over(sd_event_source *source, uint64_t usec, void *userdata)
{
        Run *run = userdata;

        (void) source;
        (void) usec;
        source_free(&run->grace_timer);
        if (run->ended) { /* it was cut, and the record is its owner's */
                probe_kill(run->probe);
                return 0;
        }
        close_window(run);
        refresh(run);
        if (!run->window_closed)
                run_set_not_started(run, REASON_STALLED,
                                    "The test file could not be made within %" PRIu64
                                    " s: %s does not answer. Look for "
                                    "timeouts in the kernel log.",
                                    CLOSING_NS / NS_PER_S, run->record->path);
        bool held = run->progress.state < PROBE_CLOSING;
        /* Also one that should be closing: it may have been stopped by a signal. */
        probe_kill(run->probe);
        if (!run->end_known)
                run_set_end_from_outcome(run);
        /* Writers that do not come back are the result; a file that takes long to be freed only ends a ramp.
         */
        if (run->profile.ramp && !held)
                ramp_end_early(run);
        finish(run);
        return 0;
}

/* The writers know the time as well, and stop by themselves, unless they hang. */
static int on_deadline(sd_event_source *source, uint64_t usec, void *userdata)
{
        Run *run = userdata;

        (void) source;
        (void) usec;
        source_free(&run->deadline_timer);
        run_set_end(run, run_end_by_time(run));
        probe_stop(run->probe);
        return arm(run, &run->grace_timer, clock_ns(CLOCK_MONOTONIC) + GRACE_NS, on_grace_over);
}

/* All writers wait for the start: read the counters, start them, watch. */
static int open_window(Run *run)
{
        uint64_t time_ns = run_time_ns(run);
        int r;

        surroundings_go(run);
        sampler_read(run->sampler, &run->first.row);
        probe_go(run->probe);
        run->window_open = true;
        r = arm(run, &run->watch_timer, run->first.row.mono_ns + WATCH_NS, on_watch);
        source_free(&run->grace_timer);
        if (r >= 0 && time_ns != UINT64_MAX)
                r = arm(run, &run->deadline_timer, run->first.row.mono_ns + time_ns, on_deadline);
        return r;
}

/* ---- the steps of a ramp ---- */

static int start_probe(Run *run);

/* Ends hard what start_probe() began. */
static void stop_probe(Run *run)
{
        source_free(&run->probe_source);
        source_free(&run->grace_timer);
        run->probe = probe_free(run->probe);
}

/* Makes room for another window. */
static void forget_step(Run *run)
{
        run->probe = probe_free(run->probe);
        run->progress = (ProbeProgress){ 0 };
        run->window_open = run->window_closed = false;
        run->end_known = false;
        run->gone = false;
        run->longest_stall_ns = 0;
        run->record->finished_real_ns = 0;
}

/* The writers of a step are gone. Whether those of another one are at work now. */
static bool next_step(Run *run)
{
        if (run->end != TEST_COMPLETE || !ramp_take_step(run)) {
                ramp_end(run);
                return false;
        }
        forget_step(run);
        int r = start_probe(run);
        if (r >= 0)
                return true;
        stop_probe(run);
        run->gone = true;
        run_set_not_started(run, REASON_ABORTED, "The step of %u streams could not be set up: %s. Run again.",
                            run->streams, strerror(-r));
        return false;
}

/* ---- the writers' news ---- */

static int on_probe(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        Run *run = userdata;
        int r = 0;

        (void) source;
        (void) fd;
        (void) revents;
        switch (probe_process(run->probe)) {
        case PROBE_PREPARING:
        case PROBE_WRITING:
        case PROBE_CLOSING:
                return 0;
        case PROBE_READY:
                r = open_window(run);
                if (r < 0) {
                        run_set_not_started(run, REASON_ABORTED,
                                            "The test of %.150s could not be set up: %s. Run again.",
                                            run->record->path, strerror(-r));
                        probe_kill(run->probe);
                        return arm(run, &run->grace_timer, clock_ns(CLOCK_MONOTONIC) + GRACE_NS,
                                   on_grace_over);
                }
                run->events.changed(run, run->events.userdata);
                return 0;
        case PROBE_DONE:
                if (!run->ended) { /* else it was cut, and the record is its owner's */
                        close_window(run);
                        refresh(run);
                        run_set_end_from_outcome(run);
                }
                probe_release(run->probe);
                return arm(run, &run->grace_timer,
                           clock_ns(CLOCK_MONOTONIC) + (run->aborting ? GRACE_NS : CLOSING_NS),
                           on_grace_over);
        case PROBE_GONE:
                break;
        }

        source_free(&run->probe_source);
        source_free(&run->grace_timer);
        run->gone = true;
        if (run->ended) {
                run->events.gone(run, run->events.userdata);
                return 0;
        }
        close_window(run);
        refresh(run);
        run_set_end_from_outcome(run);
        if (!run->profile.ramp || !next_step(run))
                finish(run);
        return 0;
}

/* ---- what the owner does ---- */

static size_t row_names(const Run *run, const char *names[64])
{
        return device_row_names(run->record->device, names, 64);
}

/* What the writers are to do now. A test by duration starts a fresh file after count blocks; a step of a ramp
 * is over then, or when its time is. */
static ProbePlan make_plan(const Run *run, const char *names[64])
{
        const Profile *profile = &run->profile;
        uint64_t time_ns = run_time_ns(run);
        bool endless = profile->duration_ns > 0 && !profile->ramp;

        return (ProbePlan){ .path = run->record->place ? run->record->place : run->record->path,
                            .block_size = profile->block_size,
                            .count = endless ? INT64_MAX / profile->block_size
                                             : ramp_count(profile, run->streams),
                            .streams = run->streams,
                            .pattern = profile->pattern,
                            /* A ramp asks for the most that the device takes, not for what dd would see. */
                            .as_dd = !profile->ramp,
                            .min_free_bytes = run->guard.min_free.bytes,
                            .min_free_ratio = run->guard.min_free.ratio,
                            .wrap_bytes = endless ? profile->block_size * profile->count : 0,
                            .limit_ns = time_ns == UINT64_MAX ? 0 : time_ns,
                            .procfs = run->procfs,
                            .sysfs = run->sysfs,
                            .rows = names,
                            .n_rows = row_names(run, names),
                            .interval_ns = run->interval_ns };
}

static int start_probe(Run *run)
{
        const char *names[64];
        const ProbePlan plan = make_plan(run, names);

        int r = probe_new(&plan, &run->probe);
        if (r < 0)
                return r;
        r = sd_event_add_io(run->event, &run->probe_source, probe_get_fd(run->probe), EPOLLIN, on_probe, run);
        if (r < 0)
                return r;
        /* Highest priority: when a timer and the writers' end are due together, the end counts. */
        (void) sd_event_source_set_priority(run->probe_source, SD_EVENT_PRIORITY_IMPORTANT);
        return arm(run, &run->grace_timer, clock_ns(CLOCK_MONOTONIC) + CLOSING_NS, on_grace_over);
}

static int start_sampler(Run *run)
{
        const char *names[64];

        return sampler_new(&run->sampler, run->procfs, run->sysfs, names, row_names(run, names));
}

void run_start(Run *run, const char *place, const Device *device, DiskLock *lock,
               double background_write_mb_per_s)
{
        RunRecord *record = run->record;

        run->lock = lock;
        record->state = RUN_RUNNING;
        record->started_real_ns = (int64_t) clock_ns(CLOCK_REALTIME);
        record->background_write_mb_per_s = background_write_mb_per_s;
        record->place = place ? strdup(place) : NULL;
        int r = device ? device_copy(device, &record->device) : 0;
        if (place && !record->place)
                run_set_not_started(run, REASON_ABORTED,
                                    "This host is out of memory. Free some and run again.");
        else if (r < 0 || !device)
                run_set_not_started(run, REASON_NO_BLOCK_DEVICE,
                                    "No block device was found under %s. Test a directory on a local disk.",
                                    record->path);
        else if (device->status == DEVICE_NOT_MOUNTED)
                run_set_not_started(run, REASON_NOT_MOUNTED, "%s: %s. Mount the disk and run again.",
                                    record->path, device->detail ? device->detail : "not mounted");
        else if (device->status != DEVICE_OK)
                run_set_not_started(run, REASON_NO_BLOCK_DEVICE,
                                    "%s: %s. Test a directory on a local disk, or name the disk below with "
                                    "device = NAME.",
                                    record->path, device->detail ? device->detail : "no block device");
        for (size_t i = 0; !run->end_known && i < record->device->n_rows; i++) {
                const DeviceNode *node = &record->device->nodes[record->device->rows[i]];

                if (node->iostats == 0)
                        run_set_not_started(run, REASON_COUNTERS_DISABLED,
                                            "%s does not count its I/O (queue/iostats is 0). Write 1 to "
                                            "/sys/block/%s/queue/iostats and run again.",
                                            node->name, node->name);
        }
        if (!run->end_known) {
                surroundings_begin(run);
                r = start_sampler(run);
                if (r >= 0)
                        r = start_probe(run);
                if (r < 0)
                        run_set_not_started(run, REASON_ABORTED,
                                            "The test of %.150s could not be set up: %s. Run again.",
                                            run->record->path, strerror(-r));
        }
        if (run->end_known) {
                stop_probe(run);
                finish_unstarted(run);
                return;
        }
        run->events.changed(run, run->events.userdata);
}

void run_set_companions(Run *run, const RunCompanion *all, size_t n)
{
        RunRecord *record = run->record;

        free(record->companions);
        record->n_companions = 0;
        record->companions = calloc(n, sizeof *record->companions);
        for (size_t i = 0; record->companions && i < n; i++)
                if (strcmp(all[i].run_id, record->id) != 0)
                        record->companions[record->n_companions++] = all[i];
}

void run_refuse(Run *run, ReasonCode reason, const char *detail)
{
        if (run->end_known || run->probe)
                return;
        run_set_not_started(run, reason, "%s", detail);
        finish_unstarted(run);
}

void run_abort(Run *run, const char *detail)
{
        if (run->ended || run->aborting)
                return;
        run->aborting = true;
        /* That a step of a ramp has ended well is not the end of the run. */
        if (run->profile.ramp && run->end == TEST_COMPLETE)
                run->end_known = false;
        if (!run->end_known)
                (void) snprintf(run->detail, sizeof run->detail, "%s", detail);
        run_set_end(run, TEST_ABORTED);
        if (!run->probe) {
                finish_unstarted(run);
                return;
        }
        /* Asked first: one that is making its file must not be killed while that has a name. */
        probe_stop(run->probe);
        (void) arm(run, &run->grace_timer, clock_ns(CLOCK_MONOTONIC) + GRACE_NS, on_grace_over);
}

void run_cut(Run *run, const char *detail)
{
        bool unstarted = !run->probe;

        run_abort(run, detail);
        /* Without writers that was the end, and the run may be freed. */
        if (!unstarted && !run->ended) {
                close_window(run);
                finish(run); /* the time of grace goes on for the writers */
        }
}

const RunRecord *run_record(Run *run)
{
        refresh(run);
        return run->record;
}

RunRecord *run_take_record(Run *run)
{
        return run->ended ? TAKE_PTR(run->record) : NULL;
}

bool run_is_gone(const Run *run)
{
        return run->gone;
}
