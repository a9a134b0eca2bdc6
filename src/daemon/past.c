/* SPDX-License-Identifier: Apache-2.0 */
/* Past runs: ids in memory, documents in the store. */

#include "past.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/config.h"
#include "tierprobe/json.h"
#include "tierprobe/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WAITING 8
#define RETRY_NS (10 * NS_PER_S)
#define REMOVED_AT_A_TIME 50 /* a few ms of the event loop */

/* A document that could not be written. */
typedef struct Waiting {
        char id[RUN_ID_SIZE];
        char *text;
        size_t size;
} Waiting;

typedef struct Followed {
        char *target, *path, *profile;
        PastRun *last; /* NULL: never ran */
        PastStanding standing;
        char *mount_point; /* in the newest run that knows its own; NULL: none does */
} Followed;

struct Past {
        PastEvents events;
        RunStore *store;
        HistoryRules rules;
        bool read_failed, write_failed; /* said once, until it works again */
        bool to_trim;
        Waiting waiting[MAX_WAITING]; /* oldest first */
        size_t n_waiting;
        uint64_t tried_ns;
        char open[2 * CONFIG_MAX_TARGETS][RUN_ID_SIZE]; /* kept, but still under way */
        size_t n_open;
        Followed followed[CONFIG_MAX_TARGETS];
        size_t n_followed;
};

/* ---- writing ---- */

static int put(Past *past, const char *id, const char *text, size_t size)
{
        int r = run_store_put(past->store, id, text, size);

        if (r < 0 && !past->write_failed)
                log_error("run %s cannot be kept: %s; it is tried again", id, strerror(-r));
        if (r >= 0 && past->write_failed)
                log_info("runs can be kept again");
        past->write_failed = r < 0;
        return r;
}

static void forget_waiting(Past *past, size_t index)
{
        free(past->waiting[index].text);
        past->n_waiting--;
        memmove(past->waiting + index, past->waiting + index + 1,
                (past->n_waiting - index) * sizeof *past->waiting);
}

/* Takes TEXT over, to be written later. */
static void let_wait(Past *past, const char *id, char *text, size_t size)
{
        if (past->n_waiting == MAX_WAITING)
                forget_waiting(past, 0);
        Waiting *waiting = &past->waiting[past->n_waiting++];
        *waiting = (Waiting){ .text = text, .size = size };
        (void) snprintf(waiting->id, sizeof waiting->id, "%s", id);
        past->tried_ns = clock_ns(CLOCK_MONOTONIC);
}

static void write_waiting(Past *past)
{
        while (past->n_waiting > 0) {
                const Waiting *oldest = &past->waiting[0];

                past->tried_ns = clock_ns(CLOCK_MONOTONIC);
                if (put(past, oldest->id, oldest->text, oldest->size) < 0)
                        return;
                forget_waiting(past, 0);
        }
}

static char *print_run(const RunRecord *record, bool evidence, size_t *ret_size)
{
        json_auto_t *document = json_run(record, evidence);

        return document ? json_document(document, ret_size) : NULL;
}

/* ---- runs under way ---- */

static size_t find_open(const Past *past, const char *id)
{
        size_t i = 0;

        while (i < past->n_open && strcmp(past->open[i], id) != 0)
                i++;
        return i;
}

static bool is_open(const Past *past, const char *id)
{
        return find_open(past, id) < past->n_open;
}

void past_keep(Past *past, const RunRecord *record)
{
        size_t size = 0;
        _cleanup_free_ char *text = print_run(record, false, &size);

        if (!text || past->n_open == ELEMENTSOF(past->open)) {
                log_error("run %s is not kept while it is under way: out of memory", record->id);
                return;
        }
        if (put(past, record->id, text, size) >= 0 && !is_open(past, record->id))
                (void) snprintf(past->open[past->n_open++], RUN_ID_SIZE, "%s", record->id);
}

/* ---- reading ---- */

static int get_text(Past *past, const char *id, char **ret_text, size_t *ret_size)
{
        for (size_t i = 0; i < past->n_waiting; i++)
                if (strcmp(past->waiting[i].id, id) == 0) {
                        char *text = strndup(past->waiting[i].text, past->waiting[i].size);

                        if (!text)
                                return -ENOMEM;
                        *ret_size = past->waiting[i].size;
                        *ret_text = text;
                        return 0;
                }
        int r = run_store_get(past->store, id, ret_text, ret_size);
        if (r == -ENOENT) {
                (void) run_store_remove(past->store, id); /* removed by somebody else meanwhile */
                return r;
        }
        if (r < 0 && !past->read_failed)
                log_error("the kept run %s cannot be read now and is left alone: %s", id, strerror(-r));
        past->read_failed = r < 0;
        return r;
}

/* A run that was under way when the last daemon died is over, and was not judged. */
static int close_interrupted(Past *past, PastRun **run, char **text, size_t *size)
{
        _cleanup_free_ char *closed = NULL;
        _cleanup_(past_run_freep) PastRun *ended = NULL;
        size_t closed_size = 0;
        char detail[160], error[128], time[RFC3339_SIZE];
        const char *id = (*run)->id;

        (void) snprintf(detail, sizeof detail,
                        "The daemon ended in the middle of the run, which was asked for at %s. Run again.",
                        rfc3339_format(time, (*run)->queued_real_ns));
        int r = past_run_close(*text, *size, detail, &closed, &closed_size);
        if (r >= 0)
                r = past_run_read(&ended, closed, closed_size, id, error, sizeof error);
        if (r < 0)
                return r;
        bool is_kept = put(past, id, closed, closed_size) >= 0;
        past_run_free(*run);
        *run = TAKE_PTR(ended);
        free(*text);
        *text = TAKE_PTR(closed);
        *size = closed_size;
        if (is_kept)
                past->events.interrupted(*run, past->events.userdata);
        return 0;
}

/* Reads the document TEXT, which may be replaced by what becomes of it. */
static int read_text(Past *past, const char *id, char **text, size_t *size, PastRun **ret)
{
        _cleanup_(past_run_freep) PastRun *run = NULL;
        char error[128];

        int r = past_run_read(&run, *text, *size, id, error, sizeof error);
        if (r == -EBADMSG) {
                log_warning("the kept run %s is damaged and is set aside: %s", id, error);
                (void) run_store_set_aside(past->store, id);
        }
        if (r < 0)
                return r;
        if (run->state == RUN_QUEUED || run->state == RUN_RUNNING) {
                r = close_interrupted(past, &run, text, size);
                if (r == -ENOMEM)
                        return r;
        }
        *ret = TAKE_PTR(run);
        return 0;
}

int past_read(Past *past, const char *id, PastRun **ret, char **ret_text, size_t *ret_size)
{
        _cleanup_free_ char *text = NULL;
        _cleanup_(past_run_freep) PastRun *run = NULL;
        size_t size = 0;

        if (!past_has(past, id))
                return -ENOENT;
        int r = get_text(past, id, &text, &size);
        if (r >= 0)
                r = read_text(past, id, &text, &size, &run);
        if (r < 0)
                return r;
        if (ret)
                *ret = TAKE_PTR(run);
        if (ret_text) {
                *ret_text = TAKE_PTR(text);
                *ret_size = size;
        }
        return 0;
}

/* ---- the list ---- */

static const char *find_waiting(const Past *past, const char *before)
{
        const char *newest = NULL;

        for (size_t i = 0; i < past->n_waiting; i++) {
                const char *id = past->waiting[i].id;

                if ((!before || strcmp(id, before) < 0) && (!newest || strcmp(id, newest) > 0))
                        newest = id;
        }
        return newest;
}

const char *past_older(const Past *past, const char *before)
{
        const char *kept = run_store_older(past->store, before);
        const char *waiting = find_waiting(past, before);

        while (kept && is_open(past, kept))
                kept = run_store_older(past->store, kept);
        if (kept && waiting)
                return strcmp(kept, waiting) > 0 ? kept : waiting;
        return kept ? kept : waiting;
}

bool past_has(const Past *past, const char *id)
{
        for (size_t i = 0; i < past->n_waiting; i++)
                if (strcmp(past->waiting[i].id, id) == 0)
                        return true;
        return run_store_has(past->store, id) && !is_open(past, id);
}

size_t past_set_aside(const Past *past)
{
        return run_store_set_aside_count(past->store);
}

/* ---- what goes ---- */

/* The run that stands for a target is its verdict, however old. */
static bool must_stay(const Past *past, const char *id)
{
        for (size_t i = 0; i < past->n_followed; i++) {
                const PastRun *last = past->followed[i].last, *standing = past->followed[i].standing.run;

                if ((last && strcmp(last->id, id) == 0) || (standing && strcmp(standing->id, id) == 0))
                        return true;
        }
        return is_open(past, id);
}

/* Age counts back from the newest run but one, not from now: neither a clock that is wrong today nor one run
 * made under such a clock makes the others old. Runs whose ids have no time go by number alone. */
static int64_t oldest_to_keep(const Past *past)
{
        const char *second = run_store_id(past->store, 1);
        int64_t real_ns = 0, now_ns = (int64_t) clock_ns(CLOCK_REALTIME);

        if (!second || run_id_time(second, &real_ns) < 0)
                return INT64_MIN;
        return (real_ns < now_ns ? real_ns : now_ns) - (int64_t) past->rules.keep_for_ns;
}

static void trim(Past *past)
{
        int64_t oldest_ns = oldest_to_keep(past);
        size_t n_removed = 0;

        past->to_trim = false;
        for (size_t i = run_store_count(past->store); i-- > 0;) {
                const char *kept_id = run_store_id(past->store, i);
                char id[RUN_ID_SIZE];
                int64_t real_ns = INT64_MAX;

                (void) run_id_time(kept_id, &real_ns);
                if (run_store_count(past->store) <= past->rules.keep_runs && real_ns >= oldest_ns)
                        return; /* those that follow are newer */
                if (must_stay(past, kept_id))
                        continue;
                if (n_removed++ == REMOVED_AT_A_TIME) {
                        past->to_trim = true;
                        return;
                }
                (void) snprintf(id, sizeof id, "%s", kept_id);
                (void) run_store_remove(past->store, id);
        }
}

void past_work(Past *past)
{
        if (past->n_waiting > 0 && clock_ns(CLOCK_MONOTONIC) - past->tried_ns >= RETRY_NS)
                write_waiting(past);
        if (past->to_trim)
                trim(past);
}

/* ---- the targets ---- */

static const Followed *find_followed(const Past *past, const char *target)
{
        for (size_t i = 0; i < past->n_followed; i++)
                if (strcmp(past->followed[i].target, target) == 0)
                        return &past->followed[i];
        return NULL;
}

const PastRun *past_last_run(const Past *past, const char *target)
{
        const Followed *followed = find_followed(past, target);

        return followed ? followed->last : NULL;
}

const PastStanding *past_standing(const Past *past, const char *target)
{
        const Followed *followed = find_followed(past, target);

        return followed ? &followed->standing : NULL;
}

const char *past_mount_point(const Past *past, const char *target)
{
        const Followed *followed = find_followed(past, target);

        return followed ? followed->mount_point : NULL;
}

static bool is_of(const PastRun *run, const Followed *followed)
{
        return strcmp(run->target, followed->target) == 0 && run->path &&
               strcmp(run->path, followed->path) == 0;
}

static void take_mount_point(Followed *followed, const PastRun *run)
{
        char *copy = run->mount_point ? strdup(run->mount_point) : NULL;

        if (!copy)
                return;
        free(followed->mount_point);
        followed->mount_point = copy;
}

static void forget_followed(Followed *followed)
{
        free(followed->target);
        free(followed->path);
        free(followed->profile);
        free(followed->mount_point);
        past_run_free(followed->last);
        past_run_free(followed->standing.run);
        *followed = (Followed){ 0 };
}

static bool has_full_standing(const Followed *followed)
{
        return followed->standing.run &&
               standing_claim(&followed->standing.facts, followed->profile) == STANDING_FULL;
}

static bool is_complete(const Followed *followed)
{
        return followed->last && followed->mount_point && has_full_standing(followed);
}

static bool has_all_figures(const Followed *followed)
{
        return followed->standing.n_figures == STANDING_MAX_FIGURES;
}

/* Whether the text can be of a run that is still looked for: names of targets stand in it as they are. That
 * saves taking every document apart for a target that never ran. */
static bool may_be_wanted(const Followed *wanted, size_t n, const char *text, size_t size)
{
        static const char certifying[] = "\"certifying\":true";
        char quoted[NAME_SIZE + 2];

        for (size_t i = 0; i < n; i++) {
                int length = snprintf(quoted, sizeof quoted, "\"%s\"", wanted[i].target);

                if ((!is_complete(&wanted[i]) ||
                     (!has_all_figures(&wanted[i]) && memmem(text, size, certifying, strlen(certifying)))) &&
                    memmem(text, size, quoted, (size_t) length))
                        return true;
        }
        return false;
}

static void stand(Followed *followed, PastRun *run, const StandingRun *facts)
{
        past_run_free(followed->standing.run);
        followed->standing.run = past_run_ref(run);
        followed->standing.facts = *facts;
}

/* Takes from a run what is still wanted of it; runs come newest first. */
static void take_older(Followed *followed, PastRun *run)
{
        PastStanding *standing = &followed->standing;
        StandingRun facts;

        if (!followed->mount_point)
                take_mount_point(followed, run);
        if (!followed->last)
                followed->last = past_run_ref(run);
        past_run_standing(run, &facts);
        if (!has_full_standing(followed) &&
            (!standing->run || !standing_replaces(&standing->facts, &facts, followed->profile)) &&
            standing_replaces(&facts, NULL, followed->profile))
                stand(followed, run, &facts);
        if (!has_all_figures(followed) &&
            standing_figures_of(&facts, &standing->figures[standing->n_figures]))
                standing->n_figures++;
}

/* Goes back through the runs until all of the N targets WANTED have what there is of them; for what they are
 * compared with not through all. */
static void find_runs(Past *past, Followed *wanted, size_t n)
{
        size_t n_for_figures = (n + 1) * STANDING_MAX_FIGURES;
        const char *id = NULL;
        char before[RUN_ID_SIZE];
        bool complete = n == 0;

        for (id = past_older(past, NULL); id && !complete; id = past_older(past, before)) {
                _cleanup_free_ char *text = NULL;
                _cleanup_(past_run_freep) PastRun *run = NULL;
                size_t size = 0;

                n_for_figures -= n_for_figures > 0;
                (void) snprintf(before, sizeof before, "%s", id);
                if (get_text(past, before, &text, &size) < 0 || !may_be_wanted(wanted, n, text, size) ||
                    read_text(past, before, &text, &size, &run) < 0)
                        continue;
                complete = true;
                for (size_t i = 0; i < n; i++) {
                        if (is_of(run, &wanted[i]))
                                take_older(&wanted[i], run);
                        complete = complete && is_complete(&wanted[i]) &&
                                   (has_all_figures(&wanted[i]) || n_for_figures == 0);
                }
        }
}

static void follow(Past *past, const PastSubject *subject)
{
        Followed *followed = &past->followed[past->n_followed];

        *followed = (Followed){ .target = strdup(subject->target),
                                .path = strdup(subject->path),
                                .profile = strdup(subject->profile) };
        if (followed->target && followed->path && followed->profile) {
                past->n_followed++;
                return;
        }
        log_error("target %s: its past runs are not looked for: out of memory", subject->target);
        forget_followed(followed);
}

void past_follow(Past *past, const PastSubject *subjects, size_t n, const HistoryRules *rules)
{
        Followed before[CONFIG_MAX_TARGETS];
        size_t n_before = past->n_followed;

        memcpy(before, past->followed, sizeof before);
        past->n_followed = 0;
        /* Those that are followed already come first: they need no search. */
        for (size_t i = 0; i < n_before; i++)
                for (size_t j = 0; j < n; j++)
                        if (before[i].target && strcmp(before[i].target, subjects[j].target) == 0 &&
                            strcmp(before[i].path, subjects[j].path) == 0 &&
                            strcmp(before[i].profile, subjects[j].profile) == 0) {
                                past->followed[past->n_followed++] = before[i];
                                before[i] = (Followed){ 0 };
                        }
        for (size_t i = 0; i < n_before; i++)
                forget_followed(&before[i]);
        size_t n_known = past->n_followed;
        for (size_t i = 0; i < n && past->n_followed < ELEMENTSOF(past->followed); i++)
                if (!find_followed(past, subjects[i].target))
                        follow(past, &subjects[i]);
        find_runs(past, past->followed + n_known, past->n_followed - n_known);
        past->rules = *rules;
        trim(past);
}

/* An ended run is the last one of its target, and may be the one that stands from now on. */
static void take_for_target(Past *past, PastRun *run)
{
        Followed *followed = past->followed;
        StandingRun facts;

        while (followed < past->followed + past->n_followed && !is_of(run, followed))
                followed++;
        if (followed == past->followed + past->n_followed)
                return;
        PastStanding *standing = &followed->standing;
        take_mount_point(followed, run);
        past_run_free(followed->last);
        followed->last = past_run_ref(run);
        past_run_standing(run, &facts);
        if (standing_replaces(&facts, standing->run ? &standing->facts : NULL, followed->profile))
                stand(followed, run, &facts);
        StandingFigures figures;
        if (!standing_figures_of(&facts, &figures))
                return;
        standing->n_figures -= has_all_figures(followed);
        memmove(standing->figures + 1, standing->figures, standing->n_figures * sizeof figures);
        standing->figures[0] = figures;
        standing->n_figures++;
}

void past_add(Past *past, const RunRecord *record)
{
        _cleanup_(past_run_freep) PastRun *run = NULL;
        size_t size = 0, open = find_open(past, record->id);
        char error[128];

        if (open < past->n_open)
                memcpy(past->open[open], past->open[--past->n_open], RUN_ID_SIZE);
        _cleanup_free_ char *text = print_run(record, true, &size);
        if (!text || past_run_read(&run, text, size, record->id, error, sizeof error) < 0) {
                log_error("run %s is lost: out of memory", record->id);
                return;
        }
        take_for_target(past, run);
        write_waiting(past);
        if (put(past, record->id, text, size) < 0)
                let_wait(past, record->id, TAKE_PTR(text), size);
        trim(past);
}

/* ---- life ---- */

int past_new(Past **ret, int state_fd, const HistoryRules *rules, const PastEvents *events)
{
        _cleanup_(past_freep) Past *past = calloc(1, sizeof *past);

        if (!past)
                return -ENOMEM;
        past->events = *events;
        past->rules = *rules;
        int r = run_store_open(&past->store, state_fd, "runs");
        if (r < 0)
                return r;
        *ret = TAKE_PTR(past);
        return 0;
}

Past *past_free(Past *past)
{
        if (!past)
                return NULL;
        write_waiting(past);
        while (past->n_waiting > 0)
                forget_waiting(past, 0);
        for (size_t i = 0; i < past->n_followed; i++)
                forget_followed(&past->followed[i]);
        run_store_free(past->store);
        free(past);
        return NULL;
}

void past_freep(Past **past)
{
        past_free(*past);
}
