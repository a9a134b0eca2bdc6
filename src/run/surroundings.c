/* SPDX-License-Identifier: Apache-2.0 */
/* What goes on around a run: own limits, waiting, the kernel's words on the device, heat. Reads /proc and
 * /sys below the run's roots, of what is answered from memory; the heat is read by a child. */

#include "run-internal.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAT_EVERY_NS NS_PER_S

struct Watchful {
        OwnLimits limits;
        States states;
        WaitCounters waits;
        HeatWatch *heat;
        MemoryKills kills;
};

static DeviceRoots roots_of(const Run *run)
{
        return (DeviceRoots){ .procfs = run->procfs, .sysfs = run->sysfs };
}

void surroundings_begin(Run *run)
{
        const DeviceRoots roots = roots_of(run);
        Watchful *watchful = calloc(1, sizeof *watchful);

        if (!watchful)
                return;
        own_limits_read(&roots, run->record->device, &watchful->limits);
        states_read(&roots, run->record->device, &watchful->states);
        memory_kills_read(&roots, &watchful->kills);
        (void) heat_watch_new(&roots, run->record->device, HEAT_EVERY_NS, &watchful->heat);
        run->watchful = watchful;
}

bool surroundings_killed_for_memory(const Run *run, char *ret, size_t size)
{
        const DeviceRoots roots = roots_of(run);
        const Watchful *watchful = run->watchful;
        MemoryKills kills;

        if (!watchful || watchful->kills.n < 0)
                return false;
        memory_kills_read(&roots, &kills);
        if (kills.n <= watchful->kills.n)
                return false;
        (void) snprintf(ret, size, "oom_kill in %s went from %" PRId64 " to %" PRId64, kills.where,
                        watchful->kills.n, kills.n);
        return true;
}

static void read_waits(const Run *run, WaitCounters *ret)
{
        const DeviceRoots roots = roots_of(run);
        pid_t writers[PROBE_MAX_STREAMS];
        size_t n = probe_writers(run->probe, writers, PROBE_MAX_STREAMS);

        wait_counters_read(&roots, run->record->device, writers, n, ret);
}

void surroundings_go(Run *run)
{
        if (run->watchful)
                read_waits(run, &run->watchful->waits);
}

/* A limit that was taken away, or set, while the test ran has held for a part of it. */
static void add_limits(OwnLimits *all, const OwnLimits *more)
{
        for (size_t i = 0; i < more->n && all->n < MAX_OWN_LIMITS; i++) {
                bool there = false;

                for (size_t j = 0; j < all->n; j++)
                        there |= strcmp(all->items[j].where, more->items[i].where) == 0 &&
                                 strcmp(all->items[j].text, more->items[i].text) == 0;
                if (!there)
                        all->items[all->n++] = more->items[i];
        }
}

void surroundings_end(Run *run)
{
        const DeviceRoots roots = roots_of(run);
        RunRecord *record = run->record;
        WaitCounters after;

        if (!run->watchful)
                return;
        if (!record->conditions)
                record->conditions = calloc(1, sizeof *record->conditions);
        if (!record->conditions)
                return;
        read_waits(run, &after);
        wait_counters_subtract(&run->watchful->waits, &after, &record->conditions->waits);
        own_limits_read(&roots, record->device, &record->conditions->limits);
        add_limits(&record->conditions->limits, &run->watchful->limits);
        states_read(&roots, record->device, &record->conditions->states);
        states_compare(&run->watchful->states, &record->conditions->states);
        if (run->watchful->heat)
                heat_watch_get(run->watchful->heat, &record->conditions->heat);
}

Watchful *surroundings_free(Watchful *watchful)
{
        if (!watchful)
                return NULL;
        heat_watch_free(watchful->heat);
        free(watchful);
        return NULL;
}

/* ---- in words ---- */

static double part(int64_t some, double of)
{
        return some >= 0 && of > 0 ? (double) some / of : NAN;
}

void surroundings_describe(const Run *run, const Judgement *figures, SurroundingsTexts *texts,
                           Surroundings *ret)
{
        const Conditions *conditions = run->record->conditions;
        double elapsed_ns = figures->elapsed_s * 1e9, writers_ns = elapsed_ns * run->streams;
        const WaitCounters *waits = &conditions->waits;
        const LimitUse use = {
                .write_bytes_per_s = figures->measured.wkb_s * 1024,
                .writes_per_s = figures->measured.w_s,
                .processors = part(waits->writers_ran_ns, elapsed_ns),
                .file_bytes = run->progress.bytes_written / (run->streams ? run->streams : 1),
        };
        const OwnLimit *limit = own_limits_reached(&conditions->limits, &use);
        const StateFact *state = states_worst(&conditions->states);
        const HeatSensor *sensor = heat_crossed(&conditions->heat);

        *ret = (Surroundings){
                .processor = part(waits->writers_ran_ns, writers_ns),
                .waiting = part(waits->writers_waited_ns, writers_ns),
                .steal = part(waits->steal_ms, (double) waits->processor_ms),
                .call_ms = run->record->has_latency ? run->record->latency.mean : NAN,
        };
        if (limit) {
                (void) snprintf(texts->limit, sizeof texts->limit, "%s is %s", limit->where, limit->text);
                ret->limit = texts->limit;
                ret->limit_in_latency = limit->kind == LIMIT_IDLE_IO;
        }
        if (state) {
                (void) snprintf(texts->state, sizeof texts->state, "%s: %s is %s: %s", state->device,
                                state->name, state->value, state->meaning);
                ret->state = texts->state;
        }
        if (sensor) {
                (void) snprintf(texts->heat, sizeof texts->heat,
                                "%s (%.40s) reached %.0f C, its limit is %.0f C", sensor->device,
                                sensor->label, sensor->peak_c,
                                isnan(sensor->max_c) ? sensor->crit_c : sensor->max_c);
                ret->heat = texts->heat;
        }
}
