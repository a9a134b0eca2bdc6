/* SPDX-License-Identifier: Apache-2.0 */
/* The judge of captures from within. Inside the capture room. */
#pragma once

#include "tierprobe/capture.h"

#include "capture-json.h"
#include "capture-kind.h"
#include "capture-text.h"

#define MAX_NOTES 12
#define NOTE_SIZE 200
#define HOST_SIZE 64

typedef enum CaptureFormat { FORMAT_TEXT, FORMAT_JSON } CaptureFormat;

struct CaptureJudge {
        Limits limits;
        char *wanted;

        CaptureFormat format;            /* of the line at hand */
        char line[CAPTURE_MAX_LINE + 1]; /* the part of a line that has come, and a blank */
        bool has_cr;                     /* anywhere in the stream */
        size_t line_size;
        bool in_long; /* the line at hand is longer than that */
        Rows rows;
        TextReader text;
        JsonReader json;

        /* What else there is in the file. */
        char head[KIND_HEAD_SIZE];
        uint64_t size;
        uint64_t n_overlong;
        bool joined;                                 /* a line has a header and more than any */
        bool has_text;                               /* more than blanks */
        const char *kind;                            /* the program that printed it; NULL unknown */
        size_t searched;                             /* bytes, for that */
        char host[HOST_SIZE], other_host[HOST_SIZE]; /* of the line that iostat begins with */
        bool is_json, is_mixed;                      /* JSON was met; behind other text */

        CaptureDevice *devices;
        size_t n_devices;
        const CaptureDevice *decider;
        Judgement overall;
        char notes[MAX_NOTES][NOTE_SIZE];
        size_t n_notes;
};

/* capture-decide.c: from the rows to the verdict of the capture. 0, -ENOMEM or the error of reading rows
 * back. */
int capture_decide(CaptureJudge *judge);

/* capture-explain.c: no device decides: for these reasons, or for those that the file shows; and what else is
 * to be said. */
void capture_without_decider(CaptureJudge *judge, const Reasons *reasons);
void capture_explain(CaptureJudge *judge);
void capture_add_notes(CaptureJudge *judge);
