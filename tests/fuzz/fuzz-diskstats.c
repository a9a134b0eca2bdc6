/* SPDX-License-Identifier: Apache-2.0 */
/* Two records out of any bytes: "UPTIME NUL DISKSTATS NUL UPTIME NUL DISKSTATS". Parses both, and makes
 * deltas and metrics of what they share. Whatever comes in, an interval that is taken for good has no
 * negative figure. */

#include "tierprobe/clock.h"
#include "tierprobe/iostat.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct Piece {
        const char *text;
        size_t size;
} Piece;

static Piece take_piece(Piece *rest)
{
        const char *nul = rest->size > 0 ? memchr(rest->text, '\0', rest->size) : NULL;
        Piece piece = { rest->text, nul ? (size_t) (nul - rest->text) : rest->size };
        size_t used = piece.size + (nul ? 1 : 0);

        rest->text += used;
        rest->size -= used;
        return piece;
}

static void read_record(Piece *rest, SnapshotTable *table)
{
        Piece uptime = take_piece(rest), diskstats = take_piece(rest);
        char *text = strndup(uptime.text, uptime.size);
        uint64_t cs = 0;

        if (!text)
                abort();
        if (uptime_parse(text, &cs) < 0)
                cs = 100;
        free(text);
        Snapshot when = { .mono_ns = cs * 10 * NS_PER_MS, .boot_ns = cs * 10 * NS_PER_MS };
        (void) snapshot_table_parse(table, diskstats.text, diskstats.size, &when);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        SnapshotTable before = { 0 }, after = { 0 };
        Piece rest = { (const char *) data, size };
        Counters counters;

        read_record(&rest, &before);
        read_record(&rest, &after);
        (void) counters_parse((const char *) data, size, &counters);
        for (size_t i = 0; i < after.n; i++) {
                const NamedSnapshot *now = &after.rows[i];
                const NamedSnapshot *then = snapshot_table_find(&before, now->name, i);
                Delta delta;
                Metrics metrics;

                if (strlen(now->name) == 0 || !snapshot_table_find(&after, now->name, 0))
                        abort();
                Gap gap = delta_compute(then ? &then->snapshot : NULL, &now->snapshot, &delta);
                if (!gap_to_string(gap) || (gap == GAP_FIRST) != !then)
                        abort();
                if (gap != GAP_NONE)
                        continue;
                metrics_from_delta(&delta, &metrics);
                for (size_t c = 0; c < N_METRIC_COLUMNS; c++) {
                        double value = metric_value(&metrics, &metric_columns[c]);
                        if (value < 0 || isinf(value))
                                abort();
                }
        }
        snapshot_table_done(&before);
        snapshot_table_done(&after);
        return 0;
}
