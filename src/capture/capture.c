/* SPDX-License-Identifier: Apache-2.0 */
/* The judge of captures: tells text from JSON, feeds the reader, and says who decides. Knows verdict. */

#include "tierprobe/capture.h"

#include "tierprobe/cleanup.h"

#include "capture-json.h"
#include "capture-text.h"
#include "capture-window.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NOTES 8

typedef enum CaptureFormat { FORMAT_UNKNOWN, FORMAT_TEXT, FORMAT_JSON } CaptureFormat;

struct CaptureJudge {
        Limits limits;
        char *wanted;
        CaptureFormat format;
        unsigned bom; /* bytes of a UTF-8 byte order mark seen */
        Rows rows;
        TextReader text;
        ReportReader json;

        CaptureDevice *devices;
        size_t n_devices;
        const CaptureDevice *decider;
        Judgement overall;
        char notes[MAX_NOTES][160];
        size_t n_notes;
};

int capture_judge_new(const Limits *limits, const char *device, CaptureJudge **ret)
{
        _cleanup_(capture_judge_freep) CaptureJudge *judge = calloc(1, sizeof *judge);
        if (!judge)
                return -ENOMEM;

        int r = rows_init(&judge->rows);
        if (r < 0)
                return r;
        judge->limits = *limits;
        if (device) {
                judge->wanted = strdup(device);
                if (!judge->wanted)
                        return -ENOMEM;
        }
        text_init(&judge->text, &judge->rows);
        report_init(&judge->json, &judge->rows);
        *ret = TAKE_PTR(judge);
        return 0;
}

CaptureJudge *capture_judge_free(CaptureJudge *judge)
{
        if (!judge)
                return NULL;
        report_done(&judge->json);
        rows_done(&judge->rows);
        free(judge->devices);
        free(judge->wanted);
        free(judge);
        return NULL;
}

void capture_judge_freep(CaptureJudge **judge)
{
        capture_judge_free(*judge);
}

/* JSON begins with a brace; everything else is text. Blank space and a byte order mark tell nothing yet. */
static CaptureFormat tell_format(CaptureJudge *judge, const char **data, size_t *size)
{
        static const char bom[] = { '\xef', '\xbb', '\xbf' };

        for (; *size > 0; (*data)++, (*size)--) {
                char c = **data;
                if (judge->bom < sizeof bom && c == bom[judge->bom])
                        judge->bom++;
                else if (c == '{')
                        return FORMAT_JSON;
                else if ((unsigned char) c > ' ' || c == '\033')
                        return FORMAT_TEXT;
        }
        return FORMAT_UNKNOWN;
}

int capture_judge_feed(CaptureJudge *judge, const char *data, size_t size)
{
        if (judge->format == FORMAT_UNKNOWN)
                judge->format = tell_format(judge, &data, &size);
        switch (judge->format) {
        case FORMAT_UNKNOWN:
                return 0;
        case FORMAT_TEXT:
                return text_feed(&judge->text, data, size);
        case FORMAT_JSON:
                return report_feed(&judge->json, data, size);
        }
        return -EINVAL;
}

/* ---- the end ---- */

static _printf_(2, 3) void note(CaptureJudge *judge, const char *format, ...)
{
        va_list ap;

        if (judge->n_notes == MAX_NOTES)
                return;
        va_start(ap, format);
        (void) vsnprintf(judge->notes[judge->n_notes++], sizeof judge->notes[0], format, ap);
        va_end(ap);
}

static void add_notes(CaptureJudge *judge)
{
        const TextReader *text = &judge->text;
        const ReportReader *json = &judge->json;

        if (judge->rows.rows_ignored > 0)
                note(judge, "%" PRIu64 " rows of devices beyond the first %d were not judged.",
                     judge->rows.rows_ignored, CAPTURE_MAX_DEVICES);
        if (text->n_damaged > 0)
                note(judge, "%" PRIu64 " rows are damaged and were left out.", text->n_damaged);
        if (text->n_overlong > 0)
                note(judge, "%" PRIu64 " lines longer than %d bytes were skipped.", text->n_overlong,
                     CAPTURE_MAX_LINE);
        if (text->n_rows_without_header > 0 && text->n_headers > 0)
                note(judge, "%" PRIu64 " rows before the first header were skipped.",
                     text->n_rows_without_header);
        if (text->cut)
                note(judge, "The last line is cut and was left out.");
        if (json->n_damaged > 0)
                note(judge, "%" PRIu64 " reports are no valid JSON and were left out.", json->n_damaged);
        if (json->n_oversized > 0)
                note(judge, "%" PRIu64 " reports larger than %u bytes were skipped.", json->n_oversized,
                     CAPTURE_MAX_REPORT);
        if (judge->format == FORMAT_JSON && report_is_cut(json))
                note(judge, "The JSON breaks off after report %" PRIu64 ": judged on the whole ones.",
                     json->n_reports);
}

static int more_written_first(const void *a, const void *b)
{
        const CaptureDevice *x = a, *y = b;

        if (x->written_kb > y->written_kb || x->written_kb < y->written_kb)
                return x->written_kb > y->written_kb ? -1 : 1;
        if (x->group != y->group)
                return x->group ? 1 : -1; /* a group of one is that one */
        return strcmp(x->name, y->name);
}

/* The index of the device that was asked for, -ENOENT. */
static int find_wanted(const CaptureJudge *judge)
{
        const char *name = judge->wanted;
        int found = rows_find(&judge->rows, name, strlen(name));

        if (found < 0 && strncmp(name, "/dev/mapper/", 12) == 0)
                found = rows_find(&judge->rows, name + 12, strlen(name + 12));
        if (found < 0 && strncmp(name, "/dev/", 5) == 0)
                found = rows_find(&judge->rows, name + 5, strlen(name + 5));
        return found;
}

/* Whether to list a device: it was written, or that cannot be known. */
static bool is_written(const RowDevice *device)
{
        return device->stored > 0 || device->rows == 0;
}

static int list_devices(CaptureJudge *judge, int wanted)
{
        const Rows *rows = &judge->rows;
        const char *decider = NULL;

        judge->devices = calloc(rows->n_devices + 1, sizeof *judge->devices);
        if (!judge->devices)
                return -ENOMEM;
        _cleanup_free_ Judgement *judgements = calloc(rows->n_devices + 1, sizeof *judgements);
        if (!judgements)
                return -ENOMEM;
        int r = window_judge(&judge->limits, &judge->rows, judgements);
        if (r < 0)
                return r;

        for (size_t i = 0; i < rows->n_devices; i++) {
                const RowDevice *from = &rows->devices[i];
                bool decides = (int) i == wanted || (!judge->wanted && rows->n_devices == 1);
                if (decides)
                        decider = from->name;
                if (!decides && !is_written(from))
                        continue;
                CaptureDevice *to = &judge->devices[judge->n_devices++];
                *to = (CaptureDevice){ .group = from->group,
                                       .judgement = judgements[i],
                                       .written_kb = from->written_kb,
                                       .rows = from->rows + from->rows_incomplete };
                (void) snprintf(to->name, sizeof to->name, "%s", from->name);
        }
        qsort(judge->devices, judge->n_devices, sizeof *judge->devices, more_written_first);

        for (size_t i = 0; i < judge->n_devices && decider; i++)
                if (strcmp(judge->devices[i].name, decider) == 0)
                        judge->decider = &judge->devices[i];
        /* A sum of several devices is not one: it decides when there is nothing else. */
        for (size_t pass = 0; pass < 2 && !judge->decider && !judge->wanted; pass++)
                for (size_t i = 0; i < judge->n_devices && !judge->decider; i++)
                        if (judge->devices[i].written_kb > 0 && (pass == 1 || !judge->devices[i].group))
                                judge->decider = &judge->devices[i];
        return 0;
}

/* Some names of what the capture holds, for a message. */
static const char *name_some(const Rows *rows, char *buf, size_t size)
{
        size_t at = 0;

        buf[0] = '\0';
        for (size_t i = 0; i < rows->n_devices && i < 8 && at < size; i++)
                at += (size_t) snprintf(buf + at, size - at, "%s%s", i ? ", " : "", rows->devices[i].name);
        if (rows->n_devices > 8 && at < size)
                (void) snprintf(buf + at, size - at, ", ...");
        return buf;
}

/* Why nobody decides. */
static void explain(CaptureJudge *judge)
{
        const Rows *rows = &judge->rows;
        RowFacts none = {
                .device_name = "", .first_third_wkb_s = NAN, .last_third_wkb_s = NAN, .worst_wkb_s = NAN
        };
        Reasons *reasons = &judge->overall.reasons;
        size_t n_incomplete = 0;
        char names[200];

        metrics_forget(&none.means);
        for (size_t i = 0; i < rows->n_devices; i++)
                n_incomplete += rows->devices[i].rows == 0;
        if (rows->n_devices > 0 && judge->wanted)
                reasons_add(reasons, REASON_NO_ROWS,
                            "The capture has no row of %.64s; it has rows of %s. Name one of them.",
                            judge->wanted, name_some(rows, names, sizeof names));
        else if (n_incomplete > 0)
                reasons_add(reasons, REASON_COLUMN_MISSING,
                            "The capture lacks wkB/s or w_await, which sysstat before 9.1.2, -s and reports "
                            "without -x do not print. Capture with: iostat -xyz 1.");
        else if (rows->n_devices > 0)
                reasons_add(reasons, REASON_NO_WRITE_COMPLETED,
                            "No write completed on any of %zu devices (%s). Run iostat -xyz 1 while the test "
                            "writes.",
                            rows->n_devices, name_some(rows, names, sizeof names));
        else if (judge->text.n_rows_without_header > 0)
                reasons_add(reasons, REASON_HEADER_MISSING,
                            "%" PRIu64 " row(s), but no line that names the columns (Device ... wkB/s ... "
                            "w_await): without it nobody can tell which is which. Keep it in the capture.",
                            judge->text.n_rows_without_header);
        else if (judge->text.n_headers > 0 || judge->json.n_reports > 0)
                reasons_add(reasons, REASON_NO_ROWS,
                            "The capture has no row of any device: nothing was written while it ran. Run "
                            "iostat -xyz 1 while the test writes.");
        else if (judge->format == FORMAT_JSON)
                reasons_add(reasons, REASON_NO_ROWS,
                            "This JSON holds no whole report of iostat%s. Capture with: iostat -xyz -o JSON "
                            "1 60.",
                            report_is_cut(&judge->json) ? ", it breaks off" : "");
        else
                reasons_add(reasons, REASON_NO_ROWS,
                            "This is no output of iostat -x: it has neither header nor rows. Capture with: "
                            "iostat -xyz 1.");
        judge_rows(&judge->limits, &none, &judge->overall);
}

int capture_judge_finish(CaptureJudge *judge)
{
        if (judge->format == FORMAT_TEXT) {
                int r = text_finish(&judge->text);
                if (r < 0)
                        return r;
        }
        int r = list_devices(judge, judge->wanted ? find_wanted(judge) : -ENOENT);
        if (r < 0)
                return r;
        add_notes(judge);
        if (judge->decider)
                judge->overall = judge->decider->judgement;
        else
                explain(judge);
        return 0;
}

size_t capture_judge_n_devices(const CaptureJudge *judge)
{
        return judge->n_devices;
}

const CaptureDevice *capture_judge_device(const CaptureJudge *judge, size_t index)
{
        return index < judge->n_devices ? &judge->devices[index] : NULL;
}

const CaptureDevice *capture_judge_decider(const CaptureJudge *judge)
{
        return judge->decider;
}

const Judgement *capture_judge_overall(const CaptureJudge *judge)
{
        return &judge->overall;
}

const char *capture_judge_note(const CaptureJudge *judge, size_t index)
{
        return index < judge->n_notes ? judge->notes[index] : NULL;
}
