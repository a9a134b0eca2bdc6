/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold of the judge of captures for any input. */
#pragma once

#include "tierprobe/capture.h"
#include "tierprobe/text.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_ASSERT(condition)                                           \
        do {                                                             \
                if (!(condition)) {                                      \
                        (void) fprintf(stderr, "not: %s\n", #condition); \
                        abort();                                         \
                }                                                        \
        } while (0)

static inline CaptureJudge *fuzz_judge(const char *text, size_t size, size_t cut)
{
        CaptureJudge *judge = NULL;

        const Limits limits = limits_default();

        if (capture_judge_new(&limits, NULL, &judge) < 0)
                return NULL;
        FUZZ_ASSERT(capture_judge_feed(judge, text, cut) == 0);
        FUZZ_ASSERT(capture_judge_feed(judge, text + cut, size - cut) == 0);
        FUZZ_ASSERT(capture_judge_finish(judge) == 0);
        return judge;
}

static inline void fuzz_check(const Judgement *j)
{
        if (j->verdict == VERDICT_PASS) {
                FUZZ_ASSERT(j->reasons.n == 0);
                FUZZ_ASSERT(j->criteria[0].pass && j->criteria[0].value >= j->criteria[0].limit);
                FUZZ_ASSERT(j->criteria[1].pass && j->criteria[1].value < j->criteria[1].limit);
                FUZZ_ASSERT(j->samples_total > 0 && j->samples_passing * 10 >= j->samples_total * 9);
        } else {
                FUZZ_ASSERT(j->verdict == VERDICT_FAIL || j->verdict == VERDICT_INCONCLUSIVE);
                FUZZ_ASSERT(j->reasons.n > 0);
                FUZZ_ASSERT(j->reasons.items[0].detail[0] != '\0');
        }
        FUZZ_ASSERT(j->samples_passing <= j->samples_total);
        FUZZ_ASSERT(!isinf(j->criteria[0].value) && !isinf(j->criteria[1].value));
        FUZZ_ASSERT(!(j->criteria[0].value < 0) && !(j->criteria[1].value < 0));
}

/* A device that decides has the verdict of the whole; without one there is none but inconclusive. */
static inline void fuzz_check_decider(const CaptureJudge *judge)
{
        const CaptureDevice *decider = capture_judge_decider(judge);
        const Judgement *overall = capture_judge_overall(judge);

        if (decider)
                FUZZ_ASSERT(decider->judgement.verdict == overall->verdict && !decider->idle);
        else
                FUZZ_ASSERT(overall->verdict == VERDICT_INCONCLUSIVE);
}

static inline void fuzz_capture(const char *text, size_t size, size_t cut)
{
        CaptureJudge *pieces = fuzz_judge(text, size, cut), *whole = fuzz_judge(text, size, 0);

        if (pieces && whole) {
                const Judgement *a = capture_judge_overall(pieces), *b = capture_judge_overall(whole);

                fuzz_check(a);
                FUZZ_ASSERT(a->verdict == b->verdict && a->reasons.n == b->reasons.n);
                FUZZ_ASSERT(capture_judge_n_devices(pieces) == capture_judge_n_devices(whole));
                fuzz_check_decider(pieces);
                for (size_t i = 0; capture_judge_note(pieces, i) || capture_judge_note(whole, i); i++)
                        FUZZ_ASSERT(strcmp(capture_judge_note(pieces, i), capture_judge_note(whole, i)) == 0);
                for (size_t i = 0; i < capture_judge_n_devices(pieces); i++) {
                        const CaptureDevice *device = capture_judge_device(pieces, i);

                        fuzz_check(&device->judgement);
                        FUZZ_ASSERT(strcmp(device->name, capture_judge_device(whole, i)->name) == 0);
                        FUZZ_ASSERT(device->name[0] != '\0');
                        for (const char *p = device->name; *p; p++)
                                FUZZ_ASSERT(!text_is_control(*p));
                }
        }
        capture_judge_free(pieces);
        capture_judge_free(whole);
}
