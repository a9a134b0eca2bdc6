/* Runs: what waits, what runs, what is kept. Runs of targets that meet on a disk never overlap. */

#include "manager.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/json.h"
#include "tierprobe/log.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#define DAY_NS (24 * 3600 * NS_PER_S)

/* ---- kept runs ---- */

static void keep(Manager *manager, const RunRecord *record, bool evidence)
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
static void drop_evidence(RunRecord *record)
{
        free(record->samples);
        record->samples = NULL;
        record->n_samples = 0;
}

static int load_record(Manager *manager, const char *id, RunRecord **ret)
{
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        char error[256] = "";

        int r = run_store_get(manager->store, id, &text, &size);
        if (r >= 0)
                r = run_record_from_json(text, size, ret, error, sizeof error);
        if (r >= 0 && strcmp((*ret)->id, id) != 0) {
                *ret = run_record_free(*ret);
                (void) snprintf(error, sizeof error, "it holds another run's id");
                r = -EINVAL;
        }
        if (r == -EINVAL) {
                log_warning("the kept run %s is damaged and set aside: %s", id, error);
                (void) run_store_set_aside(manager->store, id);
        }
        if (r < 0)
                return r;
        drop_evidence(*ret);
        return 0;
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
        keep(manager, record, false);
        journal_run_ended(record);
}

const RunRecord *runs_past_record(Manager *manager, size_t index)
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

/* Finds every target's last run; reads on through the last day for the write budget, and no further. */
int runs_load(Manager *manager)
{
        int64_t now_ns = (int64_t) clock_ns(CLOCK_REALTIME);
        size_t unknown = 0;

        for (size_t i = 0; i < manager->n_targets; i++)
                unknown += manager->targets[i]->last_run == NULL;
        if (manager->n_past == 0) {
                size_t n = run_store_count(manager->store);

                manager->n_past = n > MAX_KEPT_RUNS ? MAX_KEPT_RUNS : n;
                for (size_t i = 0; i < manager->n_past; i++)
                        (void) snprintf(manager->past[i].id, RUN_ID_SIZE, "%s",
                                        run_store_id(manager->store, i));
        }
        for (size_t i = 0; i < manager->n_past; i++) {
                const RunRecord *record = runs_past_record(manager, i);
                if (!record)
                        break;
                close_interrupted(manager, manager->past[i].record);
                Target *target = find_target(manager, record->target);
                if (target && !target->last_run) {
                        target->last_run = record;
                        unknown--;
                }
                if (target && !target->home && record->device && record->device->mount_point)
                        target_set_home(target, record->device->mount_point);
                if (unknown == 0 && now_ns - record->queued_real_ns > (int64_t) DAY_NS)
                        break;
        }
        return 0;
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
        run_record_free(manager->past[index].record);
        memmove(manager->past + index, manager->past + index + 1,
                (manager->n_past - index - 1) * sizeof *manager->past);
        manager->n_past--;
}

static void remember(Manager *manager, RunRecord *record)
{
        if (manager->n_past == MAX_KEPT_RUNS)
                forget_oldest(manager);
        memmove(manager->past + 1, manager->past, manager->n_past * sizeof *manager->past);
        manager->n_past++;
        manager->past[0] = (PastRun){ .record = record };
        (void) snprintf(manager->past[0].id, RUN_ID_SIZE, "%s", record->id);
}

/* ---- one disk, one run ---- */

static bool is_active(const Target *target)
{
        return target->run && run_record(target->run)->state == RUN_RUNNING;
}

static bool disk_is_busy(const Manager *manager, const Target *wanted)
{
        for (size_t i = 0; i < manager->n_targets; i++) {
                const Target *other = manager->targets[i];

                if (other != wanted && is_active(other) && wanted->device && run_record(other->run)->device &&
                    device_shares_disk(run_record(other->run)->device, wanted->device))
                        return true;
        }
        for (size_t i = 0; i < manager->n_lingering; i++)
                if (wanted->device && manager->lingering[i].device &&
                    device_shares_disk(manager->lingering[i].device, wanted->device))
                        return true;
        return false;
}

/* Whether a run that was asked for before this one waits for the same disk: turns are kept, even while its
 * path is still being looked at. */
static bool is_not_its_turn(const Manager *manager, const Target *wanted)
{
        int64_t queued_ns = run_record(wanted->run)->queued_real_ns;

        for (size_t i = 0; i < manager->n_targets; i++) {
                const Target *other = manager->targets[i];

                if (other == wanted || !other->run || !other->device || !wanted->device)
                        continue;
                const RunRecord *record = run_record(other->run);
                if (record->state == RUN_QUEUED && record->queued_real_ns < queued_ns &&
                    device_shares_disk(other->device, wanted->device))
                        return true;
        }
        return false;
}

bool runs_active(const Manager *manager)
{
        for (size_t i = 0; i < manager->n_targets; i++)
                if (manager->targets[i]->run)
                        return true;
        return false;
}

/* ---- a run's events ---- */

static void on_changed(Run *run, void *userdata)
{
        Target *target = userdata;
        const RunRecord *record = run_record(run);

        if (record->stalled_ns > 0 && !target->run_stall_said) {
                journal_run_stalled(record);
                target->run_stall_said = true;
        }
        manager_changed(target->manager);
}

static void on_ended(Run *run, void *userdata)
{
        Target *target = userdata;
        Manager *manager = target->manager;
        const Device *device = run_record(run)->device;
        RunRecord *record = run_take_record(run);

        if (!run_is_gone(run) && manager->n_lingering < CONFIG_MAX_TARGETS) {
                Lingering *lingering = &manager->lingering[manager->n_lingering++];

                *lingering = (Lingering){ .run = run, .target = target };
                if (device)
                        (void) device_copy(device, &lingering->device);
        }
        target->run = NULL;
        target->run_ready = false;
        target->runs_ended[record->judgement.verdict]++;
        target->test_written_bytes += record->bytes_written;
        journal_run_ended(record);
        keep(manager, record, true);
        drop_evidence(record);
        remember(manager, record);
        target->last_run = record;
        timetable_plan(target);
        manager_changed(manager);
        if (!manager->stopping)
                target_inspect(target); /* its free space has changed */
}

static void forget_lingering(Manager *manager, size_t index)
{
        device_free(manager->lingering[index].device);
        manager->lingering[index] = manager->lingering[--manager->n_lingering];
}

static void on_gone(Run *run, void *userdata)
{
        Target *target = userdata;
        Manager *manager = target->manager;

        for (size_t i = 0; i < manager->n_lingering; i++)
                if (manager->lingering[i].run == run) {
                        forget_lingering(manager, i);
                        break;
                }
        run_free(run);
        if (!manager->stopping)
                target_inspect(target); /* only now is its space free again */
        runs_dispatch(manager);
}

/* ---- may it start? ---- */

static uint64_t written_last_day(Manager *manager, const Target *target, int64_t now_ns)
{
        uint64_t bytes = 0;

        for (size_t i = 0; i < manager->n_past; i++) {
                const RunRecord *record = runs_past_record(manager, i);

                if (!record || now_ns - record->queued_real_ns > (int64_t) DAY_NS)
                        break;
                if (strcmp(record->target, target->config->name) == 0)
                        bytes += record->bytes_written;
        }
        return bytes;
}

static bool space_is_known(const Target *target)
{
        const Manager *manager = target->manager;

        for (size_t i = 0; i < manager->n_lingering; i++)
                if (manager->lingering[i].target == target)
                        return false;
        return target->facts_known && !target->inspection && target->facts.error == 0 &&
               target->facts.total_bytes > 0;
}

static bool guards_allow(Target *target, const Profile *profile, StartAnswer *answer)
{
        Manager *manager = target->manager;
        const GuardRules *guard = &manager->config->guard;
        int64_t now_ns = (int64_t) clock_ns(CLOCK_REALTIME);
        const RunRecord *last = target->last_run;
        uint64_t bytes = profile_bytes(profile);

        /* A run that wrote nothing has not worn anything. */
        uint64_t wait_ns =
                last && last->bytes_written > 0
                        ? schedule_cooldown_left_ns(guard->cooldown_ns, last->finished_real_ns, now_ns)
                        : 0;
        if (wait_ns > 0) {
                answer->result = START_COOLDOWN;
                answer->retry_after_s = (wait_ns + NS_PER_S - 1) / NS_PER_S;
                (void) snprintf(answer->detail, sizeof answer->detail,
                                "target %s rests after its last run for another %" PRIu64
                                " s ([guard] cooldown)",
                                target->config->name, answer->retry_after_s);
                return false;
        }
        if (guard->daily_write_budget_bytes > 0) {
                uint64_t written = written_last_day(manager, target, now_ns);

                if (written + bytes > guard->daily_write_budget_bytes) {
                        answer->result = START_OVER_BUDGET;
                        answer->retry_after_s = 3600;
                        (void) snprintf(answer->detail, sizeof answer->detail,
                                        "%.0f MiB were written to target %s in the last 24 h, another %.0f "
                                        "MiB would exceed "
                                        "[guard] daily_write_budget",
                                        (double) written / 1048576, target->config->name,
                                        (double) bytes / 1048576);
                        return false;
                }
        }
        /* Facts from before the last run's files were gone would refuse the next one for their space. */
        if (space_is_known(target)) {
                double reserve = guard->min_free_ratio * (double) target->facts.total_bytes;
                if (reserve < (double) guard->min_free_bytes)
                        reserve = (double) guard->min_free_bytes;
                double needed = (double) profile_space_bytes(profile) + reserve;

                if ((double) target->facts.free_bytes < needed) {
                        answer->result = START_REFUSED;
                        answer->reason = REASON_NO_SPACE;
                        (void) snprintf(
                                answer->detail, sizeof answer->detail,
                                "%.0f MiB are free for target %s, the test and its reserve need %.0f MiB",
                                (double) target->facts.free_bytes / 1048576, target->config->name,
                                needed / 1048576);
                        target_inspect(target); /* somebody may have made room since */
                        return false;
                }
        }
        if (guard->max_foreign_mb_per_s > 0 && target->sample_gap == GAP_NONE) {
                Metrics metrics;

                metrics_from_delta(&target->sample_delta, &metrics);
                if (metrics.wkb_s / 1000 > guard->max_foreign_mb_per_s) {
                        answer->result = START_REFUSED;
                        answer->reason = REASON_FOREIGN_IO;
                        (void) snprintf(
                                answer->detail, sizeof answer->detail,
                                "others write %.1f MB/s to %s, more than [guard] max_foreign_mb_per_s = %g",
                                metrics.wkb_s / 1000, target->device ? target->device->name : "the device",
                                guard->max_foreign_mb_per_s);
                        return false;
                }
        }
        return true;
}

/* ---- starting and aborting ---- */

int runs_start(Target *target, const char *profile_name, RunTrigger trigger, const char *who,
               StartAnswer *ret)
{
        Manager *manager = target->manager;
        const Config *config = manager->config;
        const Profile *profile = config_find_profile(config, profile_name ? profile_name : "procedure");

        *ret = (StartAnswer){ .target = target->config->name };
        if (!profile)
                return -ESRCH;
        if (target->run) {
                ret->result = START_BUSY;
                (void) snprintf(ret->run_id, sizeof ret->run_id, "%s", run_record(target->run)->id);
                (void) snprintf(ret->detail, sizeof ret->detail,
                                "target %s has run %s queued or running already", target->config->name,
                                ret->run_id);
                return 0;
        }
        if (!guards_allow(target, profile, ret))
                return 0;

        const RunEvents events = {
                .userdata = target, .changed = on_changed, .ended = on_ended, .gone = on_gone
        };
        int r = run_new(&target->run, manager->event,
                        &(RunRequest){ .target = target->config->name,
                                       .path = target->config->path,
                                       .profile = profile,
                                       .limits = &config->limits,
                                       .guard = &config->guard,
                                       .trigger = trigger,
                                       .procfs = manager->roots.procfs,
                                       .sysfs = manager->roots.sysfs },
                        &events);
        if (r < 0)
                return r;
        target->run_ready = false;
        target->run_stall_said = false;
        ret->result = START_ACCEPTED;
        (void) snprintf(ret->run_id, sizeof ret->run_id, "%s", run_record(target->run)->id);
        log_info("run %s of %s asked for by %s", ret->run_id, target->config->name, who);
        manager_changed(manager);
        /* What the path stands on is looked at anew for every run: a disk may have gone since the last one.
         */
        target_inspect(target);
        if (!target->inspection)
                run_refuse(target->run, REASON_ABORTED,
                           "No child process could be started to look at the path. Free "
                           "memory or processes and run again.");
        return 0;
}

/* Writes by others in the seconds before the run: the last regular sample. */
static double background_mb_per_s(const Target *target)
{
        Metrics metrics;

        if (target->sample_gap != GAP_NONE)
                return NAN;
        metrics_from_delta(&target->sample_delta, &metrics);
        return metrics.wkb_s / 1000;
}

static void begin(Target *target)
{
        Run *run = target->run;

        if (!target->device && target->device_reasons.n > 0) {
                const Reason *reason = &target->device_reasons.items[0];

                run_refuse(run, reason->code, reason->detail);
                return;
        }
        run_start(run, target->device, background_mb_per_s(target));
        /* It may have ended already; then its record has been kept. */
        if (target->run == run) {
                journal_run_started(run_record(run), run_trigger_to_string(run_record(run)->trigger));
                keep(target->manager, run_record(run), false);
        }
}

void runs_dispatch(Manager *manager)
{
        if (manager->stopping)
                return;
        for (;;) {
                Target *oldest = NULL;

                for (size_t i = 0; i < manager->n_targets; i++) {
                        Target *target = manager->targets[i];

                        if (!target->run || !target->run_ready ||
                            run_record(target->run)->state != RUN_QUEUED || disk_is_busy(manager, target) ||
                            is_not_its_turn(manager, target))
                                continue;
                        if (!oldest ||
                            run_record(target->run)->queued_real_ns < run_record(oldest->run)->queued_real_ns)
                                oldest = target;
                }
                if (!oldest)
                        return;
                begin(oldest);
        }
}

int runs_abort(Manager *manager, const char *id, const char *who)
{
        char detail[160];

        for (size_t i = 0; i < manager->n_targets; i++) {
                Target *target = manager->targets[i];

                if (!target->run || strcmp(run_record(target->run)->id, id) != 0)
                        continue;
                (void) snprintf(detail, sizeof detail, "Aborted by %s", who);
                run_abort(target->run, detail);
                manager_changed(manager);
                return 0;
        }
        for (size_t i = 0; i < manager->n_past; i++)
                if (strcmp(manager->past[i].id, id) == 0)
                        return -EALREADY;
        return -ENOENT;
}

void runs_abort_all(Manager *manager, const char *detail)
{
        for (size_t i = 0; i < manager->n_targets; i++)
                if (manager->targets[i]->run)
                        run_abort(manager->targets[i]->run, detail);
}

void runs_drop_target(Target *target)
{
        Manager *manager = target->manager;

        target->run = run_free(target->run);
        for (size_t i = manager->n_lingering; i-- > 0;)
                if (manager->lingering[i].target == target) {
                        run_free(manager->lingering[i].run);
                        forget_lingering(manager, i);
                }
}
