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

void progress_begin(Progress *progress, bool quiet)
{
        *progress = (Progress){ .terminal = isatty(STDERR_FILENO) != 0, .quiet = quiet };
}

static void clear_bar(Progress *progress)
{
        if (progress->bar_shown)
                (void) fputs("\r\033[K", stderr);
        progress->bar_shown = false;
}

void progress_row(Progress *progress, const char *device, const Metrics *metrics, double elapsed_s)
{
        if (progress->quiet)
                return;
        clear_bar(progress);
        if (progress->terminal && progress->rows++ % HEADER_EVERY == 0)
                (void) fprintf(stderr, "%8s %-12s %9s %12s %8s %9s %8s %7s\n", "time", "Device", "w/s",
                               "wkB/s", "w_await", "wareq-sz", "aqu-sz", "%util");
        if (progress->terminal)
                (void) fprintf(stderr, "%7.1fs %-12s %9.2f %12.2f %8.2f %9.2f %8.2f %7.2f\n", elapsed_s,
                               device, metrics->w_s, metrics->wkb_s, metrics->w_await, metrics->wareq_sz,
                               metrics->aqu_sz, metrics->util);
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

void progress_bar(Progress *progress, const RunRecord *record, double last_mb_per_s)
{
        double elapsed_s = (double) record->elapsed_ns / 1e9, done = done_ratio(record);
        double left_s = done > 0 ? elapsed_s / done - elapsed_s : NAN;
        char percent[16] = "", left[48] = "", stalled[64] = "";

        if (progress->quiet)
                return;
        if (isfinite(done))
                (void) snprintf(percent, sizeof percent, " (%.0f %%)", done * 100);
        if (isfinite(left_s))
                (void) snprintf(left, sizeof left, ", %.0f s left", ceil(left_s));
        if (record->stalled_ns > 0)
                (void) snprintf(stalled, sizeof stalled, ", STALLED: a write waits for %.0f s",
                                (double) record->stalled_ns / 1e9);
        if (!progress->terminal) {
                (void) fprintf(stderr, "%.0f s: %.0f MiB written%s, %.1f MB/s%s%s\n", elapsed_s,
                               (double) record->bytes_written / 1048576, percent, last_mb_per_s, left,
                               stalled);
                return;
        }
        char bar[BAR_WIDTH + 1];
        int filled = isfinite(done) ? (int) (done * BAR_WIDTH + 0.5) : 0;

        memset(bar, '.', BAR_WIDTH);
        memset(bar, '#', (size_t) (filled < 0 ? 0 : filled > BAR_WIDTH ? BAR_WIDTH : filled));
        bar[BAR_WIDTH] = '\0';
        (void) fprintf(stderr, "\r\033[K[%s]%s %.1f MB/s%s%s", bar, percent, last_mb_per_s, left, stalled);
        (void) fflush(stderr);
        progress->bar_shown = true;
}

void progress_end(Progress *progress)
{
        clear_bar(progress);
}
