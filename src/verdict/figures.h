/* SPDX-License-Identifier: Apache-2.0 */
/* Figures against limits, the same for a run and for a capture. Inside the verdict room. */
#pragma once

#include "tierprobe/verdict.h"

/* Everything unknown. */
void judgement_init(const Limits *limits, Judgement *ret);

/* Sets the criteria; NAN is unknown. */
void judgement_set_figures(const Limits *limits, double wkb_s, double w_await, Judgement *j);

/* How far a printed figure may be from the true one; 0 where counters were read. */
typedef struct Rounding {
        double wkb_s, w_await;
} Rounding;

/* Adds to MISSES the requirements that J's figures miss, and returns whether there are any. What is not known
 * is not missed; samples are judged only where both figures are known. */
bool find_misses(const Limits *limits, const char *device, Rounding rounding, const Judgement *j,
                 Reasons *misses);
