/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict of each target, and what is to be said beside it: stale, degraded. A change goes up by a
 * callback. Knows what past runs tell and what a target stands on. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "past.h"
#include "target.h"

#include "tierprobe/config.h"

typedef struct Verdicts Verdicts;

typedef struct TargetVerdict {
        Verdict verdict; /* of the run that stands */
        bool stale, degraded;
        Reasons warnings; /* why it is either */
} TargetVerdict;

typedef struct VerdictsEvents {
        void *userdata;
        void (*changed)(const Target *target, const TargetVerdict *before, const TargetVerdict *now,
                        void *userdata);
} VerdictsEvents;

int verdicts_new(Verdicts **ret, const VerdictsEvents *events);
Verdicts *verdicts_free(Verdicts *verdicts);
void verdicts_freep(Verdicts **verdicts);

/* Looks anew at TARGET, whose runs tell STANDING, under CONFIG. */
void verdicts_update(Verdicts *verdicts, const Target *target, const PastStanding *standing,
                     const Config *config);

/* The same when the last look was so long ago that it may have become too old since. */
void verdicts_update_if_old(Verdicts *verdicts, const Target *target, const PastStanding *standing,
                            const Config *config);

/* Forgets TARGET. */
void verdicts_drop(Verdicts *verdicts, const Target *target);

/* Never NULL; VERDICT_NEVER_RUN for a target that was not looked at. Borrowed until the next update of it. */
const TargetVerdict *verdicts_of(const Verdicts *verdicts, const Target *target);

/* A pass that nothing speaks against: /readyz. */
static inline bool verdict_is_ready(const TargetVerdict *verdict)
{
        return verdict->verdict == VERDICT_PASS && !verdict->stale;
}
