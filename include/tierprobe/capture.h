/* SPDX-License-Identifier: Apache-2.0 */
/* Judges captures of `iostat -x`: text of any sysstat since 9.1.2, or its JSON.
 *
 * A stream of any size in constant memory: bounded lines, names and devices; rows are kept in memory up to 2
 * MiB, then in an unlinked file in $TMPDIR. Columns by name, never a guess. Knows base, verdict, and jansson
 * (for JSON captures).
 *
 * The window of a device, in a capture of several reports, runs from the first to the last row with at least
 * a tenth of its peak wkB/s, less the first and the last row when it has three or more. A report inside the
 * window without a row of the device counts as a quiet row: `iostat -z` leaves out what completed nothing. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tierprobe/verdict.h"

#define CAPTURE_NAME_SIZE 256    /* sysstat's MAX_NAME_LEN */
#define CAPTURE_MAX_DEVICES 4096 /* rows of further ones are counted and noted, not judged */
#define CAPTURE_MAX_LINE 8192    /* sysstat's longest row has some 700 bytes; longer lines are noise */

typedef struct CaptureJudge CaptureJudge;

typedef struct CaptureDevice {
        char name[CAPTURE_NAME_SIZE];
        bool group; /* a sum of others (-g): decides only when named, or when there is nothing else */
        Judgement judgement; /* criteria, samples, verdict, reasons */
        double written_kb;   /* sum of wkB/s over its rows: who was written most */
        uint64_t rows;       /* in the capture, before the window */
        bool unreadable;     /* none of its rows can be read */
        bool idle;           /* written, but so little beside another device that it was not the one tested */
} CaptureDevice;

/* DEVICE names the one that decides ("sdb"; "/dev/sdb" will do as well), NULL: the one written most.
 * 0 or -ENOMEM. */
int capture_judge_new(const Limits *limits, const char *device, CaptureJudge **ret);
CaptureJudge *capture_judge_free(CaptureJudge *judge);
void capture_judge_freep(CaptureJudge **judge);

/* Takes in a piece of the capture, of any size and cut anywhere. 0, -ENOMEM, or the error of writing to the
 * temporary file (-ENOSPC, ...). */
int capture_judge_feed(CaptureJudge *judge, const char *data, size_t size);

/* The input has ended: the verdict of every device, and overall. Errors as above. To be called once; the
 * functions below make sense only after it. */
int capture_judge_finish(CaptureJudge *judge);

/* The devices with writes, or whose writes cannot be known, most written first; and the decider. */
size_t capture_judge_n_devices(const CaptureJudge *judge);
const CaptureDevice *capture_judge_device(const CaptureJudge *judge, size_t index);

/* The deciding device, NULL when there is none; and the overall judgement: its own, or an inconclusive one
 * that says why no device decides. */
const CaptureDevice *capture_judge_decider(const CaptureJudge *judge);
const Judgement *capture_judge_overall(const CaptureJudge *judge);

/* What else the reader of the verdict should know ("the last report is cut"): sentences, NULL after the
 * last. */
const char *capture_judge_note(const CaptureJudge *judge, size_t index);
