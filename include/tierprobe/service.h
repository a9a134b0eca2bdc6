/* SPDX-License-Identifier: Apache-2.0 */
/* What http may ask of the daemon: a table of calls. http knows this and nothing of the daemon, which fills
 * it in. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tierprobe/history.h"
#include "tierprobe/record.h"
#include "tierprobe/views.h"

typedef struct Service {
        void *userdata;
        void (*get)(void *userdata, ServiceView *ret);

        /* The INDEX-th target; false past the end. */
        bool (*get_target)(void *userdata, size_t index, TargetView *ret);

        /* Counts up whenever something that /status shows has changed. */
        uint64_t (*generation)(void *userdata);

        /* Asks for a run of one target. WHO is for the journal; PROFILE NULL is the default one. Returns 0
         * with an answer, or -ENOMEM and other errors of the machine. */
        int (*start_run)(void *userdata, const char *target, const char *profile, RunTrigger trigger,
                         const char *who, StartAnswer *ret);

        AbortResult (*abort_run)(void *userdata, const char *id, const char *who);

        /* Runs newest first, current ones included; NULL past the end, or when there is none of this id. The
         * record lacks the evidence (samples): that is in the kept document. */
        const RunRecord *(*get_run)(void *userdata, size_t index);
        const RunRecord *(*find_run)(void *userdata, const char *id);
        const RunStore *(*run_store)(void *userdata);
} Service;
