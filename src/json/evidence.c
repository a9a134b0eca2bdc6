/* SPDX-License-Identifier: Apache-2.0 */
/* The evidence of a run: what an auditor needs to check the verdict without trusting it. */

#include "json-internal.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/file.h"
#include "tierprobe/json.h"
#include "tierprobe/units.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* TEXT as one word of a shell, so that the command can be pasted. Owned by the caller; NULL when out of
 * memory. */
static char *shell_word(const char *text)
{
        static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:@%";

        if (*text && text[strspn(text, plain)] == '\0')
                return strdup(text);
        char *word = malloc(4 * strlen(text) + 3);
        if (!word)
                return NULL;
        char *out = word;
        *out++ = '\'';
        for (; *text; text++)
                if (*text == '\'')
                        out = stpcpy(out, "'\\''");
                else
                        *out++ = *text;
        *out++ = '\'';
        *out = '\0';
        return word;
}

/* The documented command that this run stands for: each stream is one such dd with a file of its own. */
static json_t *equivalent_command(const RunRecord *run)
{
        _cleanup_free_ char *file = NULL, *word = NULL, *command = NULL;
        char size[FORMAT_SIZE];

        if (!run->path)
                return json_null();
        file = path_format("%s/testfile", run->path);
        word = file ? shell_word(file) : NULL;
        command = word ? path_format("dd if=%s of=%s bs=%s count=%" PRIu64 " oflag=direct,dsync",
                                     run->profile.pattern == PATTERN_ZERO ? "/dev/zero" : "/dev/urandom",
                                     word, format_size(size, run->profile.block_size), run->profile.count)
                       : NULL;
        return command ? json_text(command) : NULL;
}

static json_t *slowest_writes(const RunRecord *run)
{
        json_auto_t *array = json_array();

        if (!array)
                return NULL;
        for (size_t i = 0; i < run->n_slowest; i++) {
                const ProbeSlowWrite *write = &run->slowest[i];

                if (json_array_append_new(
                            array, OBJECT({ "latency_ms", json_figure((double) write->latency_ns / 1e6) },
                                          { "offset_bytes", json_u64(write->offset_bytes) },
                                          { "stream", json_u64(write->stream) },
                                          { "at_s", json_seconds_from_ns(write->start_ns) })) < 0)
                        return NULL;
        }
        return TAKE_PTR(array);
}

/* How many write calls took how long, up to each bound and longer than the one before; those that took longer
 * than the last one are all the rest. */
static json_t *latency_histogram(const RunRecord *run)
{
        const LatencyCounts *counts = &run->latency_counts;
        json_auto_t *array = json_array();

        for (size_t i = 0; array && run->has_latency && i < N_LATENCY_BOUNDS; i++)
                if (json_array_append_new(
                            array, OBJECT({ "le_ms", json_figure((double) latency_bounds_ns[i] / 1e6) },
                                          { "count", json_u64(counts->up_to[i] -
                                                              (i ? counts->up_to[i - 1] : 0)) })) < 0)
                        return NULL;
        return TAKE_PTR(array);
}

/* One end of the window as the kernel's own counters: the mean figures can be worked out from the two. */
static json_t *window_edge(const Snapshot *snapshot)
{
        const Counters *counters = &snapshot->counters;

        return OBJECT({ "time", json_time_or_null(snapshot->real_ns) },
                      { "monotonic_ns", json_u64(snapshot->mono_ns) },
                      { "writes_completed", json_u64(counters->w_ios) },
                      { "sectors_written", json_u64(counters->w_sectors) },
                      { "write_ms", json_u64(counters->w_ms) }, { "io_ms", json_u64(counters->io_ms) },
                      { "queue_ms", json_u64(counters->queue_ms) });
}

/* The interval that ends at snapshot END; "full" says whether it counts as a sample. */
static json_t *window_sample(const RunRecord *run, size_t end)
{
        const Snapshot *previous = &run->samples[end - 1].row;
        const Snapshot *current = &run->samples[end].row;
        uint64_t at_ns = current->mono_ns > run->samples[0].row.mono_ns
                                 ? current->mono_ns - run->samples[0].row.mono_ns
                                 : 0;
        Metrics metrics;
        Delta delta;

        Gap gap = delta_compute(previous, current, &delta);
        if (gap == GAP_NONE)
                metrics_from_delta(&delta, &metrics);
        bool full = window_has_sample(run->n_samples, end, run->first_is_tick, run->last_is_tick,
                                      run->interval_ns, gap == GAP_NONE ? delta.interval_ns : 0);
        json_auto_t *object = OBJECT(
                { "time", json_time_or_null(current->real_ns) }, { "at_s", json_seconds_from_ns(at_ns) },
                { "interval_s", gap == GAP_NONE ? json_seconds_from_ns(delta.interval_ns) : json_null() },
                { "full", json_boolean(full) });
        if (!object)
                return NULL;
        for (size_t i = 0; i < N_METRIC_COLUMNS; i++) {
                const MetricColumn *column = &metric_columns[i];

                if (!json_put(object, column->key,
                              json_figure(gap == GAP_NONE ? metric_value(&metrics, column) : NAN)))
                        return NULL;
        }
        if (!json_put(object, "gap", gap == GAP_NONE ? json_null() : json_text(gap_to_string(gap))))
                return NULL;
        return TAKE_PTR(object);
}

static json_t *window_samples(const RunRecord *run)
{
        json_auto_t *array = json_array();

        if (!array)
                return NULL;
        for (size_t i = 1; i < run->n_samples; i++)
                if (json_array_append_new(array, window_sample(run, i)) < 0)
                        return NULL;
        return TAKE_PTR(array);
}

json_t *json_evidence(const RunRecord *run)
{
        const Device *device = run->device;

        return OBJECT(
                { "kernel", json_text_or_null(run->kernel) },
                { "hostname", json_text_or_null(run->hostname) },
                { "version", json_text_or_null(run->version) }, { "path", json_text(run->path) },
                { "mount_source", json_text(device ? device->mount_source : NULL) },
                { "mount_options", json_text(device ? device->mount_options : NULL) },
                { "super_options", json_text(device ? device->super_options : NULL) },
                { "limits", json_limits(&run->limits) }, { "command", equivalent_command(run) },
                { "background_write_mb_per_s", json_figure(run->background_write_mb_per_s) },
                { "window", run->n_samples < 2
                                    ? json_null()
                                    : OBJECT({ "start", window_edge(&run->samples[0].row) },
                                             { "end", window_edge(&run->samples[run->n_samples - 1].row) }) },
                { "leftovers_removed", json_u64(run->swept) },
                { "conditions", json_conditions(run->conditions) }, { "slowest_writes", slowest_writes(run) },
                { "latency_histogram", latency_histogram(run) }, { "samples", window_samples(run) });
}
