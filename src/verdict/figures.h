/* SPDX-License-Identifier: Apache-2.0 */
/* Figures against limits, the same for a run and for a capture. Inside the verdict room. */
#pragma once

#include "tierprobe/verdict.h"

/* Everything unknown but the limits. */
void judgement_init(const Limits *limits, Judgement *ret);

/* Sets the criteria from FIGURES; NAN is unknown. */
void judgement_set_figures(const Limits *limits, const Metrics *figures, Judgement *j);

#define ADVICE_SIZE 160

/* What mends the miss of each requirement: one sentence. */
typedef struct Advice {
        char text[N_CRITERIA][ADVICE_SIZE];
} Advice;

/* "Use a faster device." */
void advice_init(Advice *ret);

/* Adds to MISSES the requirements that J's figures miss, and returns whether there are any. What is not known
 * is not missed; samples are judged only where all figures are known. ROUNDING says of each criterion how far
 * its printed column may be from the true one; NULL where counters were read. */
bool figures_find_misses(const Limits *limits, const char *device, const double *rounding, const Judgement *j,
                         const Advice *advice, Reasons *misses);
