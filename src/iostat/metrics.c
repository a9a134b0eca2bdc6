/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics: a delta as iostat's extended columns. Pure. */

#include "tierprobe/iostat.h"

#include <math.h>

#define COLUMN(field, key, header, width, text_at)                    \
        {                                                             \
                key, header, offsetof(Metrics, field), width, text_at \
        }

const MetricColumn metric_columns[] = {
        COLUMN(r_s, "r/s", "r/s", 7, 0),
        COLUMN(w_s, "w/s", "w/s", 7, 6),
        COLUMN(d_s, "d/s", "d/s", 7, 12),
        COLUMN(f_s, "f/s", "f/s", 7, 18),
        COLUMN(rkb_s, "rkB/s", "rkB/s", 9, 1),
        COLUMN(wkb_s, "wkB/s", "wkB/s", 9, 7),
        COLUMN(dkb_s, "dkB/s", "dkB/s", 9, 13),
        COLUMN(rrqm_s, "rrqm/s", "rrqm/s", 8, 2),
        COLUMN(wrqm_s, "wrqm/s", "wrqm/s", 8, 8),
        COLUMN(drqm_s, "drqm/s", "drqm/s", 8, 14),
        COLUMN(rrqm_pc, "rrqm", "%rrqm", 6, 3),
        COLUMN(wrqm_pc, "wrqm", "%wrqm", 6, 9),
        COLUMN(drqm_pc, "drqm", "%drqm", 6, 15),
        COLUMN(r_await, "r_await", "r_await", 7, 4),
        COLUMN(w_await, "w_await", "w_await", 7, 10),
        COLUMN(d_await, "d_await", "d_await", 7, 16),
        COLUMN(f_await, "f_await", "f_await", 7, 19),
        COLUMN(rareq_sz, "rareq-sz", "rareq-sz", 8, 5),
        COLUMN(wareq_sz, "wareq-sz", "wareq-sz", 8, 11),
        COLUMN(dareq_sz, "dareq-sz", "dareq-sz", 8, 17),
        COLUMN(aqu_sz, "aqu-sz", "aqu-sz", 7, 20),
        COLUMN(util, "util", "%util", 6, 21),
};

_Static_assert(sizeof metric_columns / sizeof metric_columns[0] == N_METRIC_COLUMNS, "a row for each field");

const MetricColumn *metric_column_in_text(size_t place)
{
        for (size_t i = 0; i < N_METRIC_COLUMNS; i++)
                if (metric_columns[i].text_at == place)
                        return &metric_columns[i];
        return NULL;
}

/* Sums are made in doubles: each part is exact up to 2^53, and nothing can overflow. */
static double share_percent(uint64_t merges, uint64_t ios)
{
        double all = (double) merges + (double) ios;

        return all > 0 ? (double) merges / all * 100 : NAN;
}

static double each(uint64_t total, uint64_t ios)
{
        return ios > 0 ? (double) total / (double) ios : NAN;
}

void metrics_forget(Metrics *metrics)
{
        for (size_t i = 0; i < N_METRIC_COLUMNS; i++)
                *(double *) (void *) ((char *) metrics + metric_columns[i].offset) = NAN;
}

void metrics_from_delta(const Delta *delta, Metrics *ret)
{
        /* Hundredths of a second and this order of operations are iostat's, so that over an interval of
         * whole hundredths every column comes out equal to the last bit. */
        double cs = (double) delta->interval_ns / 1e7;

        Metrics m = {
                .r_s = (double) delta->r_ios / cs * 100,
                .w_s = (double) delta->w_ios / cs * 100,
                .d_s = NAN,
                .f_s = NAN,
                .rkb_s = (double) delta->r_sectors / cs * 100 / 2,
                .wkb_s = (double) delta->w_sectors / cs * 100 / 2,
                .dkb_s = NAN,
                .rrqm_s = (double) delta->r_merges / cs * 100,
                .wrqm_s = (double) delta->w_merges / cs * 100,
                .drqm_s = NAN,
                .rrqm_pc = share_percent(delta->r_merges, delta->r_ios),
                .wrqm_pc = share_percent(delta->w_merges, delta->w_ios),
                .drqm_pc = NAN,
                .r_await = each(delta->r_ms, delta->r_ios),
                .w_await = each(delta->w_ms, delta->w_ios),
                .d_await = NAN,
                .f_await = NAN,
                .rareq_sz = each(delta->r_sectors, delta->r_ios) / 2,
                .wareq_sz = each(delta->w_sectors, delta->w_ios) / 2,
                .dareq_sz = NAN,
                .aqu_sz = (double) delta->queue_ms / cs * 100 / 1000,
                .util = (double) delta->io_ms / cs * 100 / 10,
        };
        if (delta->has_discards) {
                m.d_s = (double) delta->d_ios / cs * 100;
                m.dkb_s = (double) delta->d_sectors / cs * 100 / 2;
                m.drqm_s = (double) delta->d_merges / cs * 100;
                m.drqm_pc = share_percent(delta->d_merges, delta->d_ios);
                m.d_await = each(delta->d_ms, delta->d_ios);
                m.dareq_sz = each(delta->d_sectors, delta->d_ios) / 2;
        }
        if (delta->has_flushes) {
                m.f_s = (double) delta->f_ios / cs * 100;
                m.f_await = each(delta->f_ms, delta->f_ios);
        }
        *ret = m;
}
