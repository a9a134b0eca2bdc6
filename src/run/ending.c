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
        run_set_not_started(run, path_error_find(progress->error).code, "%s", detail);
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
        case PROBE_STOPPED: /* by the deadline or an abort, which have said so */
                run_set_end(run, TEST_ABORTED);
                break;
        case PROBE_KILLED:
                if (!run->end_known)
                        (void) snprintf(run->detail, sizeof run->detail,
                                        "Writer %u was killed from outside (out of memory?)",
                                        progress->failed_stream);
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
                                path, (double) run->record->block_size / 1024);
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

/* Takes the series that is judged into the record, with the window's edges around it. */
static int collect_samples(Run *run)
{
        RunRecord *record = run->record;
        bool by_ticks = run->ticks.n > MIN_TICK_INTERVALS;
        Series *series = by_ticks ? &run->ticks : &run->fine;
        uint64_t blocks = run->progress.blocks_written;

        if (!run->window_open)
                return 0;
        if (!by_ticks) {
                size_t wanted = blocks / MIN_BLOCKS_PER_INTERVAL > WANTED_FINE_INTERVALS
                                        ? WANTED_FINE_INTERVALS
                                        : (size_t) (blocks / MIN_BLOCKS_PER_INTERVAL);
                series_thin(series, wanted > 0 ? wanted : 1);
        }
        free(record->samples);
        record->n_samples = 0;
        record->samples = calloc(series->n + 2, sizeof *record->samples);
        if (!record->samples)
                return -ENOMEM;
        /* The fine series begins with the window's own first snapshot. */
        record->first_is_tick = !by_ticks;
        if (by_ticks)
                record->samples[record->n_samples++] = run->first;
        memcpy(record->samples + record->n_samples, series->items, series->n * sizeof *series->items);
        record->n_samples += series->n;
        if (run->last.gap == GAP_NONE)
                run->last.gap = series->pending_gap;
        record->samples[record->n_samples++] = run->last;
        return 0;
}

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

void run_judge(Run *run)
{
        RunRecord *record = run->record;
        const Device *device = record->device;
        _cleanup_free_ Histogram *histogram = calloc(1, sizeof *histogram);

        if (run->probe && histogram) {
                probe_latency(run->probe, histogram);
                latency_summary_from_histogram(histogram, &record->latency);
                record->has_latency = histogram->count > 0;
                record->n_slowest = probe_slowest(run->probe, record->slowest);
                if (histogram->max_ns > run->longest_stall_ns)
                        run->longest_stall_ns = histogram->max_ns;
        }
        if (collect_samples(run) < 0)
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
                .snapshots = record->samples,
                .n_snapshots = record->n_samples,
                .first_is_tick = record->first_is_tick,
                .last_is_tick = record->last_is_tick,
                .bytes_total = record->bytes_total,
                .bytes_written = run->progress.bytes_written,
                .block_size = record->block_size,
                .metadata_bytes_per_block = metadata_bytes_per_block(device),
                .streams = run->streams,
                .rows_summed = device && device->n_rows > 1,
                .compresses = device && device->filesystem && strcmp(device->filesystem, "btrfs") == 0,
                .background_write_mb_per_s = record->background_write_mb_per_s,
                .longest_stall_ns = run->longest_stall_ns,
                .stall_limit_ns = STALL_LIMIT_NS,
        };
        for (size_t i = 0; device && i < device->n_rows; i++) {
                const DeviceNode *node = &device->nodes[device->rows[i]];
                facts.iostats_disabled = facts.iostats_disabled || node->iostats == 0;
                facts.cache_in_front = facts.cache_in_front || (node->kind == DEVICE_LOOP && node->dio == 0);
        }
        judge_run(&record->limits, &facts, &record->judgement);
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
