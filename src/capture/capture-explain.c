/* SPDX-License-Identifier: Apache-2.0 */
/* The sentences about a capture as a whole: why no device decides, and what was left out. */

#include "capture-internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define CAPTURE_TEXT "Capture with: iostat -xyz 1."

/* ---- why no device decides ---- */

/* Some names of what the capture holds. */
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

static void explain_devices(const CaptureJudge *judge, Reasons *reasons)
{
        const Rows *rows = &judge->rows;
        size_t n_bare = 0;
        char names[200];

        for (size_t i = 0; i < rows->n_devices; i++) {
                const RowDevice *device = &rows->devices[i];
                n_bare += rows_count(device) == 0;
        }
        name_some(rows, names, sizeof names);
        if (judge->wanted)
                reasons_add(reasons, REASON_NO_ROWS,
                            "The capture has no row of %.64s; it has rows of %s. Name one of them.",
                            judge->wanted, names);
        else if (n_bare > 0)
                reasons_add(reasons, REASON_COLUMN_MISSING,
                            "The capture lacks wkB/s and w_await: it is of iostat without -x, or with "
                            "-s. " CAPTURE_TEXT);
        else
                reasons_add(reasons, REASON_NO_WRITE_COMPLETED,
                            "No write completed on any of %zu devices (%s): nobody was testing. Run iostat "
                            "-xyz 1 while the test writes.",
                            rows->n_devices, names);
}

/* Tables that were there, and not one row that could be read. */
static void explain_tables(const CaptureJudge *judge, Reasons *reasons)
{
        const TextReader *text = &judge->text;

        if (text->encoded)
                reasons_add(
                        reasons, REASON_UNREADABLE_ROWS,
                        "This is a mail as it is stored (quoted-printable): each \"=\" at the end of a line "
                        "wraps a row. Save its decoded text, or the file that iostat wrote, and judge that.");
        else if (text->joined || judge->joined)
                reasons_add(
                        reasons, REASON_UNREADABLE_ROWS,
                        "The ends of the lines are lost: header and rows stand on one. Judge the file that "
                        "iostat wrote: iostat -xyz 1 > FILE.");
        else if (text->wrap_columns > 0)
                reasons_add(
                        reasons, REASON_UNREADABLE_ROWS,
                        "The lines are wrapped at %zu columns or so: header and rows are in pieces, and "
                        "nobody can tell which number belongs where. Capture into a file: iostat -xyz 1 > "
                        "FILE.",
                        text->wrap_columns);
        else if (text->n_unread > 0)
                reasons_add(reasons, REASON_UNREADABLE_ROWS,
                            "There is a header, but %" PRIu64
                            " %s below it %s not a name and as many numbers as "
                            "it has columns. Capture into a file: iostat -xyz 1 > FILE.",
                            text->n_unread, text->n_unread == 1 ? "line" : "lines",
                            text->n_unread == 1 ? "is" : "are");
        else if (judge->n_overlong > 0)
                reasons_add(reasons, REASON_UNREADABLE_ROWS,
                            "There is a header, but %" PRIu64
                            " %s below it %s longer than %d bytes. " CAPTURE_TEXT,
                            judge->n_overlong, judge->n_overlong == 1 ? "line" : "lines",
                            judge->n_overlong == 1 ? "is" : "are", CAPTURE_MAX_LINE);
        else
                reasons_add(reasons, REASON_NO_ROWS,
                            "The capture has no row of any device: nothing was written while it ran. Run "
                            "iostat -xyz 1 while the test writes.");
}

static void explain_json(const CaptureJudge *judge, Reasons *reasons)
{
        const JsonReader *json = &judge->json;

        if (json->n_damaged > 0)
                reasons_add(reasons, REASON_UNREADABLE_ROWS,
                            "None of %" PRIu64
                            " %s in this JSON can be read. Capture with: iostat -xyz -o JSON "
                            "1 60.",
                            json->n_damaged, json->n_damaged == 1 ? "row" : "rows");
        else if (json->other)
                reasons_add(reasons, REASON_NOT_A_CAPTURE,
                            "This is JSON of %s, not of iostat -x. Capture with: iostat -xyz -o JSON 1 60.",
                            json->other);
        else if (capture_json_is_cut(json))
                reasons_add(
                        reasons, REASON_NO_ROWS,
                        "This JSON breaks off before the first row of a device. Capture with: iostat -xyz "
                        "-o JSON 1 60.");
        else if (json->n_reports > 0)
                reasons_add(reasons, REASON_NO_ROWS,
                            "The %" PRIu64
                            " %s of this JSON %s no row of any device: nothing was written while "
                            "it ran. Run iostat -xyz -o JSON 1 60 while the test writes.",
                            json->n_reports, json->n_reports == 1 ? "report" : "reports",
                            json->n_reports == 1 ? "has" : "have");
        else
                reasons_add(reasons, REASON_NO_ROWS,
                            "This JSON holds no report of devices: iostat printed none, or it is of another "
                            "program. Capture with: iostat -xyz -o JSON 1 60.");
}

/* Neither tables nor JSON. */
static void explain_file(const CaptureJudge *judge, Reasons *reasons)
{
        size_t head = judge->size < sizeof judge->head ? (size_t) judge->size : sizeof judge->head;
        const char *sentence = kind_of_head(judge->head, head);
        uint64_t n = judge->text.n_rows_without_header;

        if (judge->size == 0)
                reasons_add(reasons, REASON_NO_ROWS, "The file is empty. " CAPTURE_TEXT);
        else if (sentence)
                reasons_add(reasons, REASON_NOT_A_CAPTURE, "%s", sentence);
        else if (judge->kind)
                reasons_add(reasons, REASON_NOT_A_CAPTURE,
                            "This is output of %s, not of iostat -x. " CAPTURE_TEXT, judge->kind);
        else if (n > 0)
                reasons_add(reasons, REASON_HEADER_MISSING,
                            "There %s %" PRIu64
                            " %s, but no line that names the columns (Device ... wkB/s ... "
                            "w_await): without it nobody can tell which is which. Keep it in the capture.",
                            n == 1 ? "is" : "are", n, n == 1 ? "row" : "rows");
        else if (judge->text.has_cpu)
                reasons_add(reasons, REASON_NOT_A_CAPTURE,
                            "There is a report of the processors, as iostat -c prints it, but none of "
                            "devices. " CAPTURE_TEXT);
        else if (judge->host[0])
                reasons_add(reasons, REASON_NO_ROWS,
                            "iostat has said where it runs, but printed no report yet. " CAPTURE_TEXT);
        else if (!judge->has_text && judge->n_overlong == 0)
                reasons_add(reasons, REASON_NO_ROWS, "The file holds nothing but blanks. " CAPTURE_TEXT);
        else
                reasons_add(reasons, REASON_NOT_A_CAPTURE,
                            "This is no output of iostat -x: no line names the columns Device, wkB/s and "
                            "w_await. " CAPTURE_TEXT);
}

void capture_without_decider(CaptureJudge *judge, const Reasons *reasons)
{
        RowFacts none = {
                .device_name = "", .first_third_wkb_s = NAN, .last_third_wkb_s = NAN, .worst_wkb_s = NAN
        };

        metrics_forget(&none.means);
        judge->decider = NULL;
        judge->overall = (Judgement){ .reasons = *reasons };
        judge_rows(&judge->limits, &none, &judge->overall);
}

void capture_explain(CaptureJudge *judge)
{
        Reasons reasons = { 0 };

        if (judge->rows.n_devices > 0)
                explain_devices(judge, &reasons);
        else if (judge->text.n_headers > 0 || judge->text.wrap_columns > 0 || judge->joined)
                explain_tables(judge, &reasons);
        else if (judge->is_json)
                explain_json(judge, &reasons);
        else
                explain_file(judge, &reasons);
        capture_without_decider(judge, &reasons);
}

/* ---- what was left out ---- */

static __attribute__((format(printf, 2, 3))) void note(CaptureJudge *judge, const char *format, ...)
{
        va_list ap;

        if (judge->n_notes == MAX_NOTES)
                return;
        va_start(ap, format);
        (void) vsnprintf(judge->notes[judge->n_notes++], sizeof judge->notes[0], format, ap);
        va_end(ap);
}

/* "1 row ... was left out", "2 rows ... were left out" */
static void note_count(CaptureJudge *judge, uint64_t n, const char *noun, const char *what, const char *verb)
{
        if (n > 0)
                note(judge, "%" PRIu64 " %s%s %s %s %s.", n, noun, n == 1 ? "" : "s", what,
                     n == 1 ? "was" : "were", verb);
}

void capture_add_notes(CaptureJudge *judge)
{
        const TextReader *text = &judge->text;
        const JsonReader *json = &judge->json;
        const Rows *rows = &judge->rows;
        uint64_t of_sectors = 0;
        char what[80];

        for (size_t i = 0; i < rows->n_devices; i++)
                of_sectors += rows->devices[i].rows_of_sectors;
        if (of_sectors > 0 && rows->n_agree == 0 && rows->sectors_divisor > 1)
                note(judge,
                     "The throughput in this JSON counts sectors, as sysstat 12.1.2 to 12.2.0 print it: it "
                     "was "
                     "divided by %" PRId64 ".",
                     rows->sectors_divisor);
        (void) snprintf(what, sizeof what, "of devices beyond the first %d", CAPTURE_MAX_DEVICES);
        note_count(judge, rows->rows_ignored, "row", what, "not judged");
        note_count(judge, text->n_damaged + json->n_damaged, "row", "that cannot be read", "left out");
        note_count(judge, text->n_unread, "line", "that may be rows of some device", "left out");
        (void) snprintf(what, sizeof what, "longer than %d bytes", CAPTURE_MAX_LINE);
        note_count(judge, judge->n_overlong, "line", what, "skipped");
        if (text->n_headers > 0)
                note_count(judge, text->n_rows_without_header, "row", "before the first header", "skipped");
        if (text->n_led > 0)
                note(judge, "%" PRIu64 " %s behind other text (\"%s\"), which was skipped.", text->n_led,
                     text->n_led == 1 ? "row stands" : "rows stand", text->lead);
        if (text->cut)
                note(judge, "The last line is cut and was left out.");
        if (judge->is_mixed)
                note(judge, "The text in front of the JSON was skipped.");
        if (json->lost_open)
                note(judge, "The JSON closes a bracket that it did not open: its rows were read one by one.");
        if (judge->is_json && capture_json_is_cut(json))
                note(judge, "The JSON breaks off: judged on its whole rows.");
}
