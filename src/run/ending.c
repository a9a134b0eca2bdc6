/* SPDX-License-Identifier: Apache-2.0 */
/* How a run ended, and what that is worth: the writers' outcome in the judge's terms, the samples that are
 * judged, the verdict. Touches the run's own memory only. */

#include "run-internal.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/path-error.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

/* Fewer blocks in an interval than this, and one block more or less at its edge (5 %) weighs too much. */
#define MIN_BLOCKS_PER_INTERVAL 20
/* Of fewer than ten, a single bad one would be more than the tenth that pass_ratio forgives. */
#define WANTED_FINE_INTERVALS 10

void run_set_end(Run *run, TestEnd end)
{
        if (run->end_known)
                return;
        run->end = end;
        run->end_known = true;
}

/* What is left of the time limit. The steps of a ramp share it. */
static uint64_t limit_left_ns(const Run *run)
{
        uint64_t limit_ns = run->guard.max_duration_ns;

        if (!limit_ns)
                return UINT64_MAX;
        return limit_ns > run->elapsed_before_ns ? limit_ns - run->elapsed_before_ns : 1;
}

static bool time_is_planned(const Run *run)
{
        return run->profile.duration_ns > 0 && run->profile.duration_ns <= limit_left_ns(run);
}

uint64_t run_time_ns(const Run *run)
{
        return time_is_planned(run) ? run->profile.duration_ns : limit_left_ns(run);
}

TestEnd run_end_by_time(const Run *run)
{
        return time_is_planned(run) ? TEST_COMPLETE : TEST_TIME_LIMIT;
}

void run_set_not_started(Run *run, ReasonCode reason, const char *format, ...)
{
        va_list ap;

        if (run->end_known)
                return;
        va_start(ap, format);
        (void) vsnprintf(run->detail, sizeof run->detail, format, ap);
        va_end(ap);
        run->start_reason = reason;
        run_set_end(run, TEST_NOT_STARTED);
}

/* The path itself, or the making of a file in it, was refused. */
static void set_not_started_at_path(Run *run)
{
        const ProbeProgress *progress = &run->progress;
        char detail[sizeof run->detail];

        path_error_describe(detail, sizeof detail, run->record->path, progress->error, &progress->denial);
        /* Read-only in the middle of a test a device has failed; before it nobody was to write there. */
        run_set_not_started(
                run, progress->error == EROFS ? REASON_NOT_PERMITTED : path_error_find(progress->error).code,
                "%s", detail);
}

static void set_killed(Run *run)
{
        char how[320];

        if (surroundings_killed_for_memory(run, how, sizeof how))
                (void) snprintf(run->detail, sizeof run->detail,
                                "Writer %u was killed: the kernel found no memory for it (%s)",
                                run->progress.failed_stream, how);
        else
                (void) snprintf(run->detail, sizeof run->detail, "Writer %u was killed from outside",
                                run->progress.failed_stream);
}

void run_set_end_from_outcome(Run *run)
{
        const ProbeProgress *progress = &run->progress;
        const char *path = run->record->path;
        const char *text = strerror(progress->error);

        switch (progress->outcome) {
        case PROBE_OK:
                run_set_end(run, TEST_COMPLETE);
                break;
        case PROBE_STOPPED: /* an abort has said so */
                run_set_end(run, run_end_by_time(run));
                break;
        case PROBE_KILLED:
                if (!run->end_known)
                        set_killed(run);
                run_set_end(run, TEST_ABORTED);
                break;
        case PROBE_PATH_MISSING:
        case PROBE_SYMLINK:
        case PROBE_NOT_WRITABLE:
                set_not_started_at_path(run);
                break;
        case PROBE_DIRECT_REFUSED:
                if (progress->writing_failed) {
                        run_set_not_started(
                                run, REASON_DIRECT_IO_UNSUPPORTED,
                                "%s: the file system refuses direct writes of %.0f KiB. Use a larger "
                                "block_size, or test a file system with direct I/O.",
                                path, (double) run->record->profile.block_size / 1024);
                        break;
                }
                run_set_not_started(run, REASON_DIRECT_IO_UNSUPPORTED,
                                    "%s: the file system refuses O_DIRECT. Test a directory on a local "
                                    "disk's file system.",
                                    path);
                break;
        case PROBE_NO_SPACE:
                if (progress->writing_failed)
                        run_set_end(run, TEST_NO_SPACE);
                else if (progress->error != ENOSPC || progress->free_bytes >= progress->needed_bytes)
                        set_not_started_at_path(run);
                else
                        run_set_not_started(
                                run, REASON_NO_SPACE,
                                "%.0f MiB are free in %s, the test and its reserve need %.0f MiB. Free "
                                "some, or use a smaller profile.",
                                (double) progress->free_bytes / 1048576, path,
                                (double) progress->needed_bytes / 1048576);
                break;
        case PROBE_WRITE_ERROR:
                if (progress->writing_failed)
                        run_set_end(run, TEST_WRITE_ERROR);
                else
                        set_not_started_at_path(run);
                break;
        case PROBE_INTERNAL:
        case _PROBE_OUTCOME_MAX:
                run_set_not_started(run, REASON_ABORTED,
                                    "The test of %.150s could not be set up: %s. Run again.", path, text);
                break;
        }
}

/* ---- the verdict ---- */

/* What a file system writes of its own for each synced write that makes a file grow, with room to spare
 * (measured: xfs 1.5 KiB, ext4 20 to 24, btrfs 122 to 175). Taken for foreign it would excuse every slow disk
 * that carries btrfs, or is tested with small blocks. */
static uint64_t metadata_bytes_per_block(const Device *device)
{
        const char *filesystem = device && device->filesystem ? device->filesystem : "";

        if (strcmp(filesystem, "xfs") == 0)
                return UINT64_C(4) << 10;
        if (strcmp(filesystem, "btrfs") == 0)
                return UINT64_C(256) << 10;
        return UINT64_C(36) << 10;
}

/* Regular intervals are judged when as many of them lie inside the writers' time as the judge needs to pass a
 * run. With fewer the finer ones serve, thinned to the longest of which there are enough: a disk that takes
 * 10,000 MiB in 2 s has but one whole second to look at, and the shorter an interval, the more a hiccup
 * weighs that the documented one second would average out. */
static bool ticks_suffice(const Series *ticks, uint64_t end_ns)
{
        size_t n = 0;

        while (n + 1 < ticks->n && (end_ns == 0 || ticks->items[n + 1].row.mono_ns <= end_ns))
                n++;
        return n >= MIN_SAMPLES_TO_PASS;
}

/* RET_INTERVAL_NS: how far apart they are meant to be, at least the sampling interval: only what is coarser
 * than that leaves open how steady the device was. */
static int take_series(Run *run, Series *ret, uint64_t *ret_interval_ns)
{
        uint64_t blocks = run->progress.blocks_written;
        size_t wanted = blocks / MIN_BLOCKS_PER_INTERVAL > WANTED_FINE_INTERVALS
                                ? WANTED_FINE_INTERVALS
                                : (size_t) (blocks / MIN_BLOCKS_PER_INTERVAL);

        *ret_interval_ns = run->interval_ns;
        int r = probe_samples(run->probe, false, ret);
        if (r < 0)
                return r;
        if (ticks_suffice(ret, run->progress.end_ns)) {
                *ret_interval_ns *= ret->stride;
                return 0;
        }
        series_done(ret);
        r = probe_samples(run->probe, true, ret);
        if (r < 0)
                return r;
        series_thin(ret, wanted > 0 ? wanted : 1);
        if (PROBE_FINE_NS * ret->stride > *ret_interval_ns)
                *ret_interval_ns = PROBE_FINE_NS * ret->stride;
        return 0;
}

/* Takes the readings that are judged into the record, as the window's. The series' own number 0 was taken a
 * moment after the writers were let go: the reading before that is the window's first. */
static int collect_samples(Run *run, RunWindow *window)
{
        RunRecord *record = run->record;
        Series series = { 0 };

        free(record->samples);
        record->samples = NULL;
        record->n_samples = 0;
        if (!run->window_open)
                return 0;
        uint64_t interval_ns = 0;
        int r = take_series(run, &series, &interval_ns);
        if (r == -ENOMEM)
                return r;
        size_t n = series.n > 0 ? series.n - 1 : 0;
        Gap pending = series.pending_gap;
        record->samples = calloc(n + 2, sizeof *record->samples);
        if (!record->samples) {
                series_done(&series);
                return -ENOMEM;
        }
        record->samples[0] = run->first;
        if (n > 0)
                memcpy(record->samples + 1, series.items + 1, n * sizeof *series.items);
        record->samples[n + 1] = run->last;
        if (n > 0 && record->samples[1].row.gap == GAP_NONE)
                record->samples[1].row.gap = series.items[0].row.gap;
        if (record->samples[n + 1].row.gap == GAP_NONE)
                record->samples[n + 1].row.gap = pending;
        series_done(&series);

        window->readings = record->samples;
        window->n_readings = n + 2;
        window->begin_ns = run->progress.begin_ns;
        window->end_ns = run->progress.end_ns;
        window->interval_ns = interval_ns;
        window->in_flight_bytes = run->streams * record->profile.block_size;
        window->own_bytes_ratio =
                (double) metadata_bytes_per_block(record->device) / (double) record->profile.block_size +
                (record->device && record->device->journals_data);
        window_settle(window);
        record->n_samples = window->n_readings;
        record->first_is_tick = window->first_is_tick;
        record->last_is_tick = window->last_is_tick;
        record->interval_ns = window->interval_ns;
        return 0;
}

void run_judge(Run *run)
{
        RunRecord *record = run->record;
        const Device *device = record->device;
        _cleanup_free_ Histogram *histogram = calloc(1, sizeof *histogram);
        RunWindow window = { 0 };
        SurroundingsTexts texts;
        Surroundings around;

        if (run->probe && histogram) {
                probe_latency(run->probe, histogram);
                latency_summary_from_histogram(histogram, &record->latency);
                record->has_latency = histogram->count > 0;
                latency_counts_add_histogram(&record->latency_counts, histogram);
                record->n_slowest = probe_slowest(run->probe, record->slowest);
                if (histogram->max_ns > run->longest_stall_ns)
                        run->longest_stall_ns = histogram->max_ns;
        }
        if (collect_samples(run, &window) < 0)
                run_set_not_started(run, REASON_ABORTED,
                                    "This host is out of memory. Free some and run again.");

        RunFacts facts = {
                .end = run->end,
                .start_reason = run->start_reason,
                .start_detail = run->detail,
                .write_errno = run->progress.error,
                .write_offset_bytes = run->progress.failed_offset_bytes,
                .abort_detail = run->detail[0] ? run->detail : NULL,
                .device_name = device && device->status == DEVICE_OK ? device->name : NULL,
                .time_limit_ns = record->max_duration_ns,
                .readings = record->samples,
                .n_readings = record->n_samples,
                .first_is_tick = record->first_is_tick,
                .last_is_tick = record->last_is_tick,
                .writers_ns = window.end_ns > window.begin_ns ? window.end_ns - window.begin_ns : 0,
                .unseen_ns = window.unseen_ns,
                .interval_ns = window.interval_ns,
                .bytes_total = record->bytes_total,
                .bytes_written = run->progress.bytes_written,
                .block_size = record->profile.block_size,
                .metadata_bytes_per_block = metadata_bytes_per_block(device),
                .streams = run->streams,
                .journals_data = device && device->journals_data,
                .rows_summed = device && device->n_rows > 1,
                .compresses = device && device->filesystem && strcmp(device->filesystem, "btrfs") == 0,
                .background_write_mb_per_s = record->background_write_mb_per_s,
                .longest_stall_ns = run->longest_stall_ns,
                .stall_limit_ns = STALL_LIMIT_NS,
        };
        for (size_t i = 0; device && i < device->n_rows; i++)
                facts.iostats_disabled =
                        facts.iostats_disabled || device->nodes[device->rows[i]].iostats == 0;
        facts.cache_in_front = device && device->cache_in_front && !device->leaves_serve;
        judge_run(&record->limits, &facts, &record->judgement);
        if (record->conditions) { /* once more, now that the figures tell which limits were reached */
                surroundings_describe(run, &record->judgement, &texts, &around);
                facts.surroundings = &around;
                judge_run(&record->limits, &facts, &record->judgement);
        }
}

RunState run_state_after(TestEnd end)
{
        switch (end) {
        case TEST_COMPLETE:
        case TEST_TIME_LIMIT:
        case TEST_WRITE_ERROR:
                return RUN_FINISHED;
        case TEST_ABORTED:
                return RUN_ABORTED;
        case TEST_NOT_STARTED:
        case TEST_NO_SPACE:
        case _TEST_END_MAX:
                break;
        }
        return RUN_FAILED;
}
