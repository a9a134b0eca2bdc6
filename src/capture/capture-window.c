/* SPDX-License-Identifier: Apache-2.0 */
/* The window of each device (see capture.h) and its means and samples. Knows verdict. */

#include "capture-window.h"

#include "tierprobe/cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

__extension__ typedef __int128 Wide; /* sums of products cannot overflow it within any file's length */

typedef struct DeviceWindow {
        uint64_t first, last; /* reports; 0: none */
        uint64_t stored;      /* rows in it that are stored */
        uint64_t damaged, absurd;
        uint64_t lost; /* reports in it of which something was lost, and no row of the device is there */
        uint64_t passing, missing[N_CRITERIA];
        Wide wkb, w_s, await_by_w_s, await_by_wkb;
        Wide first_third, last_third; /* of wkb */
        int64_t worst_wkb;
} DeviceWindow;

typedef struct Survey {
        const Limits *limits;
        const Rows *rows;
        DeviceWindow *windows;
        int64_t divisor; /* of the throughput: more than 1 when sectors stand for kB or MB */
} Survey;

/* A device without a single row that has both columns is judged on what the others prove. */
static RowKind kind_judged(const RowDevice *device)
{
        size_t n_kinds = 0;

        for (CriterionName name = 0; name < N_CRITERIA; name++)
                n_kinds += device->rows_partial[name] > 0;
        return device->rows_read == 0 && n_kinds <= 1 ? ROW_PARTIAL : ROW_GOOD;
}

static int64_t peak(const RowDevice *device)
{
        return kind_judged(device) == ROW_GOOD ? device->peak_wkb : device->peak_partial;
}

static void find_edges(const Row *row, void *data)
{
        const Survey *survey = data;
        DeviceWindow *window = &survey->windows[row->device];

        const RowDevice *device = &survey->rows->devices[row->device];

        /* peak <= 1e13, so ten times it does not overflow */
        if (row->kind != kind_judged(device) || row->wkb * 10 < peak(device))
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

static void add_figures(const Survey *survey, const Row *row, DeviceWindow *window)
{
        bool passes = true;
        Metrics figures;

        metrics_forget(&figures); /* no other columns are read */
        figures.wkb_s = (double) row->wkb / SCALE_WKB / (double) survey->divisor;
        figures.w_await = (double) row->w_await / SCALE_AWAIT;
        /* With one of the columns missing, a row cannot be said to meet both limits. */
        for (CriterionName name = 0; row->kind == ROW_GOOD && name < N_CRITERIA; name++) {
                bool met = criterion_met(survey->limits, name, criterion_value(name, &figures));

                window->missing[name] += !met;
                passes &= met;
        }
        window->passing += passes && row->kind == ROW_GOOD;
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

static void add_row(const Row *row, void *data)
{
        const Survey *survey = data;
        DeviceWindow *window = &survey->windows[row->device];

        if (window->first == 0 || row->report < window->first || row->report > window->last)
                return;
        window->stored++;
        window->lost -= rows_is_lost(survey->rows, row->report);
        switch (row->kind) {
        case ROW_DAMAGED:
                window->damaged++;
                return;
        case ROW_ABSURD:
                window->absurd++;
                return;
        case ROW_PARTIAL:
        case ROW_GOOD:
                /* A field that the other rows have was lost from a partial one among good ones. */
                if (row->kind == kind_judged(&survey->rows->devices[row->device]))
                        add_figures(survey, row, window);
                else
                        window->damaged++;
                return;
        }
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

/* ---- why the rows of a device cannot be judged ---- */

static const char *const damage_texts[N_DAMAGES] = {
        [DAMAGE_CUT] = "cut, overwritten, or with what is no number. Capture again",
        [DAMAGE_WRAPPED] = "wrapped over two lines. Capture into a file: iostat -xyz 1 > FILE",
        [DAMAGE_MARKS] =
                "decimal points and commas are mixed, as in 716,800 beside 0.00, and nobody can tell "
                "which ones separate thousands. Capture with: LC_ALL=C iostat -xyz 1",
        [DAMAGE_CONTRADICTION] =
                "wkB/s is not what w/s and the mean size of a write make, so that a digit or a "
                "column was lost. Capture again",
        [DAMAGE_LOST_FIELD] = "wkB/s or w_await is missing, which other rows have. Capture again",
};

/* The damaged rows in the whole file by their cause. */
static uint64_t count_damaged(const RowDevice *device, Damage damage)
{
        bool has_others = damage == DAMAGE_LOST_FIELD && kind_judged(device) == ROW_GOOD;

        return device->damaged[damage] + (has_others ? rows_count_partial(device) : 0);
}

/* Why most of them are. */
static const char *main_damage(const RowDevice *device)
{
        Damage most = DAMAGE_CUT;

        for (Damage i = most; i < N_DAMAGES; i++)
                if (count_damaged(device, i) > count_damaged(device, most))
                        most = i;
        return damage_texts[most];
}

static uint64_t sum_damaged(const RowDevice *device)
{
        uint64_t n = 0;

        for (Damage i = 0; i < N_DAMAGES; i++)
                n += count_damaged(device, i);
        return n;
}

static const char *rows_word(uint64_t n)
{
        return n == 1 ? "row" : "rows";
}

static void doubt_unwritten(const RowDevice *device, Reasons *reasons)
{
        uint64_t damaged = sum_damaged(device);

        if (device->absurd > 0)
                reasons_add(reasons, REASON_COUNTERS_RESET,
                            "%" PRIu64 " %s of %s %s figures that no device has: its counters were reset. "
                            "Capture again.",
                            device->absurd, rows_word(device->absurd), device->name,
                            device->absurd == 1 ? "shows" : "show");
        else if (damaged > 0)
                reasons_add(reasons, REASON_UNREADABLE_ROWS,
                            "%" PRIu64 " of %" PRIu64 " %s of %s cannot be read: %s.", damaged,
                            rows_count(device), rows_word(rows_count(device)), device->name,
                            main_damage(device));
        else if (device->hung > 0)
                reasons_add(
                        reasons, REASON_NO_WRITE_COMPLETED,
                        "%s hung: busy all the time with %.0f requests in its queue, it completed nothing "
                        "in %" PRIu64 " of %" PRIu64 " %s. Look at the kernel log.",
                        device->name, device->hung_queue, device->hung, rows_count(device),
                        rows_word(rows_count(device)));
        else
                reasons_add(reasons, REASON_NO_WRITE_COMPLETED,
                            "No write completed on %s in %" PRIu64 " %s of the capture. Run iostat -xyz 1 "
                            "while the test writes to it.",
                            device->name, rows_count(device), rows_word(rows_count(device)));
}

static void doubt(const Survey *survey, const RowDevice *device, const DeviceWindow *window, uint64_t total,
                  Reasons *reasons)
{
        uint64_t lost = window->damaged + window->lost, all = total + lost;

        if (rows_count(device) == 0)
                reasons_add(reasons, REASON_COLUMN_MISSING,
                            "The rows of %s lack wkB/s and w_await, which -s and reports without -x do not "
                            "print. "
                            "Capture with: iostat -xyz 1.",
                            device->name);
        else if (peak(device) < 0)
                doubt_unwritten(device, reasons);
        else if (window->absurd > 0)
                reasons_add(reasons, REASON_COUNTERS_RESET,
                            "%" PRIu64
                            " %s of %s during the test %s figures that no device has: its counters "
                            "were reset. Capture again.",
                            window->absurd, rows_word(window->absurd), device->name,
                            window->absurd == 1 ? "shows" : "show");
        else if (device->rows_of_sectors > 0 && survey->divisor == 1)
                reasons_add(reasons, REASON_UNREADABLE_ROWS,
                            "%" PRIu64
                            " %s of %s %s a throughput that is a multiple of what w/s and wareq-sz "
                            "make, the others do not: nobody can tell in which unit they are. Capture again.",
                            device->rows_of_sectors, rows_word(device->rows_of_sectors), device->name,
                            device->rows_of_sectors == 1 ? "shows" : "show");
        else if (survey->rows->lost_overflow)
                reasons_add(reasons, REASON_TOO_FEW_SAMPLES,
                            "More than %d reports are damaged. Capture again.", MAX_LOST_SPANS);
        else if ((double) lost > (1 - survey->limits->pass_ratio) * (double) all)
                reasons_add(reasons, REASON_TOO_FEW_SAMPLES,
                            "%" PRIu64 " of %" PRIu64 " %s of %s cannot be read: %s.", lost, all,
                            rows_word(all), device->name, main_damage(device));
}

static void judge_device(const Survey *survey, const RowDevice *device, const DeviceWindow *window,
                         Judgement *ret)
{
        uint64_t length = window_length(window);
        uint64_t dropped = window->damaged + window->absurd + window->lost;
        uint64_t total = length - dropped, third = length / 3;
        uint64_t quiet = length - window->stored - window->lost;
        bool partial = kind_judged(device) == ROW_PARTIAL;
        bool no_wkb = partial && device->rows_partial[CRITERION_WRITE_THROUGHPUT] > 0;
        bool no_await = partial && device->rows_partial[CRITERION_WRITE_LATENCY] > 0;
        int64_t scale_wkb = SCALE_WKB * survey->divisor;
        RowFacts facts = {
                .device_name = device->name,
                .unread = { [CRITERION_WRITE_THROUGHPUT] = no_wkb, [CRITERION_WRITE_LATENCY] = no_await },
                .rows = clamp_unsigned(length),
                .rounding = { [CRITERION_WRITE_THROUGHPUT] = device->wkb_rounding / (double) survey->divisor,
                              [CRITERION_WRITE_LATENCY] = device->w_await_rounding },
                .first_third_wkb_s = no_wkb ? NAN : mean(window->first_third, third, scale_wkb),
                .last_third_wkb_s = no_wkb ? NAN : mean(window->last_third, third, scale_wkb),
                .worst_wkb_s = no_wkb || total == 0 ? NAN
                               : quiet > 0          ? 0
                                                    : (double) window->worst_wkb / (double) scale_wkb,
                .samples_total = clamp_unsigned(total),
                .samples_passing = clamp_unsigned(window->passing),
                .samples_dropped = clamp_unsigned(dropped),
        };

        metrics_forget(&facts.means);
        facts.means.w_s = mean(window->w_s, total, SCALE_WKB);
        if (!no_wkb)
                facts.means.wkb_s = mean(window->wkb, total, scale_wkb);
        /* Without a w/s column the bytes are the weights. */
        if (!no_await)
                facts.means.w_await = window->w_s > 0 ? mean(window->await_by_w_s, window->w_s, SCALE_AWAIT)
                                                      : mean(window->await_by_wkb, window->wkb, SCALE_AWAIT);
        for (CriterionName name = 0; name < N_CRITERIA; name++)
                facts.samples_missing[name] = clamp_unsigned(window->missing[name] + quiet);
        doubt(survey, device, window, total, &ret->reasons);
        judge_rows(survey->limits, &facts, ret);
}

static int measure(Survey *survey, Rows *rows)
{
        memset(survey->windows, 0, rows->n_devices * sizeof *survey->windows);
        int r = rows_visit(rows, find_edges, survey);
        if (r < 0)
                return r;
        for (size_t i = 0; i < rows->n_devices; i++) {
                DeviceWindow *window = &survey->windows[i];
                window->worst_wkb = INT64_MAX;
                trim(window);
                if (window->first > 0)
                        window->lost = rows_lost_between(rows, window->first, window->last);
        }
        return rows_visit(rows, add_row, survey);
}

/* When kB cannot be told from sectors, the verdict counts only if both readings give the same one. */
static int judge_other_unit(Survey *survey, Rows *rows, Judgement *ret)
{
        for (int64_t divisor = 2; divisor <= 2048; divisor *= 1024) {
                bool any = false;

                for (size_t i = 0; i < rows->n_devices; i++)
                        any = any || rows->devices[i].unsure_divisor == divisor;
                if (!any)
                        continue;
                survey->divisor = divisor;
                int r = measure(survey, rows);
                if (r < 0)
                        return r;
                for (size_t i = 0; i < rows->n_devices; i++) {
                        Judgement other = { 0 };
                        const RowDevice *device = &rows->devices[i];

                        if (device->unsure_divisor != divisor || ret[i].verdict == VERDICT_INCONCLUSIVE)
                                continue;
                        judge_device(survey, device, &survey->windows[i], &other);
                        if (other.verdict == ret[i].verdict)
                                continue;
                        ret[i].verdict = VERDICT_INCONCLUSIVE;
                        ret[i].reasons = (Reasons){ 0 };
                        reasons_add(
                                &ret[i].reasons, REASON_COLUMN_MISSING,
                                "The JSON rows of %s lack wareq-sz. sysstat 12.1.2 to 12.2.0 print a count "
                                "of sectors as their throughput, and without that key nobody can tell "
                                "whether these are such. Keep all keys, or capture text: iostat -xyz 1.",
                                device->name);
                }
        }
        return 0;
}

int window_judge(const Limits *limits, Rows *rows, Judgement *ret)
{
        _cleanup_free_ DeviceWindow *windows = calloc(rows->n_devices + 1, sizeof *windows);
        Survey survey = { .limits = limits, .rows = rows, .windows = windows, .divisor = 1 };

        if (!windows)
                return -ENOMEM;
        if (rows->n_agree == 0 && rows->sectors_divisor > 1)
                survey.divisor = rows->sectors_divisor;
        int r = measure(&survey, rows);
        if (r < 0)
                return r;
        for (size_t i = 0; i < rows->n_devices; i++)
                judge_device(&survey, &rows->devices[i], &windows[i], &ret[i]);
        if (rows->n_agree == 0 && rows->sectors_divisor == 1)
                return judge_other_unit(&survey, rows, ret);
        return 0;
}
