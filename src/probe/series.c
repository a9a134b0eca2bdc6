/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded series of readings of any length of time. Touches memory only. */

#include "tierprobe/series.h"

#include <errno.h>
#include <stdlib.h>

int series_init(Series *series, size_t capacity)
{
        Reading *items = calloc(capacity, sizeof *items);

        if (!items)
                return -ENOMEM;
        series_place(series, items, capacity);
        return 0;
}

void series_place(Series *series, Reading *items, size_t capacity)
{
        *series = (Series){ .items = items, .capacity = capacity, .stride = 1 };
}

void series_done(Series *series)
{
        free(series->items);
        *series = (Series){ 0 };
}

/* Keeps the readings at 0, 2, 4, ...: those offered at multiples of the doubled stride. A gap recorded in a
 * reading that is dropped is carried over to the next one that is kept. */
static void halve(Series *series)
{
        for (size_t i = 1; i + 1 < series->n; i += 2)
                if (series->items[i].row.gap != GAP_NONE && series->items[i + 1].row.gap == GAP_NONE)
                        series->items[i + 1].row.gap = series->items[i].row.gap;
        if (series->n % 2 == 0 && series->n > 0 && series->items[series->n - 1].row.gap != GAP_NONE)
                series->pending_gap = series->items[series->n - 1].row.gap;
        for (size_t i = 0; 2 * i < series->n; i++)
                series->items[i] = series->items[2 * i];
        series->n = (series->n + 1) / 2;
        series->stride *= 2;
}

void series_add(Series *series, const Reading *reading)
{
        uint64_t number = series->offered++;

        if (reading->row.gap != GAP_NONE)
                series->pending_gap = reading->row.gap;
        if (number % series->stride != 0)
                return;
        if (series->n == series->capacity)
                halve(series);
        Reading *item = &series->items[series->n++];
        *item = *reading;
        if (item->row.gap == GAP_NONE)
                item->row.gap = series->pending_gap;
        series->pending_gap = GAP_NONE;
}

void series_add_spaced(Series *series, const Reading *reading)
{
        uint64_t beyond = series->offered % series->stride;

        if (beyond > 0)
                series->offered += series->stride - beyond;
        series_add(series, reading);
}

void series_thin(Series *series, size_t wanted)
{
        while (series->n > 2 && (series->n - 1) / 2 >= wanted)
                halve(series);
}
