/* SPDX-License-Identifier: Apache-2.0 */
/* The window of a run: its intervals added up, and how its samples fared. Inside the verdict room. */
#pragma once

#include "tierprobe/verdict.h"

typedef struct Window {
        Delta sum;               /* of the intervals that have a value; interval_ns is 0 when none has */
        bool broken[_GAP_MAX];   /* which gaps it has */
        bool implausible;        /* an interval moved more than any device can */
        double implausible_mb_s; /* how fast that would have been */
        Metrics figures;         /* what is judged of the whole; NAN unknown */
        uint64_t written_bytes;  /* by the writers, between the outermost readings */
        double copies; /* device bytes for each byte of the writers, where rows were summed; else 1 */

        unsigned samples, passing, missing[N_CRITERIA], dropped;
        uint64_t missing_ns; /* of the samples that do not pass */
        uint64_t blind_ns;   /* of intervals that are too long to be samples */
        uint64_t
                idle_ns; /* in which nothing was on its way to the device, although there was more to write */
        double first_third_wkb_s, last_third_wkb_s, worst_wkb_s; /* NAN unknown */
} Window;

void window_measure(const Limits *limits, const RunFacts *facts, Window *ret);

/* wkB/s, rounded once: exactly the limit when the counters say exactly the limit. */
double window_wkb_s(uint64_t sectors, uint64_t interval_ns);
