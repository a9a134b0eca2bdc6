/* SPDX-License-Identifier: Apache-2.0 */
/* Past runs: the newest ones in memory without their evidence, all of them in the store. */

#include "past.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/config.h"
#include "tierprobe/json.h"
#include "tierprobe/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_KEPT_RUNS 100
/* At the start the documents of runs that were under way are there as well. */
#define MAX_STORED_RUNS (MAX_KEPT_RUNS + CONFIG_MAX_TARGETS)

/* A past run: its id, and its record once someone asked for it. */
typedef struct PastRun {
        char id[RUN_ID_SIZE];
        RunRecord *record; /* without evidence: that stays in the store */
} PastRun;

typedef struct Followed {
        char *target, *path;
        const RunRecord *last;    /* in the list; NULL: never ran */
        const RunRecord *located; /* the newest that knows its mount point */
} Followed;

struct Past {
        PastEvents events;
        RunStore *store;
        bool store_failed;             /* said once, until it works again */
        PastRun runs[MAX_STORED_RUNS]; /* newest first */
        size_t n_runs;
        Followed followed[CONFIG_MAX_TARGETS];
        size_t n_followed;
};

/* ---- documents ---- */

static void put(Past *past, const RunRecord *record, bool evidence)
{
        size_t size = 0;
        json_auto_t *document = json_run(record, evidence);
        _cleanup_free_ char *text = document ? json_document(document, &size) : NULL;
        int r = text ? run_store_put(past->store, record->id, text, size) : -ENOMEM;

        if (r < 0 && !past->store_failed)
                log_error("run %s cannot be kept: %s", record->id, strerror(-r));
        past->store_failed = r < 0;
}

void past_keep(Past *past, const RunRecord *record)
{
        put(past, record, false);
}

/* Evidence is read from the store when someone asks; in memory it would only grow. */
static void drop_evidence(RunRecord *record)
{
        free(record->samples);
        record->samples = NULL;
        record->n_samples = 0;
}

/* A run that was under way when the last daemon died is over, and was not judged. */
static void close_interrupted(Past *past, RunRecord *record)
{
        if (run_state_ended(record->state))
                return;
        record->state = RUN_ABORTED;
        record->judgement.verdict = VERDICT_INCONCLUSIVE;
        record->judgement.reasons.n = 0;
        reasons_add(&record->judgement.reasons, REASON_ABORTED,
                    "The daemon ended in the middle of the run, after %.1f MB. Run again.",
                    (double) record->bytes_written / 1e6);
        if (!record->finished_real_ns)
                record->finished_real_ns =
                        record->started_real_ns ? record->started_real_ns : record->queued_real_ns;
        put(past, record, false);
        past->events.interrupted(record, past->events.userdata);
}

static int load_record(Past *past, const char *id, RunRecord **ret)
{
        _cleanup_free_ char *text = NULL;
        _cleanup_(run_record_freep) RunRecord *record = NULL;
        size_t size = 0;
        char error[256] = "";

        int r = run_store_get(past->store, id, &text, &size);
        if (r >= 0)
                r = run_record_from_json(text, size, &record, error, sizeof error);
        if (r >= 0 && strcmp(record->id, id) != 0) {
                (void) snprintf(error, sizeof error, "it holds another run's id");
                r = -EINVAL;
        }
        if (r == -ENOMEM)
                return r;
        if (r < 0) {
                log_warning("the kept run %s cannot be read and is set aside: %s", id,
                            *error ? error : strerror(-r));
                (void) run_store_set_aside(past->store, id);
                return r;
        }
        drop_evidence(record);
        /* Runs under way are not in the list that this one is loaded for. */
        close_interrupted(past, record);
        *ret = TAKE_PTR(record);
        return 0;
}

/* ---- the list ---- */

const RunRecord *past_record(Past *past, size_t index)
{
        while (index < past->n_runs) {
                PastRun *run = &past->runs[index];

                if (run->record || load_record(past, run->id, &run->record) >= 0)
                        return run->record;
                memmove(run, run + 1, (past->n_runs - index - 1) * sizeof *run);
                past->n_runs--;
        }
        return NULL;
}

bool past_has(const Past *past, const char *id)
{
        for (size_t i = 0; i < past->n_runs; i++)
                if (strcmp(past->runs[i].id, id) == 0)
                        return true;
        return false;
}

const RunRecord *past_find(Past *past, const char *id)
{
        for (size_t i = 0; i < past->n_runs; i++)
                if (strcmp(past->runs[i].id, id) == 0) {
                        const RunRecord *record = past_record(past, i);
                        return record && strcmp(record->id, id) == 0 ? record : NULL;
                }
        return NULL;
}

uint64_t past_written_since(Past *past, const char *target, int64_t since_real_ns)
{
        uint64_t bytes = 0;

        for (size_t i = 0; i < past->n_runs; i++) {
                const RunRecord *record = past_record(past, i);

                if (!record || record->queued_real_ns < since_real_ns)
                        break;
                if (strcmp(record->target, target) == 0)
                        bytes += record->bytes_written;
        }
        return bytes;
}

static bool is_needed(const Past *past, const RunRecord *record)
{
        for (size_t i = 0; i < past->n_followed; i++)
                if (record && (past->followed[i].last == record || past->followed[i].located == record))
                        return true;
        return false;
}

/* The oldest goes, but not the last one of a target that is seldom tested: it is that target's verdict. */
static void forget_oldest(Past *past)
{
        size_t index = past->n_runs - 1;

        while (index > 0 && is_needed(past, past->runs[index].record))
                index--;
        (void) run_store_remove(past->store, past->runs[index].id);
        run_record_free(past->runs[index].record);
        memmove(past->runs + index, past->runs + index + 1, (past->n_runs - index - 1) * sizeof *past->runs);
        past->n_runs--;
}

/* ---- the targets ---- */

static const Followed *find_followed(const Past *past, const char *target)
{
        for (size_t i = 0; i < past->n_followed; i++)
                if (strcmp(past->followed[i].target, target) == 0)
                        return &past->followed[i];
        return NULL;
}

const RunRecord *past_last_run(const Past *past, const char *target)
{
        const Followed *followed = find_followed(past, target);

        return followed ? followed->last : NULL;
}

const char *past_mount_point(const Past *past, const char *target)
{
        const Followed *followed = find_followed(past, target);

        return followed && followed->located ? followed->located->device->mount_point : NULL;
}

/* Takes RECORD for the targets that have none yet. Whether all have what there may be. */
static bool take_for_targets(Past *past, const RunRecord *record)
{
        bool complete = true;

        for (size_t i = 0; i < past->n_followed; i++) {
                Followed *followed = &past->followed[i];

                if (strcmp(followed->target, record->target) == 0 && record->path &&
                    strcmp(followed->path, record->path) == 0) {
                        if (!followed->last)
                                followed->last = record;
                        if (!followed->located && record->device && record->device->mount_point)
                                followed->located = record;
                }
                complete = complete && followed->last && followed->located;
        }
        return complete;
}

static void forget_followed(Past *past)
{
        for (size_t i = 0; i < past->n_followed; i++) {
                free(past->followed[i].target);
                free(past->followed[i].path);
        }
        past->n_followed = 0;
}

void past_follow(Past *past, const PastSubject *subjects, size_t n)
{
        forget_followed(past);
        for (size_t i = 0; i < n && i < CONFIG_MAX_TARGETS; i++) {
                char *target = strdup(subjects[i].target), *path = strdup(subjects[i].path);

                if (!target || !path) {
                        log_error("target %s: its past runs are not looked for: out of memory",
                                  subjects[i].target);
                        free(target);
                        free(path);
                        continue;
                }
                past->followed[past->n_followed++] = (Followed){ .target = target, .path = path };
        }
        for (size_t i = 0; i < past->n_runs; i++) {
                const RunRecord *record = past_record(past, i);

                if (!record || take_for_targets(past, record))
                        break;
        }
        while (past->n_runs > MAX_KEPT_RUNS)
                forget_oldest(past);
}

void past_add(Past *past, RunRecord *record)
{
        put(past, record, true);
        drop_evidence(record);
        for (size_t i = 0; i < past->n_followed; i++) {
                Followed *followed = &past->followed[i];

                if (strcmp(followed->target, record->target) != 0 || !record->path ||
                    strcmp(followed->path, record->path) != 0)
                        continue;
                followed->last = record;
                if (record->device && record->device->mount_point)
                        followed->located = record;
        }
        if (past->n_runs >= MAX_KEPT_RUNS)
                forget_oldest(past);
        memmove(past->runs + 1, past->runs, past->n_runs * sizeof *past->runs);
        past->n_runs++;
        past->runs[0] = (PastRun){ .record = record };
        (void) snprintf(past->runs[0].id, RUN_ID_SIZE, "%s", record->id);
}

/* ---- life ---- */

int past_new(Past **ret, int state_fd, const PastEvents *events)
{
        _cleanup_(past_freep) Past *past = calloc(1, sizeof *past);

        if (!past)
                return -ENOMEM;
        past->events = *events;
        int r = run_store_open(&past->store, state_fd, "runs", MAX_STORED_RUNS);
        if (r < 0)
                return r;
        past->n_runs = run_store_count(past->store);
        for (size_t i = 0; i < past->n_runs; i++)
                (void) snprintf(past->runs[i].id, RUN_ID_SIZE, "%s", run_store_id(past->store, i));
        *ret = TAKE_PTR(past);
        return 0;
}

Past *past_free(Past *past)
{
        if (!past)
                return NULL;
        forget_followed(past);
        for (size_t i = 0; i < past->n_runs; i++)
                run_record_free(past->runs[i].record);
        run_store_free(past->store);
        free(past);
        return NULL;
}

void past_freep(Past **past)
{
        past_free(*past);
}

const RunStore *past_store(const Past *past)
{
        return past->store;
}
