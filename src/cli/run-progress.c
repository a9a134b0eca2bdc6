/* SPDX-License-Identifier: Apache-2.0 */
/* Progress on stderr while a run goes on: a bar and iostat-like rows on a terminal, plain lines elsewhere. */

#include "run-progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BAR_WIDTH 30
#define HEADER_EVERY 20

/* The judge's MB/s, so that one can be held against the other: wkB/s / 1000. */
#define MB 1024e3

void progress_begin(Progress *progress)
{
        *progress = (Progress){ .terminal = isatty(STDERR_FILENO) != 0 };
        spare_output_begin(&progress->output, STDERR_FILENO);
}

static void clear_bar(Progress *progress)
{
        if (progress->bar_shown)
                spare_output_write(&progress->output, "\r\033[K");
        progress->bar_shown = false;
}

void progress_say(Progress *progress, const char *text)
{
        clear_bar(progress);
        spare_output_write(&progress->output, "%s\n", text);
}

void progress_row(Progress *progress, const char *device, const Metrics *metrics, double elapsed_s)
{
        clear_bar(progress);
        if (progress->terminal && progress->rows++ % HEADER_EVERY == 0)
                spare_output_write(&progress->output, "%8s %-12s %9s %12s %8s %9s %8s %7s\n", "time",
                                   "Device", "w/s", "wkB/s", "w_await", "wareq-sz", "aqu-sz", "%util");
        if (progress->terminal)
                spare_output_write(&progress->output, "%7.1fs %-12s %9.2f %12.2f %8.2f %9.2f %8.2f %7.2f\n",
                                   elapsed_s, device, metrics->w_s, metrics->wkb_s, metrics->w_await,
                                   metrics->wareq_sz, metrics->aqu_sz, metrics->util);
}

/* How far the run is, 0..1, and how long it will take; NAN where that cannot be known, as in a ramp. */
static double done_ratio(const RunRecord *record)
{
        if (record->profile.ramp)
                return NAN;
        if (record->profile.duration_ns > 0)
                return fmin(1, (double) record->elapsed_ns / (double) record->profile.duration_ns);
        return record->bytes_total > 0 ? (double) record->bytes_written / (double) record->bytes_total : NAN;
}

void progress_bar(Progress *progress, const RunRecord *record, double bytes_per_s)
{
        double elapsed_s = (double) record->elapsed_ns / 1e9, done = done_ratio(record);
        double left_s = done > 0 ? elapsed_s / done - elapsed_s : NAN;
        char percent[16] = "", left[48] = "", stalled[64] = "";

        if (isfinite(done))
                (void) snprintf(percent, sizeof percent, " (%.0f %%)", done * 100);
        if (isfinite(left_s))
                (void) snprintf(left, sizeof left, ", %.0f s left", ceil(left_s));
        if (record->stalled_ns > 0)
                (void) snprintf(stalled, sizeof stalled, ", STALLED: a write waits for %.0f s",
                                (double) record->stalled_ns / 1e9);
        if (!progress->terminal) {
                spare_output_write(&progress->output, "%.0f s: %.0f MiB written%s, %.1f MB/s%s%s\n",
                                   elapsed_s, (double) record->bytes_written / 1048576, percent,
                                   bytes_per_s / MB, left, stalled);
                return;
        }
        char bar[BAR_WIDTH + 1];
        int filled = isfinite(done) ? (int) (done * BAR_WIDTH + 0.5) : 0;

        memset(bar, '.', BAR_WIDTH);
        memset(bar, '#', (size_t) (filled < 0 ? 0 : filled > BAR_WIDTH ? BAR_WIDTH : filled));
        bar[BAR_WIDTH] = '\0';
        spare_output_write(&progress->output, "\r\033[K[%s]%s %.1f MB/s%s%s", bar, percent, bytes_per_s / MB,
                           left, stalled);
        progress->bar_shown = true;
}

void progress_end(Progress *progress)
{
        clear_bar(progress);
        spare_output_end(&progress->output);
}
