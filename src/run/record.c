/* SPDX-License-Identifier: Apache-2.0 */
/* The record of one run: its id, making, freeing, and the names of its enums. Touches no file. */

#include "tierprobe/record.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* ---- ids ---- */

#define RANDOM_BITS 18

void run_id_make(char id[RUN_ID_SIZE], int64_t real_ns)
{
        static int64_t last_s;
        static uint32_t last_number;
        int64_t second_ns = (int64_t) NS_PER_S, s = real_ns / second_ns;
        uint32_t random = 0, ms = (uint32_t) (real_ns % second_ns / (int64_t) NS_PER_MS);
        char time[RFC3339_SIZE];

        if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random)
                random = (uint32_t) clock_ns(CLOCK_MONOTONIC);
        uint32_t number = ms << RANDOM_BITS | (random & ((UINT32_C(1) << RANDOM_BITS) - 1));
        /* Ids made within one second still sort in the order in which they were made, and are all different.
         */
        if (s == last_s && number <= last_number)
                number = last_number + 1;
        last_s = s;
        last_number = number;
        (void) rfc3339_format(time, real_ns); /* 2026-11-30T13:14:05.123Z */
        (void) snprintf(id, RUN_ID_SIZE, "%.4s%.2s%.2sT%.2s%.2s%.2s-%07" PRIx32, time, time + 5, time + 8,
                        time + 11, time + 14, time + 17, number & UINT32_C(0xfffffff));
}

bool run_id_is_valid(const char *text)
{
        size_t length = strspn(text, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-");

        return length > 0 && length < RUN_ID_SIZE && text[length] == '\0';
}

int run_id_time(const char *id, int64_t *ret_real_ns)
{
        char text[RFC3339_SIZE];

        if (!run_id_is_valid(id) || strlen(id) < 16 || id[15] != '-')
                return -EINVAL;
        (void) snprintf(text, sizeof text, "%.4s-%.2s-%.5s:%.2s:%.2sZ", id, id + 4, id + 6, id + 11, id + 13);
        return rfc3339_parse(text, ret_real_ns);
}

/* ---- names ---- */

static const char *const trigger_names[_TRIGGER_MAX] = {
        [TRIGGER_MANUAL] = "manual",
        [TRIGGER_SCHEDULE] = "schedule",
        [TRIGGER_START] = "start",
};

static const char *const state_names[_RUN_STATE_MAX] = {
        [RUN_QUEUED] = "queued",   [RUN_RUNNING] = "running", [RUN_FINISHED] = "finished",
        [RUN_ABORTED] = "aborted", [RUN_FAILED] = "failed",
};

const char *run_trigger_to_string(RunTrigger trigger)
{
        return trigger_names[trigger];
}

int run_trigger_from_string(const char *text, RunTrigger *ret)
{
        for (size_t i = 0; i < ELEMENTSOF(trigger_names); i++)
                if (strcmp(text, trigger_names[i]) == 0) {
                        *ret = (RunTrigger) i;
                        return 0;
                }
        return -EINVAL;
}

const char *run_state_to_string(RunState state)
{
        return state_names[state];
}

int run_state_from_string(const char *text, RunState *ret)
{
        for (size_t i = 0; i < ELEMENTSOF(state_names); i++)
                if (strcmp(text, state_names[i]) == 0) {
                        *ret = (RunState) i;
                        return 0;
                }
        return -EINVAL;
}

static double ms_from_ns(double ns)
{
        return ns / 1e6;
}

const uint64_t latency_bounds_ns[N_LATENCY_BOUNDS] = {
        100 * NS_PER_US, 250 * NS_PER_US, 500 * NS_PER_US, NS_PER_MS,      2 * NS_PER_MS,
        5 * NS_PER_MS,   10 * NS_PER_MS,  20 * NS_PER_MS,  50 * NS_PER_MS, 100 * NS_PER_MS,
        250 * NS_PER_MS, 500 * NS_PER_MS, NS_PER_S,        5 * NS_PER_S,   30 * NS_PER_S,
};

void latency_counts_add_histogram(LatencyCounts *counts, const Histogram *histogram)
{
        for (size_t i = 0; i < N_LATENCY_BOUNDS; i++)
                counts->up_to[i] += histogram_count_up_to(histogram, latency_bounds_ns[i]);
        counts->count += histogram->count;
        counts->sum_ns += histogram->sum_ns;
}

void latency_counts_add(LatencyCounts *counts, const LatencyCounts *other)
{
        for (size_t i = 0; i < N_LATENCY_BOUNDS; i++)
                counts->up_to[i] += other->up_to[i];
        counts->count += other->count;
        counts->sum_ns += other->sum_ns;
}

void latency_summary_from_histogram(const Histogram *histogram, LatencySummary *ret)
{
        if (histogram->count == 0) {
                *ret = (LatencySummary){ NAN, NAN, NAN, NAN, NAN, NAN };
                return;
        }
        *ret = (LatencySummary){
                .mean = ms_from_ns(histogram_mean_ns(histogram)),
                .p50 = ms_from_ns((double) histogram_quantile_ns(histogram, 0.50)),
                .p90 = ms_from_ns((double) histogram_quantile_ns(histogram, 0.90)),
                .p99 = ms_from_ns((double) histogram_quantile_ns(histogram, 0.99)),
                .p99_9 = ms_from_ns((double) histogram_quantile_ns(histogram, 0.999)),
                .max = ms_from_ns((double) histogram->max_ns),
        };
}

/* A figure that has not been measured is NAN, not zero. */
void run_record_forget_result(RunRecord *record)
{
        free(record->samples);
        record->samples = NULL;
        record->n_samples = 0;
        record->n_slowest = 0;
        record->has_latency = false;
        judgement_forget(&record->judgement);
        record->latency = (LatencySummary){ NAN, NAN, NAN, NAN, NAN, NAN };
}

int run_record_new(RunRecord **ret)
{
        RunRecord *record = calloc(1, sizeof *record);
        if (!record)
                return -ENOMEM;
        run_record_forget_result(record);
        record->background_write_mb_per_s = NAN;
        *ret = record;
        return 0;
}

RunRecord *run_record_free(RunRecord *record)
{
        if (!record)
                return NULL;
        free(record->path);
        free(record->place);
        free(record->companions);
        free(record->samples);
        free(record->conditions);
        record->device = device_free(record->device);
        free(record);
        return NULL;
}

void run_record_freep(RunRecord **record)
{
        if (*record)
                *record = run_record_free(*record);
}

const RampStep *run_record_headroom(const RunRecord *record)
{
        const RampStep *best = NULL;

        for (size_t i = 0; i < record->n_steps; i++) {
                const RampStep *step = &record->steps[i];

                if (step->meets_latency && (!best || step->measured.wkb_s > best->measured.wkb_s))
                        best = step;
        }
        return best;
}
