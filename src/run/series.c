/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded series of snapshots of any length of time. Touches memory only. */

#include "tierprobe/series.h"

#include <errno.h>
#include <stdlib.h>

int series_init(Series *series, size_t capacity)
{
        Snapshot *items = calloc(capacity, sizeof *items);

        if (!items)
                return -ENOMEM;
        *series = (Series){ .items = items, .capacity = capacity, .stride = 1 };
        return 0;
}

void series_done(Series *series)
{
        free(series->items);
        *series = (Series){ 0 };
}

/* Keeps the snapshots at 0, 2, 4, ...: those offered at multiples of the doubled stride. What broke the
 * series at a snapshot that goes is told by the next one. */
static void halve(Series *series)
{
        for (size_t i = 1; i + 1 < series->n; i += 2)
                if (series->items[i].gap != GAP_NONE && series->items[i + 1].gap == GAP_NONE)
                        series->items[i + 1].gap = series->items[i].gap;
        if (series->n % 2 == 0 && series->n > 0 && series->items[series->n - 1].gap != GAP_NONE)
                series->pending_gap = series->items[series->n - 1].gap;
        for (size_t i = 0; 2 * i < series->n; i++)
                series->items[i] = series->items[2 * i];
        series->n = (series->n + 1) / 2;
        series->stride *= 2;
}

void series_add(Series *series, const Snapshot *snapshot)
{
        uint64_t number = series->offered++;

        if (snapshot->gap != GAP_NONE)
                series->pending_gap = snapshot->gap;
        if (number % series->stride != 0)
                return;
        if (series->n == series->capacity)
                halve(series);
        Snapshot *item = &series->items[series->n++];
        *item = *snapshot;
        if (item->gap == GAP_NONE)
                item->gap = series->pending_gap;
        series->pending_gap = GAP_NONE;
}

void series_add_spaced(Series *series, const Snapshot *snapshot)
{
        uint64_t beyond = series->offered % series->stride;

        if (beyond > 0)
                series->offered += series->stride - beyond;
        series_add(series, snapshot);
}

void series_thin(Series *series, size_t wanted)
{
        while (series->n > 2 && (series->n - 1) / 2 >= wanted)
                halve(series);
}
