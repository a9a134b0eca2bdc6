/* SPDX-License-Identifier: Apache-2.0 */
/* The window of each device (see capture.h) and its means and samples. Knows verdict. */

#include "capture-window.h"

#include "tierprobe/cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

__extension__ typedef __int128 Wide; /* sums of products cannot overflow it within any file's length */

typedef struct DeviceWindow {
        uint64_t first, last; /* reports; 0: none */
        uint64_t stored;      /* rows in it that are stored */
        uint64_t damaged, absurd;
        uint64_t passing, missing[N_CRITERIA];
        Wide wkb, w_s, await_by_w_s, await_by_wkb;
        Wide first_third, last_third; /* of wkb */
        int64_t worst_wkb;
} DeviceWindow;

typedef struct Survey {
        const Limits *limits;
        const Rows *rows;
        DeviceWindow *windows;
} Survey;

static void find_edges(const Row *row, void *data)
{
        const Survey *survey = data;
        DeviceWindow *window = &survey->windows[row->device];

        /* peak <= 2e12, so ten times it does not overflow */
        if (row->kind != ROW_GOOD || row->wkb * 10 < survey->rows->devices[row->device].peak_wkb)
                return;
        if (window->first == 0)
                window->first = row->report;
        window->last = row->report;
}

static uint64_t window_length(const DeviceWindow *window)
{
        return window->first ? window->last - window->first + 1 : 0;
}

/* The test began and ended within its first and last row. */
static void trim(DeviceWindow *window)
{
        if (window_length(window) < 3)
                return;
        window->first++;
        window->last--;
}

static void add_row(const Row *row, void *data)
{
        const Survey *survey = data;
        DeviceWindow *window = &survey->windows[row->device];

        if (window->first == 0 || row->report < window->first || row->report > window->last)
                return;
        window->stored++;
        switch (row->kind) {
        case ROW_DAMAGED:
                window->damaged++;
                return;
        case ROW_ABSURD:
                window->absurd++;
                return;
        case ROW_GOOD:
                break;
        }
        Metrics figures = { .wkb_s = (double) row->wkb / SCALE_WKB,
                            .w_await = (double) row->w_await / SCALE_AWAIT };
        bool passes = true;
        for (CriterionName name = 0; name < N_CRITERIA; name++) {
                bool met = criterion_met(survey->limits, name, criterion_value(name, &figures));

                window->missing[name] += !met;
                passes &= met;
        }
        window->passing += passes;
        window->wkb += row->wkb;
        window->w_s += row->w_s;
        window->await_by_w_s += (Wide) row->w_await * row->w_s;
        window->await_by_wkb += (Wide) row->w_await * row->wkb;
        if (row->wkb < window->worst_wkb)
                window->worst_wkb = row->wkb;

        uint64_t third = window_length(window) / 3, at = row->report - window->first;
        if (at < third)
                window->first_third += row->wkb;
        else if (at >= window_length(window) - third)
                window->last_third += row->wkb;
}

/* SUM / N / SCALE, exact where the result is. */
static double mean(Wide sum, Wide n, int64_t scale)
{
        if (n == 0)
                return NAN;
        Wide whole = sum / n, rest = sum % n;
        return ((double) whole + (double) rest / (double) n) / (double) scale;
}

static unsigned clamp_unsigned(uint64_t n)
{
        return n > UINT_MAX ? UINT_MAX : (unsigned) n;
}

static void doubt(const Limits *limits, const RowDevice *device, const DeviceWindow *window, uint64_t total,
                  Reasons *reasons)
{
        if (device->rows == 0) {
                reasons_add(
                        reasons, REASON_COLUMN_MISSING,
                        "The rows of %s lack wkB/s or w_await, which sysstat before 9.1.2, -s and reports "
                        "without -x do not print. Capture with: iostat -xyz 1.",
                        device->name);
                return;
        }
        if (window->absurd > 0 || (device->stored > 0 && device->peak_wkb < 0))
                reasons_add(reasons, REASON_COUNTERS_RESET,
                            "%" PRIu64 " of the rows of %s show figures no device has: its counters were "
                            "reset. Capture again.",
                            window->absurd ? window->absurd : device->stored, device->name);
        else if (device->stored == 0)
                reasons_add(reasons, REASON_NO_WRITE_COMPLETED,
                            "No write completed on %s in %" PRIu64
                            " row(s) of the capture. Run iostat -xyz 1 "
                            "while the test writes to it.",
                            device->name, device->rows);
        else if ((double) window->damaged > (1 - limits->pass_ratio) * (double) (total + window->damaged))
                reasons_add(reasons, REASON_TOO_FEW_SAMPLES,
                            "%" PRIu64 " of %" PRIu64 " rows of %s cannot be read. Capture again.",
                            window->damaged, total + window->damaged, device->name);
}

static void judge_device(const Limits *limits, const RowDevice *device, const DeviceWindow *window,
                         Judgement *ret)
{
        uint64_t length = window_length(window), total = length - window->damaged - window->absurd;
        uint64_t quiet = length - window->stored, third = length / 3;
        RowFacts facts = {
                .device_name = device->name,
                .rows = clamp_unsigned(length),
                .rounding = { [CRITERION_WRITE_THROUGHPUT] = device->wkb_rounding,
                              [CRITERION_WRITE_LATENCY] = device->w_await_rounding },
                .first_third_wkb_s = mean(window->first_third, third, SCALE_WKB),
                .last_third_wkb_s = mean(window->last_third, third, SCALE_WKB),
                .worst_wkb_s = total == 0  ? NAN
                               : quiet > 0 ? 0
                                           : (double) window->worst_wkb / SCALE_WKB,
                .samples_total = clamp_unsigned(total),
                .samples_passing = clamp_unsigned(window->passing),
                .samples_dropped = clamp_unsigned(window->damaged + window->absurd),
        };

        metrics_forget(&facts.means);
        facts.means.wkb_s = mean(window->wkb, total, SCALE_WKB);
        facts.means.w_s = mean(window->w_s, total, SCALE_WKB);
        /* Without a w/s column the bytes are the weights. */
        facts.means.w_await = window->w_s > 0 ? mean(window->await_by_w_s, window->w_s, SCALE_AWAIT)
                                              : mean(window->await_by_wkb, window->wkb, SCALE_AWAIT);
        for (CriterionName name = 0; name < N_CRITERIA; name++)
                facts.samples_missing[name] = clamp_unsigned(window->missing[name] + quiet);
        doubt(limits, device, window, total, &ret->reasons);
        judge_rows(limits, &facts, ret);
}

int window_judge(const Limits *limits, Rows *rows, Judgement *ret)
{
        _cleanup_free_ DeviceWindow *windows = calloc(rows->n_devices + 1, sizeof *windows);
        Survey survey = { .limits = limits, .rows = rows, .windows = windows };

        if (!windows)
                return -ENOMEM;
        int r = rows_visit(rows, find_edges, &survey);
        if (r < 0)
                return r;
        for (size_t i = 0; i < rows->n_devices; i++) {
                windows[i].worst_wkb = INT64_MAX;
                trim(&windows[i]);
        }
        r = rows_visit(rows, add_row, &survey);
        if (r < 0)
                return r;
        for (size_t i = 0; i < rows->n_devices; i++)
                judge_device(limits, &rows->devices[i], &windows[i], &ret[i]);
        return 0;
}
