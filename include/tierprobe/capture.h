/* Reads captures of `iostat -x`: text of any sysstat since 9.1.2, or its JSON, as a stream of rows.
 *
 * Constant memory whatever the input's size, bounded lines and names, columns by name, never a guess.
 * Knows base and jansson (for JSON captures). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tierprobe/verdict.h"

#define CAPTURE_NAME_SIZE 256 /* sysstat's MAX_NAME_LEN */

/* Feeds FD to the end. -EIO or another errno when reading failed. */
typedef struct CaptureJudge CaptureJudge;

typedef struct CaptureDevice {
        char name[CAPTURE_NAME_SIZE];
        Judgement judgement; /* criteria, samples, verdict, reasons */
        double written_kb;   /* sum of wkB/s over its rows: who was written most */
} CaptureDevice;

int capture_judge_new(const Limits *limits, CaptureJudge **ret);
CaptureJudge *capture_judge_free(CaptureJudge *judge);
void capture_judge_freep(CaptureJudge **judge);

/* Takes in a piece of the capture, of any size and cut anywhere. 0 or -ENOMEM. */
int capture_judge_feed(CaptureJudge *judge, const char *data, size_t size);

/* The input has ended: the verdict of every device, and overall. DEVICE names the one that decides, NULL: the
 * one written most. */
int capture_judge_finish(CaptureJudge *judge, const char *device);
size_t capture_judge_n_devices(const CaptureJudge *judge);
const CaptureDevice *capture_judge_device(const CaptureJudge *judge, size_t index);

/* The deciding device, NULL when there is none; then the overall verdict is inconclusive with these reasons.
 */
const CaptureDevice *capture_judge_decider(const CaptureJudge *judge);
const Reasons *capture_judge_reasons(const CaptureJudge *judge);
