/* SPDX-License-Identifier: Apache-2.0 */
/* Past runs: the newest ones in memory without their evidence, all of them in the store. */

#include "manager.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/json.h"
#include "tierprobe/log.h"

#include <errno.h>
#include <string.h>

void past_keep(Manager *manager, const RunRecord *record, bool evidence)
{
        size_t size = 0;
        json_auto_t *document = json_run(record, evidence);
        _cleanup_free_ char *text = document ? json_document(document, &size) : NULL;
        int r = text ? run_store_put(manager->store, record->id, text, size) : -ENOMEM;

        if (r < 0 && !manager->store_failed)
                log_error("run %s cannot be kept: %s", record->id, strerror(-r));
        manager->store_failed = r < 0;
}

/* Evidence is read from the store when someone asks; in memory it would only grow. */
void past_drop_evidence(RunRecord *record)
{
        free(record->samples);
        record->samples = NULL;
        record->n_samples = 0;
}

/* A run that was under way when the last daemon died is over, and was not judged. */
static void close_interrupted(Manager *manager, RunRecord *record)
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
        past_keep(manager, record, false);
        journal_run_ended(record);
}

static int load_record(Manager *manager, const char *id, RunRecord **ret)
{
        _cleanup_free_ char *text = NULL;
        _cleanup_(run_record_freep) RunRecord *record = NULL;
        size_t size = 0;
        char error[256] = "";

        int r = run_store_get(manager->store, id, &text, &size);
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
                (void) run_store_set_aside(manager->store, id);
                return r;
        }
        past_drop_evidence(record);
        /* Runs under way are not in the list that this one is loaded for. */
        close_interrupted(manager, record);
        *ret = TAKE_PTR(record);
        return 0;
}

const RunRecord *past_record(Manager *manager, size_t index)
{
        while (index < manager->n_past) {
                PastRun *past = &manager->past[index];

                if (past->record || load_record(manager, past->id, &past->record) >= 0)
                        return past->record;
                memmove(past, past + 1, (manager->n_past - index - 1) * sizeof *past);
                manager->n_past--;
        }
        return NULL;
}

static Target *find_target(Manager *manager, const char *name)
{
        for (size_t i = 0; i < manager->n_targets; i++)
                if (strcmp(manager->targets[i]->config->name, name) == 0)
                        return manager->targets[i];
        return NULL;
}

/* A run's verdict is one on the path it was made on: a target that has moved was never judged. */
static bool is_of_target(const RunRecord *record, const Target *target)
{
        return target && strcmp(record->path, target->config->path) == 0;
}

static bool is_some_last_run(const Manager *manager, const RunRecord *record)
{
        for (size_t i = 0; i < manager->n_targets; i++)
                if (record && manager->targets[i]->last_run == record)
                        return true;
        return false;
}

/* The oldest goes, but not the last one of a target that is seldom tested: it is that target's verdict. */
static void forget_oldest(Manager *manager)
{
        size_t index = manager->n_past - 1;

        while (index > 0 && is_some_last_run(manager, manager->past[index].record))
                index--;
        (void) run_store_remove(manager->store, manager->past[index].id);
        run_record_free(manager->past[index].record);
        memmove(manager->past + index, manager->past + index + 1,
                (manager->n_past - index - 1) * sizeof *manager->past);
        manager->n_past--;
}

static void list_past(Manager *manager)
{
        size_t n = run_store_count(manager->store);

        manager->past_listed = true;
        manager->n_past = n > MAX_STORED_RUNS ? MAX_STORED_RUNS : n;
        for (size_t i = 0; i < manager->n_past; i++)
                (void) snprintf(manager->past[i].id, RUN_ID_SIZE, "%s", run_store_id(manager->store, i));
}

/* Finds every target's last run; reads on through the last day for the write budget, and no further. */
int past_load(Manager *manager)
{
        int64_t now_ns = (int64_t) clock_ns(CLOCK_REALTIME);
        size_t unknown = 0;

        for (size_t i = 0; i < manager->n_targets; i++)
                unknown += manager->targets[i]->last_run == NULL;
        if (!manager->past_listed)
                list_past(manager);
        for (size_t i = 0; i < manager->n_past; i++) {
                const RunRecord *record = past_record(manager, i);
                if (!record)
                        break;
                Target *target = find_target(manager, record->target);
                if (is_of_target(record, target)) {
                        if (!target->last_run) {
                                target->last_run = record;
                                unknown--;
                        }
                        if (!target->home && record->device && record->device->mount_point)
                                target_set_home(target, record->device->mount_point);
                }
                if (unknown == 0 && record->queued_real_ns < now_ns - (int64_t) NS_PER_DAY)
                        break;
        }
        while (manager->n_past > MAX_KEPT_RUNS)
                forget_oldest(manager);
        return 0;
}

void past_remember(Manager *manager, RunRecord *record)
{
        if (manager->n_past >= MAX_KEPT_RUNS)
                forget_oldest(manager);
        memmove(manager->past + 1, manager->past, manager->n_past * sizeof *manager->past);
        manager->n_past++;
        manager->past[0] = (PastRun){ .record = record };
        (void) snprintf(manager->past[0].id, RUN_ID_SIZE, "%s", record->id);
}
