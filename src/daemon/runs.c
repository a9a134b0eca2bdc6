/* SPDX-License-Identifier: Apache-2.0 */
/* What runs and what waits. Runs of targets that meet on a disk never overlap, and take turns. */

#include "runs.h"

#include "journal.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/log.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define N_SLOTS CONFIG_MAX_TARGETS
#define RETRY_US 200000 /* between two looks at whether another program's test, or a wait, has ended */
#define TOGETHER_NS (60 * NS_PER_S) /* how long a run is waited for by those that are to begin with it */

typedef struct Slot {
        Target *target; /* NULL: free */
        Run *run;       /* queued or running; NULL: none */
        bool ready;     /* its path was looked at for it */
        bool stall_said;
        bool waits_for_others;      /* another program tests its disk, */
        unsigned n_waits;           /* and has done so when it was asked so often */
        uint64_t together_until_ns; /* MONOTONIC: until then those beside which it is to begin wait for it; 0:
                                     * it is to begin alone */
        RunTally tally;
} Slot;

/* A run that has ended, but the kernel still holds a writer of it: its disk is busy. */
typedef struct Lingering {
        Run *run;
        Device *device;
        Target *target; /* NULL: it has left the configuration */
} Lingering;

struct Runs {
        sd_event *event;
        const DeviceRoots *roots;
        RunsEvents events;
        Slot slots[N_SLOTS];
        Lingering lingering[N_SLOTS];
        size_t n_lingering;
        sd_event_source *retry; /* while a run waits for another program's test */
        uint64_t wrote_ns;      /* when the last run that wrote was gone, MONOTONIC; 0: none was */
        bool stopping;
};

static const Slot *find_slot(const Runs *runs, const Target *target)
{
        for (const Slot *slot = runs->slots; slot < runs->slots + N_SLOTS; slot++)
                if (slot->target == target)
                        return slot;
        return NULL;
}

static Slot *find_own_slot(Runs *runs, const Target *target)
{
        for (Slot *slot = runs->slots; slot < runs->slots + N_SLOTS; slot++)
                if (slot->target == target)
                        return slot;
        return NULL;
}

static Slot *find_by_run(Runs *runs, const Run *run)
{
        for (Slot *slot = runs->slots; slot < runs->slots + N_SLOTS; slot++)
                if (slot->run == run)
                        return slot;
        return NULL; /* cannot be: a run is in its slot until it has ended */
}

/* ---- one disk, one run ---- */

static bool is_active(const Slot *slot)
{
        return slot->run && run_record(slot->run)->state == RUN_RUNNING;
}

/* The run, other than that of BUT, that is at work on a disk of DEVICE; NULL: none. */
static const RunRecord *at_work_on(const Runs *runs, const Device *device, const Slot *but)
{
        for (const Slot *slot = runs->slots; slot < runs->slots + N_SLOTS; slot++) {
                const RunRecord *record = slot != but && is_active(slot) ? run_record(slot->run) : NULL;

                if (record && record->device && device_shares_disk(record->device, device))
                        return record;
        }
        return NULL;
}

static bool lingers_on(const Runs *runs, const Device *device)
{
        for (size_t i = 0; i < runs->n_lingering; i++)
                if (runs->lingering[i].device && device_shares_disk(runs->lingering[i].device, device))
                        return true;
        return false;
}

static bool disk_is_busy(const Runs *runs, const Slot *wanted)
{
        const Device *device = wanted->target->device;

        return device && (at_work_on(runs, device, wanted) || lingers_on(runs, device));
}

/* Whether a run that was asked for before this one waits for the same disk: turns are kept, even while its
 * path is still being looked at. */
static bool is_not_its_turn(const Runs *runs, const Slot *wanted)
{
        int64_t queued_ns = run_record(wanted->run)->queued_real_ns;

        for (const Slot *other = runs->slots; other < runs->slots + N_SLOTS; other++) {
                if (other == wanted || !other->run || !other->target->device || !wanted->target->device)
                        continue;
                const RunRecord *record = run_record(other->run);
                bool is_older = record->queued_real_ns < queued_ns ||
                                (record->queued_real_ns == queued_ns && other < wanted);
                if (record->state == RUN_QUEUED && is_older &&
                    device_shares_disk(other->target->device, wanted->target->device))
                        return true;
        }
        return false;
}

/* ---- a run's events ---- */

static void on_changed(Run *run, void *userdata)
{
        Runs *runs = userdata;
        Slot *slot = find_by_run(runs, run);
        const RunRecord *record = run_record(run);

        if (slot && record->stalled_ns > 0 && !slot->stall_said) {
                journal_run_stalled(record);
                slot->stall_said = true;
        }
        runs->events.changed(runs->events.userdata);
}

static void on_ended(Run *run, void *userdata)
{
        Runs *runs = userdata;
        Slot *slot = find_by_run(runs, run);
        Target *target = slot ? slot->target : NULL;
        const Device *device = run_record(run)->device;
        _cleanup_(run_record_freep) RunRecord *record = run_take_record(run);

        if (!run_is_gone(run) && runs->n_lingering < ELEMENTSOF(runs->lingering)) {
                Lingering *lingering = &runs->lingering[runs->n_lingering++];

                *lingering = (Lingering){ .run = run, .target = target };
                if (device)
                        (void) device_copy(device, &lingering->device);
        }
        if (record->bytes_written > 0)
                runs->wrote_ns = clock_ns(CLOCK_MONOTONIC);
        if (slot) {
                slot->run = NULL;
                slot->ready = slot->stall_said = false;
                slot->tally.ended[record->judgement.verdict]++;
                slot->tally.written_bytes += record->bytes_written;
                latency_counts_add(&slot->tally.latency, &record->latency_counts);
        }
        runs->events.ended(target, record, runs->events.userdata);
}

static void forget_lingering(Runs *runs, size_t index)
{
        device_free(runs->lingering[index].device);
        runs->lingering[index] = runs->lingering[--runs->n_lingering];
}

static void on_gone(Run *run, void *userdata)
{
        Runs *runs = userdata;
        Target *target = NULL;

        for (size_t i = 0; i < runs->n_lingering; i++)
                if (runs->lingering[i].run == run) {
                        target = runs->lingering[i].target;
                        forget_lingering(runs, i);
                        runs->wrote_ns = clock_ns(CLOCK_MONOTONIC);
                        break;
                }
        run_free(run);
        if (target)
                runs->events.gone(target, runs->events.userdata);
        runs_dispatch(runs);
}

/* ---- making and freeing ---- */

int runs_new(Runs **ret, sd_event *event, const DeviceRoots *roots, const RunsEvents *events)
{
        Runs *runs = calloc(1, sizeof *runs);

        if (!runs)
                return -ENOMEM;
        runs->event = sd_event_ref(event);
        runs->roots = roots;
        runs->events = *events;
        *ret = runs;
        return 0;
}

Runs *runs_free(Runs *runs)
{
        if (!runs)
                return NULL;
        for (Slot *slot = runs->slots; slot < runs->slots + N_SLOTS; slot++)
                slot->run = run_free(slot->run);
        while (runs->n_lingering > 0) {
                run_free(runs->lingering[0].run);
                forget_lingering(runs, 0);
        }
        sd_event_source_disable_unref(runs->retry);
        sd_event_unref(runs->event);
        free(runs);
        return NULL;
}

void runs_freep(Runs **runs)
{
        runs_free(*runs);
}

/* ---- from queued to running ---- */

int runs_queue(Runs *runs, Target *target, const RunsOrder *order, const RunRecord **ret)
{
        const RunEvents events = {
                .userdata = runs, .changed = on_changed, .ended = on_ended, .gone = on_gone
        };
        Slot *slot = find_own_slot(runs, target);

        if (!slot)
                slot = find_own_slot(runs, NULL);
        if (!slot)
                return -ENOMEM; /* cannot be: there is one for each target of a configuration */
        int r = run_new(&slot->run, runs->event,
                        &(RunRequest){ .target = target->config->name,
                                       .path = target->config->path,
                                       .profile = order->profile,
                                       .limits = order->limits,
                                       .guard = order->guard,
                                       .trigger = order->trigger,
                                       .confirms = order->confirms,
                                       .interval_ns = order->interval_ns,
                                       .official = strcmp(order->profile->name, target->config->profile) == 0,
                                       .procfs = runs->roots->procfs,
                                       .sysfs = runs->roots->sysfs },
                        &events);
        if (r < 0)
                return r;
        slot->target = target;
        slot->ready = slot->stall_said = slot->waits_for_others = false;
        slot->n_waits = 0;
        slot->together_until_ns = order->together ? clock_ns(CLOCK_MONOTONIC) + TOGETHER_NS : 0;
        *ret = run_record(slot->run);
        runs->events.changed(runs->events.userdata);
        return 0;
}

void runs_set_ready(Runs *runs, const Target *target)
{
        Slot *slot = find_own_slot(runs, target);

        if (slot)
                slot->ready = slot->run != NULL;
}

static int on_retry(sd_event_source *source, uint64_t usec, void *userdata)
{
        Runs *runs = userdata;

        (void) source;
        (void) usec;
        runs->retry = sd_event_source_disable_unref(runs->retry);
        for (Slot *slot = runs->slots; slot < runs->slots + N_SLOTS; slot++)
                slot->waits_for_others = false;
        runs_dispatch(runs);
        return 0;
}

static void look_again_soon(Runs *runs)
{
        if (!runs->retry)
                (void) sd_event_add_time_relative(runs->event, &runs->retry, CLOCK_MONOTONIC, RETRY_US, 0,
                                                  on_retry, runs);
}

/* Takes the disks of a run that may begin; false: another program tests one, and the run waits. */
static bool take_disks(Runs *runs, Slot *slot, DiskLock **ret)
{
        const RunRecord *record = run_record(slot->run);
        char holder[DISK_HOLDER_SIZE];
        bool is_said = ++slot->n_waits == DISK_LOCK_REFUSALS;

        if (!slot->target->device ||
            disk_lock_new(ret, runs->roots, slot->target->device, is_said ? holder : NULL) != -EBUSY)
                return true;
        if (is_said)
                log_info("run %s of target %s waits: %s is tested by %s now", record->id, record->target,
                         slot->target->device->name, holder);
        slot->waits_for_others = true;
        look_again_soon(runs);
        return false;
}

/* A path that hangs keeps its device, and gets no writers: they would hang as well. */
static bool is_hopeless(const Target *target)
{
        return target->problems.n > 0 && (!target->device || target_hangs(target));
}

static void begin(Runs *runs, Slot *slot, DiskLock *lock)
{
        const Target *target = slot->target;
        Run *run = slot->run;

        run_start(run, target->facts.is_link ? target->goal : NULL, target->device, lock,
                  samples_write_mb_per_s(&target->samples));
        /* It may have ended already; then its record has been handed on. */
        if (slot->run == run) {
                journal_run_started(run_record(run));
                runs->events.started(slot->target, run_record(run), runs->events.userdata);
        }
}

/* ---- together ---- */

static bool is_queued(const Slot *slot)
{
        return slot->run && run_record(slot->run)->state == RUN_QUEUED;
}

static bool may_begin(const Runs *runs, const Slot *slot)
{
        return is_queued(slot) && slot->ready && !slot->waits_for_others && !disk_is_busy(runs, slot) &&
               !is_not_its_turn(runs, slot);
}

static bool share_disk(const Slot *a, const Slot *b)
{
        return a->target->device && b->target->device &&
               device_shares_disk(a->target->device, b->target->device);
}

/* Whether a run that is to begin together with others still waits for one of them. */
static bool waits_for_companion(const Runs *runs, const Slot *slot)
{
        uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

        for (const Slot *other = runs->slots; slot->together_until_ns && other < runs->slots + N_SLOTS;
             other++)
                if (other != slot && is_queued(other) && other->together_until_ns > now_ns &&
                    !share_disk(slot, other) &&
                    (!other->ready || other->waits_for_others || disk_is_busy(runs, other)))
                        return true;
        return false;
}

/* Those that may begin with FIRST, itself the first of them. */
static size_t find_companions(const Runs *runs, Slot *first, Slot *ret[N_SLOTS])
{
        size_t n = 1;

        ret[0] = first;
        for (Slot *slot = (Slot *) runs->slots; first->together_until_ns && slot < runs->slots + N_SLOTS;
             slot++)
                if (slot != first && slot->together_until_ns && may_begin(runs, slot) &&
                    !is_hopeless(slot->target))
                        ret[n++] = slot;
        return n;
}

/* Begins N runs, no two of them on one disk, at the same moment, or none. */
static void begin_all(Runs *runs, Slot *slots[], size_t n)
{
        RunCompanion companions[N_SLOTS];
        DiskLock *locks[N_SLOTS] = { 0 };

        for (size_t i = 0; i < n; i++)
                if (!take_disks(runs, slots[i], &locks[i])) {
                        while (i-- > 0)
                                disk_lock_free(locks[i]);
                        return;
                }
        for (size_t i = 0; i < n; i++) {
                const RunRecord *record = run_record(slots[i]->run);

                memcpy(companions[i].target, record->target, sizeof companions[i].target);
                memcpy(companions[i].run_id, record->id, sizeof companions[i].run_id);
        }
        for (size_t i = 0; i < n && n > 1; i++)
                run_set_companions(slots[i]->run, companions, n);
        for (size_t i = 0; i < n; i++)
                begin(runs, slots[i], locks[i]);
}

void runs_dispatch(Runs *runs)
{
        while (!runs->stopping) {
                Slot *oldest = NULL, *all[N_SLOTS];

                for (Slot *slot = runs->slots; slot < runs->slots + N_SLOTS; slot++) {
                        if (!may_begin(runs, slot))
                                continue;
                        if (waits_for_companion(runs, slot))
                                look_again_soon(runs);
                        else if (!oldest || run_record(slot->run)->queued_real_ns <
                                                    run_record(oldest->run)->queued_real_ns)
                                oldest = slot;
                }
                if (!oldest)
                        return;
                const Reason *reason = oldest->target->problems.items;
                if (is_hopeless(oldest->target))
                        run_refuse(oldest->run, reason->code, reason->detail);
                else
                        begin_all(runs, all, find_companions(runs, oldest, all));
        }
}

/* ---- ending ---- */

void runs_refuse(Runs *runs, const Target *target, ReasonCode reason, const char *detail)
{
        const Slot *slot = find_slot(runs, target);

        if (slot && slot->run)
                run_refuse(slot->run, reason, detail);
}

const RunRecord *runs_at_work(const Runs *runs, const Target *target)
{
        const RunRecord *own = runs_of(runs, target);

        if (own && own->state == RUN_RUNNING)
                return own;
        return target->device ? at_work_on(runs, target->device, NULL) : NULL;
}

bool runs_others_at_work(const Runs *runs, const Target *target)
{
        return target->device && !lingers_on(runs, target->device) &&
               disk_is_locked(runs->roots, target->device);
}

bool runs_abort(Runs *runs, const char *id, const char *detail)
{
        for (Slot *slot = runs->slots; slot < runs->slots + N_SLOTS; slot++)
                if (slot->run && strcmp(run_record(slot->run)->id, id) == 0) {
                        run_abort(slot->run, detail);
                        runs->events.changed(runs->events.userdata);
                        return true;
                }
        return false;
}

void runs_stop(Runs *runs, const char *detail)
{
        runs->stopping = true;
        for (Slot *slot = runs->slots; slot < runs->slots + N_SLOTS; slot++)
                if (slot->run)
                        run_abort(slot->run, detail);
}

bool runs_are_stopping(const Runs *runs)
{
        return runs->stopping;
}

void runs_drop(Runs *runs, const Target *target)
{
        Slot *slot = find_own_slot(runs, target);

        if (slot && slot->run)
                run_cut(slot->run, "its target was taken out of the configuration, or moved to another path");
        if (slot)
                *slot = (Slot){ 0 };
        for (size_t i = 0; i < runs->n_lingering; i++)
                if (runs->lingering[i].target == target)
                        runs->lingering[i].target = NULL;
}

/* ---- looking ---- */

const RunRecord *runs_of(const Runs *runs, const Target *target)
{
        const Slot *slot = find_slot(runs, target);

        return slot && slot->run ? run_record(slot->run) : NULL;
}

size_t runs_count(const Runs *runs)
{
        size_t n = 0;

        for (const Slot *slot = runs->slots; slot < runs->slots + N_SLOTS; slot++)
                n += slot->run != NULL;
        return n;
}

const RunRecord *runs_at(const Runs *runs, size_t index)
{
        for (const Slot *slot = runs->slots; slot < runs->slots + N_SLOTS; slot++) {
                size_t newer = 0;

                if (!slot->run)
                        continue;
                const RunRecord *record = run_record(slot->run);
                for (const Slot *other = runs->slots; other < runs->slots + N_SLOTS; other++) {
                        if (!other->run || other == slot)
                                continue;
                        int64_t other_ns = run_record(other->run)->queued_real_ns;
                        newer += other_ns > record->queued_real_ns ||
                                 (other_ns == record->queued_real_ns && other < slot);
                }
                if (newer == index)
                        return record;
        }
        return NULL;
}

const RunRecord *runs_find(const Runs *runs, const char *id)
{
        for (const Slot *slot = runs->slots; slot < runs->slots + N_SLOTS; slot++)
                if (slot->run && strcmp(run_record(slot->run)->id, id) == 0)
                        return run_record(slot->run);
        return NULL;
}

bool runs_wait_for_look(const Runs *runs, const Target *target)
{
        const Slot *slot = find_slot(runs, target);

        return slot && slot->run && !slot->ready;
}

uint64_t runs_quiet_ns(const Runs *runs)
{
        if (runs->n_lingering > 0)
                return 0;
        return runs->wrote_ns ? clock_ns(CLOCK_MONOTONIC) - runs->wrote_ns : UINT64_MAX;
}

RunTally runs_tally(const Runs *runs, const Target *target)
{
        const Slot *slot = find_slot(runs, target);

        return slot ? slot->tally : (RunTally){ 0 };
}
