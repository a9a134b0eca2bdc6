/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon consists of: its parts side by side, for those who need to see several of them at once
 * (plan.c, readers.c, start.c, targets.c). The parts themselves do not know each other; the manager owns and
 * wires them. */
#pragma once

#include <string.h>

#include "ledger-file.h"
#include "past.h"
#include "runs.h"
#include "target.h"
#include "ticker.h"
#include "timetable.h"
#include "verdicts.h"

#include "tierprobe/config.h"
#include "tierprobe/http.h"

typedef struct Parts {
        DeviceRoots roots;
        int state_fd; /* the state directory, locked */
        Looks *looks;
        Config *config; /* in force */
        Target *targets[CONFIG_MAX_TARGETS];
        size_t n_targets;
        Past *past;
        LedgerFile *ledger;
        size_t n_set_aside; /* rings and ledgers that were damaged, now or before an earlier start */
        Runs *runs;
        Timetable *timetable;
        Verdicts *verdicts;
        Ticker ticker;
        HttpServer *http;    /* NULL: it does not serve yet */
        uint64_t generation; /* counts what a reader would see */
        char *config_error;  /* why the last reload was refused; NULL: it was not */
        int64_t started_real_ns;
        uint64_t started_ns;
} Parts;

static inline Target *parts_find_target(const Parts *parts, const char *name)
{
        for (size_t i = 0; i < parts->n_targets; i++)
                if (strcmp(parts->targets[i]->config->name, name) == 0)
                        return parts->targets[i];
        return NULL;
}
