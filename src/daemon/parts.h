/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon consists of: its parts side by side, for the two who need to see several of them at once
 * (start.c, readers.c). The parts themselves do not know each other; the manager owns and wires them. */
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

typedef struct Parts {
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
} Parts;

static inline Target *parts_find_target(const Parts *parts, const char *name)
{
        for (size_t i = 0; i < parts->n_targets; i++)
                if (strcmp(parts->targets[i]->config->name, name) == 0)
                        return parts->targets[i];
        return NULL;
}
