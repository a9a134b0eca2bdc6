/* SPDX-License-Identifier: Apache-2.0 */
/* Which device decides, and whether it may. Knows verdict. */

#include "tierprobe/cleanup.h"

#include "capture-internal.h"
#include "capture-window.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A device with less than this part of the most written bytes was not tested. */
#define TESTED_MIN 0.1

/* Devices of one stack carry the same bytes, but for as much. */
#define STACK_SLACK 0.1

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

        if (!name)
                return -ENOENT;
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
        return device->stored > 0 || rows_count(device) == 0;
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
                                       .rows = rows_count(from) + from->rows_bare,
                                       .unreadable = from->rows_read == 0 && from->rows > 0 };
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

/* ---- bystanders ---- */

static bool is_about(double a, double b)
{
        return fabs(a - b) <= STACK_SLACK * b;
}

/* Whether DEVICE is a layer above or below MOST, or one of the stripes: together with those that were written
 * as much as it, in one layer or two, it was written what MOST was. */
static bool is_in_stack(const CaptureJudge *judge, const CaptureDevice *device, const CaptureDevice *most)
{
        double sum = 0;

        if (is_about(device->written_kb, most->written_kb))
                return true;
        for (size_t i = 0; i < judge->n_devices; i++)
                if (!judge->devices[i].group && is_about(judge->devices[i].written_kb, device->written_kb))
                        sum += judge->devices[i].written_kb;
        return sum > device->written_kb &&
               (is_about(sum, most->written_kb) || is_about(sum, 2 * most->written_kb));
}

static void describe(char *buf, size_t size, const CaptureDevice *device)
{
        double mb_per_s = device->judgement.measured.wkb_s / 1000;

        if (isfinite(mb_per_s))
                (void) snprintf(buf, size, "%.64s (%.1f MB/s: %s)", device->name, mb_per_s,
                                verdict_to_string(device->judgement.verdict));
        else
                (void) snprintf(buf, size, "%.64s (%s)", device->name,
                                device->unreadable ? "its rows cannot be read"
                                                   : verdict_to_string(device->judgement.verdict));
}

/* Without --device, devices that were written much must agree; otherwise the verdict is not known. */
static void doubt_decider(CaptureJudge *judge)
{
        const CaptureDevice *most = judge->decider;
        Reasons reasons = { 0 };

        for (size_t i = 0; i < judge->n_devices; i++) {
                const CaptureDevice *other = &judge->devices[i];
                char one[128], two[128];

                bool much = other->written_kb >= TESTED_MIN * most->written_kb || other->unreadable;
                if (other == most || other->group || !much ||
                    other->judgement.verdict == most->judgement.verdict ||
                    (!other->unreadable && is_in_stack(judge, other, most)))
                        continue;
                describe(one, sizeof one, most);
                describe(two, sizeof two, other);
                reasons_add(&reasons, REASON_WRONG_DEVICE,
                            "The capture has rows of %s and of %s, and nothing in it tells which one was "
                            "tested. Name it: --device %.64s.",
                            one, two, most->name);
                capture_without_decider(judge, &reasons);
                return;
        }
}

/* A device that was not tested is not a failure. */
static void mark_idle(CaptureJudge *judge)
{
        double most = 0;

        for (size_t i = 0; i < judge->n_devices; i++)
                if (!judge->devices[i].group && judge->devices[i].written_kb > most)
                        most = judge->devices[i].written_kb;
        for (size_t i = 0; i < judge->n_devices; i++) {
                CaptureDevice *device = &judge->devices[i];
                Judgement *j = &device->judgement;

                if (device == judge->decider || device->unreadable ||
                    device->written_kb >= TESTED_MIN * most || j->verdict == VERDICT_INCONCLUSIVE)
                        continue;
                device->idle = true;
                j->verdict = VERDICT_INCONCLUSIVE;
                j->reasons = (Reasons){ 0 };
                reasons_add(&j->reasons, REASON_IDLE,
                            "%.64s was written %.2g %% of what the busiest device was: nobody tested it. To "
                            "judge it all the same: --device %.64s.",
                            device->name, 100 * device->written_kb / most, device->name);
        }
}

/* ---- the file as a whole ---- */

/* Captures of several hosts, or rows that cannot be assigned to a report: no device is judged. */
static void doubt_file(CaptureJudge *judge)
{
        const TextReader *text = &judge->text;
        Reasons reasons = { 0 };

        if (text->n_other_tags > 0)
                reasons_add(
                        &reasons, REASON_UNREADABLE_ROWS,
                        "Rows stand behind different marks (\"%s\" and \"%s\"): captures of several hosts or "
                        "files in one. Judge each by itself.",
                        text->lead, text->other_tag);
        else if (judge->other_host[0])
                reasons_add(&reasons, REASON_UNREADABLE_ROWS,
                            "The file holds captures of several hosts (%s and %s). Judge each by itself.",
                            judge->host, judge->other_host);
        else if (judge->json.other_node)
                reasons_add(&reasons, REASON_UNREADABLE_ROWS,
                            "The file holds captures of several hosts (%s and others). Judge each by itself.",
                            judge->json.node);
        else if (text->n_repeats >= 2 && text->most_repeats == 1 &&
                 2 * text->n_repeats + 1 >= text->n_headers)
                reasons_add(&reasons, REASON_UNREADABLE_ROWS,
                            "Every header is there twice, as when two iostats write into one file: nobody "
                            "can tell "
                            "whose report a row is of. Judge each by itself.");
        else if (judge->decider && text->n_unread > 0 &&
                 (double) text->n_unread >
                         (1 - judge->limits.pass_ratio) * (double) (text->n_unread + judge->decider->rows))
                reasons_add(&reasons, REASON_UNREADABLE_ROWS,
                            "%" PRIu64 " %s of numbers in the tables cannot be read as %s of any device. "
                            "Capture into a file: iostat -xyz 1 > FILE.",
                            text->n_unread, text->n_unread == 1 ? "line" : "lines",
                            text->n_unread == 1 ? "a row" : "rows");
        if (reasons.n > 0)
                capture_without_decider(judge, &reasons);
}

int capture_decide(CaptureJudge *judge)
{
        int r = list_devices(judge, find_wanted(judge));
        if (r < 0)
                return r;
        const CaptureDevice *decider = judge->decider;
        if (decider) {
                judge->overall = decider->judgement;
                if (!judge->wanted)
                        doubt_decider(judge);
        } else
                capture_explain(judge);
        if (judge->rows.n_devices > 0)
                doubt_file(judge);
        mark_idle(judge);
        return 0;
}
