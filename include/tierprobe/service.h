/* SPDX-License-Identifier: Apache-2.0 */
/* What http may ask of the daemon: a table of calls. http knows this and nothing of the daemon, which fills
 * it in. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tierprobe/past-run.h"
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

        /* Runs queued and running, newest first; NULL past the end, or when there is none of this id. */
        const RunRecord *(*current_run)(void *userdata, size_t index);
        const RunRecord *(*find_current)(void *userdata, const char *id);

        /* The id of the newest past run that is older than BEFORE (NULL: of all); NULL when there is none. */
        const char *(*older_run)(void *userdata, const char *before);

        /* A past run: its fields, and its whole document; each may be NULL, and is owned by the caller. 0;
         * -ENOENT: there is none of this id; -EBADMSG: it was damaged; or the errno of reading. */
        int (*read_run)(void *userdata, const char *id, PastRun **ret, char **ret_text, size_t *ret_size);
} Service;
