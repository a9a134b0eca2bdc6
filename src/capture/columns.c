/* SPDX-License-Identifier: Apache-2.0 */
/* Knows every column that sysstat ever printed under a name. Pure. */

#include "columns.h"

#include "tierprobe/cleanup.h"

#include <math.h>
#include <string.h>

#define KB_PER_MB 1024
#define KB_PER_GB (1024.0 * 1024)
#define KB_PER_SECTOR 0.5

static const Column columns[] = {
        { "r/s", COLUMN_R_S, 1 },
        { "rkB/s", COLUMN_RKB, 1 },
        { "rrqm/s", COLUMN_OTHER, 1 },
        { "%rrqm", COLUMN_OTHER, 1 },
        { "r_await", COLUMN_OTHER, 1 },
        { "rareq-sz", COLUMN_OTHER, 1 },
        { "w/s", COLUMN_W_S, 1 },
        { "wkB/s", COLUMN_WKB, 1 },
        { "wrqm/s", COLUMN_OTHER, 1 },
        { "%wrqm", COLUMN_OTHER, 1 },
        { "w_await", COLUMN_W_AWAIT, 1 },
        { "wareq-sz", COLUMN_WAREQ, 1 },
        { "d/s", COLUMN_OTHER, 1 },
        { "dkB/s", COLUMN_OTHER, 1 },
        { "drqm/s", COLUMN_OTHER, 1 },
        { "%drqm", COLUMN_OTHER, 1 },
        { "d_await", COLUMN_OTHER, 1 },
        { "dareq-sz", COLUMN_OTHER, 1 },
        { "f/s", COLUMN_OTHER, 1 },
        { "f_await", COLUMN_OTHER, 1 },
        { "aqu-sz", COLUMN_QUEUE, 1 },
        { "%util", COLUMN_UTIL, 1 },
        { "svctm", COLUMN_OTHER, 1 },
        { "await", COLUMN_OTHER, 1 },
        { "avgrq-sz", COLUMN_AVGRQ, 1 },
        { "avgqu-sz", COLUMN_QUEUE, 1 },
        { "rMB/s", COLUMN_RKB, KB_PER_MB },
        { "wMB/s", COLUMN_WKB, KB_PER_MB },
        { "dMB/s", COLUMN_OTHER, KB_PER_MB },
        { "rsec/s", COLUMN_RKB, KB_PER_SECTOR },
        { "wsec/s", COLUMN_WKB, KB_PER_SECTOR },
        { "dsec/s", COLUMN_OTHER, KB_PER_SECTOR },
        { "rGB/s", COLUMN_RKB, KB_PER_GB },
        { "wGB/s", COLUMN_WKB, KB_PER_GB },
        { "dGB/s", COLUMN_OTHER, KB_PER_GB },
        /* of -s */
        { "kB/s", COLUMN_OTHER, 1 },
        { "MB/s", COLUMN_OTHER, 1 },
        { "sec/s", COLUMN_OTHER, 1 },
        { "rqm/s", COLUMN_OTHER, 1 },
        { "areq-sz", COLUMN_OTHER, 1 },
        /* without -x */
        { "tps", COLUMN_OTHER, 1 },
        { "kB_read/s", COLUMN_OTHER, 1 },
        { "kB_wrtn/s", COLUMN_OTHER, 1 },
        { "kB_dscd/s", COLUMN_OTHER, 1 },
        { "kB_read", COLUMN_OTHER, 1 },
        { "kB_wrtn", COLUMN_OTHER, 1 },
        { "kB_dscd", COLUMN_OTHER, 1 },
        { "MB_read/s", COLUMN_OTHER, 1 },
        { "MB_wrtn/s", COLUMN_OTHER, 1 },
        { "MB_dscd/s", COLUMN_OTHER, 1 },
        { "MB_read", COLUMN_OTHER, 1 },
        { "MB_wrtn", COLUMN_OTHER, 1 },
        { "MB_dscd", COLUMN_OTHER, 1 },
        { "Blk_read/s", COLUMN_OTHER, 1 },
        { "Blk_wrtn/s", COLUMN_OTHER, 1 },
        { "Blk_dscd/s", COLUMN_OTHER, 1 },
        { "Blk_read", COLUMN_OTHER, 1 },
        { "Blk_wrtn", COLUMN_OTHER, 1 },
        { "Blk_dscd", COLUMN_OTHER, 1 },
};

const Column *column_at(size_t index)
{
        return index < ELEMENTSOF(columns) ? &columns[index] : NULL;
}

const Column *column_find(const char *name, size_t size)
{
        for (size_t i = 0; i < ELEMENTSOF(columns); i++)
                if (columns[i].name[0] == name[0] && strlen(columns[i].name) == size &&
                    memcmp(columns[i].name, name, size) == 0)
                        return &columns[i];
        return NULL;
}

/* ---- figures ---- */

/* More than any device does: see the judge of runs for 200 GB/s. A mean of an hour over a report is what a
 * counter stepping back by one gives (2^32 ms over some writes). */
#define ABSURD_KB INT64_C(200000000)
#define ABSURD_RATE INT64_C(1000000000)
#define ABSURD_AWAIT INT64_C(3600000)

bool figures_are_absurd(const Figures *figures)
{
        /* A mean size, a queue or a busy time are only compared, so that what they say of a reset, the others
         * say as well. */
        static const int64_t most[N_COLUMN_ROLES] = {
                [COLUMN_WKB] = ABSURD_KB * SCALE_WKB,   [COLUMN_W_AWAIT] = ABSURD_AWAIT * SCALE_AWAIT,
                [COLUMN_W_S] = ABSURD_RATE * SCALE_WKB, [COLUMN_R_S] = ABSURD_RATE * SCALE_WKB,
                [COLUMN_RKB] = ABSURD_KB * SCALE_WKB,
        };

        for (size_t role = 0; role < N_COLUMN_ROLES; role++)
                if (most[role] > 0 && figures_have(figures, role) &&
                    (figures->value[role] < 0 || figures->value[role] > most[role]))
                        return true;
        return false;
}

static double figure(const Figures *figures, ColumnRole role)
{
        return (double) figures->value[role] / SCALE_WKB;
}

/* Editing a figure by hand, or rounding, moves it a little: less than this is no damage. */
#define CONTRADICTION 3
/* How exactly a multiple must be met to be one. */
#define MULTIPLE 0.05

Agreement figures_agreement(const Figures *f)
{
        double kb = figure(f, COLUMN_WKB), of = 0, slack = 0;

        if (!figures_have(f, COLUMN_WKB) || !figures_have(f, COLUMN_W_S))
                return AGREEMENT_UNKNOWN;
        if (figures_have(f, COLUMN_WAREQ)) {
                double size = figure(f, COLUMN_WAREQ), rate = figure(f, COLUMN_W_S);
                of = rate * size;
                slack = (rate + f->rounding[COLUMN_W_S]) * f->rounding[COLUMN_WAREQ] +
                        size * f->rounding[COLUMN_W_S];
        } else if (figures_have(f, COLUMN_AVGRQ) && figures_have(f, COLUMN_R_S) &&
                   figures_have(f, COLUMN_RKB)) {
                double size = figure(f, COLUMN_AVGRQ) / 2;
                double rate = figure(f, COLUMN_R_S) + figure(f, COLUMN_W_S);
                kb += figure(f, COLUMN_RKB);
                of = rate * size;
                slack = (rate + 2 * f->rounding[COLUMN_W_S]) * f->rounding[COLUMN_AVGRQ] / 2 +
                        size * 2 * f->rounding[COLUMN_W_S];
                slack += f->rounding[COLUMN_RKB];
        }
        if (!(of > 0))
                return AGREEMENT_UNKNOWN; /* not there, or a 0 in the place of what was not known */
        slack += f->rounding[COLUMN_WKB];
        if (fabs(kb - of) <= slack + MULTIPLE * of)
                return AGREEMENT_GOOD;
        if (fabs(kb - 2 * of) <= slack + MULTIPLE * 2 * of)
                return AGREEMENT_TWICE;
        if (fabs(kb - 2048 * of) <= slack + MULTIPLE * 2048 * of)
                return AGREEMENT_2048_TIMES;
        return kb > CONTRADICTION * of + slack || kb < of / CONTRADICTION - slack ? AGREEMENT_NONE
                                                                                  : AGREEMENT_GOOD;
}
