/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon as its readers see it: fills in the views of service.h. Changes nothing but through runs.c. */

#include "manager.h"

#include "tierprobe/clock.h"

#include <math.h>
#include <string.h>

bool target_is_stale(const Target *target, int64_t now_real_ns)
{
        const ScheduleRules *rules = &target->manager->config->schedule;

        const PastRun *last = past_last_run(target->manager->past, target->config->name);

        if (!last)
                return false;
        int64_t finished_ns = last->finished_real_ns;
        /* One from the future is of unknown age: the clock was wrong then, or is now. A small step back must
         * not spoil a good verdict, though. */
        uint64_t age_ns = now_real_ns > finished_ns ? (uint64_t) now_real_ns - (uint64_t) finished_ns
                                                    : (uint64_t) finished_ns - (uint64_t) now_real_ns;
        return age_ns > schedule_stale_after_ns(rules);
}

static Verdict target_verdict(const Target *target)
{
        const PastRun *last = past_last_run(target->manager->past, target->config->name);

        return last ? last->verdict : VERDICT_NEVER_RUN;
}

static void get(void *userdata, ServiceView *ret)
{
        Manager *manager = userdata;
        int64_t now_ns = (int64_t) clock_ns(CLOCK_REALTIME);
        const Histogram *lateness = manager->lateness;

        *ret = (ServiceView){ .started_real_ns = manager->started_real_ns,
                              .uptime_ns = clock_ns(CLOCK_MONOTONIC) - manager->started_ns,
                              .pid = getpid(),
                              .verdict = manager->n_targets ? VERDICT_PASS : VERDICT_NEVER_RUN,
                              .running = runs_active(manager),
                              .ready = manager->n_targets > 0,
                              .config = manager->config,
                              .tick_lateness_p99_ns = histogram_quantile_ns(lateness, 0.99),
                              .tick_lateness_max_ns = lateness->max_ns,
                              .n_targets = manager->n_targets,
                              .set_aside = manager->n_rings_aside + past_set_aside(manager->past) };
        for (size_t i = 0; i < manager->n_targets; i++) {
                const Target *target = manager->targets[i];
                Verdict verdict = target_verdict(target);

                ret->verdict = verdict_worst(ret->verdict, verdict);
                ret->ready = ret->ready && verdict == VERDICT_PASS && !target_is_stale(target, now_ns);
        }
}

static bool get_target(void *userdata, size_t index, TargetView *ret)
{
        Manager *manager = userdata;
        int64_t now_ns = (int64_t) clock_ns(CLOCK_REALTIME);

        if (index >= manager->n_targets)
                return false;
        Target *target = manager->targets[index];
        const PastRun *last = past_last_run(manager->past, target->config->name);
        const RunRecord *current = target->run ? run_record(target->run) : NULL;

        *ret = (TargetView){
                .name = target->config->name,
                .path = target->config->path,
                .state = current ? current->state : RUN_FINISHED,
                .verdict = target_verdict(target),
                .reasons = last ? NULL : &target->device_reasons,
                .age_s = last ? ((double) now_ns - (double) last->finished_real_ns) / 1e9 : NAN,
                .stale = target_is_stale(target, now_ns),
                .next_run_real_ns = target->next_run_real_ns,
                .device = target->device,
                .last_run = last,
                .current_run = current,
                .ring = target->ring,
                .sample = target->sample.seq ? &target->sample : NULL,
                .sample_delta = &target->sample_delta,
                .sample_gap = target->sample_gap,
                .samples_missed = manager->samples_missed,
                .test_written_bytes = target->test_written_bytes,
                .free_bytes = target->facts_known && target->facts.error == 0 ? target->facts.free_bytes : 0,
        };
        if (ret->age_s < 0)
                ret->age_s = 0; /* the clock was set back */
        memcpy(ret->gaps, target->gaps, sizeof ret->gaps);
        memcpy(ret->runs_ended, target->runs_ended, sizeof ret->runs_ended);
        return true;
}

static uint64_t generation(void *userdata)
{
        return ((Manager *) userdata)->generation;
}

static int start_run(void *userdata, const char *target, const char *profile, RunTrigger trigger,
                     const char *who, StartAnswer *ret)
{
        Manager *manager = userdata;

        for (size_t i = 0; i < manager->n_targets; i++)
                if (strcmp(manager->targets[i]->config->name, target) == 0)
                        return runs_start(manager->targets[i], profile, trigger, who, ret);
        *ret = (StartAnswer){ .result = START_NO_TARGET };
        return 0;
}

static AbortResult abort_run(void *userdata, const char *id, const char *who)
{
        return runs_abort(userdata, id, who);
}

/* The INDEX-th newest among the targets' current runs; they are few. */
static const RunRecord *current_run(void *userdata, size_t index)
{
        const Manager *manager = userdata;

        for (size_t i = 0; i < manager->n_targets; i++) {
                if (!manager->targets[i]->run)
                        continue;
                const RunRecord *record = run_record(manager->targets[i]->run);
                size_t newer = 0;

                for (size_t j = 0; j < manager->n_targets; j++) {
                        if (!manager->targets[j]->run || j == i)
                                continue;
                        int64_t other_ns = run_record(manager->targets[j]->run)->queued_real_ns;
                        newer += other_ns > record->queued_real_ns ||
                                 (other_ns == record->queued_real_ns && j < i);
                }
                if (newer == index)
                        return record;
        }
        return NULL;
}

static const RunRecord *find_current(void *userdata, const char *id)
{
        const Manager *manager = userdata;

        for (size_t i = 0; i < manager->n_targets; i++)
                if (manager->targets[i]->run && strcmp(run_record(manager->targets[i]->run)->id, id) == 0)
                        return run_record(manager->targets[i]->run);
        return NULL;
}

static const char *older_run(void *userdata, const char *before)
{
        return past_older(((Manager *) userdata)->past, before);
}

static int read_run(void *userdata, const char *id, PastRun **ret, char **ret_text, size_t *ret_size)
{
        return past_read(((Manager *) userdata)->past, id, ret, ret_text, ret_size);
}

void service_init(Manager *manager)
{
        manager->service = (Service){
                .userdata = manager,
                .get = get,
                .get_target = get_target,
                .generation = generation,
                .start_run = start_run,
                .abort_run = abort_run,
                .current_run = current_run,
                .find_current = find_current,
                .older_run = older_run,
                .read_run = read_run,
        };
}
