/* SPDX-License-Identifier: Apache-2.0 */
/* What keeps a run from starting now: cooldown, write budget, free space, what others write. Pure: rules and
 * facts in, an answer out. Knows base and the rules of schedule.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tierprobe/schedule.h"

/* What is known at the moment the run is asked for. Texts are for sentences, borrowed. */
typedef struct GuardFacts {
        const char *target, *device; /* names; device NULL: not known */
        int64_t now_real_ns;
        int64_t last_written_real_ns;    /* when the last run that wrote anything ended; 0: none did */
        uint64_t written_last_day_bytes; /* by tests, to its disk; what waits and runs is included */
        int64_t budget_room_real_ns;     /* when the test will be within the budget; INT64_MAX: not known */
        uint64_t test_bytes;             /* what the run writes at most */
        uint64_t test_space_bytes;       /* how much of it must be free at a time */
        bool space_known;                /* else the writers look for themselves */
        uint64_t free_bytes, total_bytes;
        bool asked_for;          /* somebody waits for it: others' writes do not keep it back */
        double foreign_mb_per_s; /* wkB/s / 1000 of the last sample; NAN: not known */
} GuardFacts;

typedef enum GuardBlock {
        GUARD_NONE,
        GUARD_COOLDOWN,
        GUARD_OVER_BUDGET,
        GUARD_NO_SPACE,
        GUARD_FOREIGN_IO,
} GuardBlock;

typedef struct GuardAnswer {
        GuardBlock block;       /* GUARD_NONE: it may start, and nothing else is set */
        uint64_t retry_after_s; /* COOLDOWN, OVER_BUDGET: at least 1 */
        char detail[256];       /* a sentence without its full stop */
} GuardAnswer;

/* Each returns whether a run may start as far as it is asked, and fills in RET if not. */
bool guard_cooldown(const GuardRules *rules, const GuardFacts *facts, GuardAnswer *ret);
bool guard_budget(const GuardRules *rules, const GuardFacts *facts, GuardAnswer *ret);
bool guard_space(const GuardRules *rules, const GuardFacts *facts, GuardAnswer *ret);
bool guard_foreign(const GuardRules *rules, const GuardFacts *facts, GuardAnswer *ret);

/* All four in this order: whoever must wait is told so before anything that may be mended meanwhile. RET is
 * always filled in. */
bool guards_allow(const GuardRules *rules, const GuardFacts *facts, GuardAnswer *ret);

/* ---- while a run that the schedule began goes on ---- */

/* What others have written to its device so far. Begins zeroed. */
typedef struct GiveWay {
        uint64_t since_ns; /* MONOTONIC; 0: not begun */
        uint64_t device_bytes, own_bytes;
        uint64_t over_ns; /* for how long on end they have written more than they may */
} GiveWay;

/* Takes in what the device has written since the last call, and what the run itself has written in all, by
 * NOW_NS. Whether the run must give way: others have written more than abort_foreign_mb_per_s for three
 * seconds on end, the last one of them RET_MB_PER_S (wkB/s / 1000). Seconds are looked at whole, since what
 * is on its way to the device counts on one side only. */
bool guard_gives_way(const GuardRules *rules, GiveWay *give_way, uint64_t now_ns, uint64_t device_bytes,
                     uint64_t own_bytes, double *ret_mb_per_s);
