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

#define RETRY_NS (10 * NS_PER_S)
#define LAST_WAIT_MS 3000    /* for the disk, at the end */
#define REMOVED_AT_A_TIME 50 /* a few ms of the event loop */

struct Past {
        PastEvents events;
        RunStore *store;
        HistoryRules rules;
        bool read_failed, write_failed; /* said once, until it works again */
        bool to_trim;
        char open[2 * CONFIG_MAX_TARGETS][RUN_ID_SIZE]; /* kept, but still under way */
        size_t n_open;
        Followed followed[CONFIG_MAX_TARGETS];
        size_t n_followed;
};

/* ---- writing ---- */

/* A disk that is slow for so long is worth a word. */
#define SLOW_NS (5 * NS_PER_S)

static void say(Past *past, bool held_up, int error)
{
        bool failed = held_up || error < 0;

        if (failed && !past->write_failed)
                log_error("runs cannot be kept on the disk now: %s; they are kept in memory until they can",
                          error < 0 ? strerror(-error) : "the disk of the state directory does not answer");
        if (!failed && past->write_failed && run_store_waiting(past->store) == 0) {
                log_info("runs are kept on the disk again");
                past->write_failed = false;
        }
        past->write_failed = past->write_failed || failed;
}

static void work(Past *past, uint64_t retry_ns)
{
        int r = run_store_work(past->store, retry_ns);

        say(past, run_store_busy_ns(past->store) >= SLOW_NS, r);
}

static int put(Past *past, const char *id, const char *text, size_t size)
{
        int r = run_store_put(past->store, id, text, size);

        if (r < 0) {
                log_error("run %s is not kept: %s", id,
                          r == -ENOBUFS ? "as many as may wait for the disk of the state directory"
                                        : strerror(-r));
                return r;
        }
        work(past, 0);
        return 0;
}

static char *print_run(const RunRecord *record, bool evidence, size_t *ret_size)
{
        json_auto_t *document = json_run(record, evidence);

        /* It may be served as it is, if this process ends before the run. */
        if (!document || json_object_set_new(document, "schema", json_integer(JSON_SCHEMA)) < 0)
                return NULL;
        return json_document(document, ret_size);
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

const char *past_older(const Past *past, const char *before)
{
        const char *kept = run_store_older(past->store, before);

        while (kept && is_open(past, kept))
                kept = run_store_older(past->store, kept);
        return kept;
}

bool past_has(const Past *past, const char *id)
{
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

                const PastRun *unconfirmed = past->followed[i].standing.unconfirmed;

                if ((last && strcmp(last->id, id) == 0) || (standing && strcmp(standing->id, id) == 0) ||
                    (unconfirmed && strcmp(unconfirmed->id, id) == 0))
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
                if (run_store_remove(past->store, id) < 0) {
                        past->to_trim = true; /* as much waits as may */
                        return;
                }
        }
}

void past_work(Past *past)
{
        work(past, RETRY_NS);
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
                if (get_text(past, before, &text, &size) < 0 || !followed_may_want(wanted, n, text, size) ||
                    read_text(past, before, &text, &size, &run) < 0)
                        continue;
                complete = true;
                for (size_t i = 0; i < n; i++) {
                        followed_take_older(&wanted[i], run, (int64_t) clock_ns(CLOCK_REALTIME));
                        complete = complete && followed_is_complete(&wanted[i]) &&
                                   (followed_has_all_figures(&wanted[i]) || n_for_figures == 0);
                }
        }
}

bool past_settle(Past *past)
{
        int64_t now_ns = (int64_t) clock_ns(CLOCK_REALTIME);
        bool any = false;

        for (size_t i = 0; i < past->n_followed; i++)
                any |= followed_settle(&past->followed[i], now_ns);
        return any;
}

static void follow(Past *past, const PastSubject *subject)
{
        if (followed_init(&past->followed[past->n_followed], subject) >= 0)
                past->n_followed++;
        else
                log_error("target %s: its past runs are not looked for: out of memory", subject->target);
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
                followed_forget(&before[i]);
        size_t n_known = past->n_followed;
        for (size_t i = 0; i < n && past->n_followed < ELEMENTSOF(past->followed); i++)
                if (!find_followed(past, subjects[i].target))
                        follow(past, &subjects[i]);
        find_runs(past, past->followed + n_known, past->n_followed - n_known);
        past->rules = *rules;
        trim(past);
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
        for (size_t i = 0; i < past->n_followed; i++)
                followed_take_newer(&past->followed[i], run, (int64_t) clock_ns(CLOCK_REALTIME));
        (void) put(past, record->id, text, size);
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

size_t past_finish(Past *past, int wait_ms)
{
        return run_store_finish(past->store, wait_ms);
}

Past *past_free(Past *past)
{
        if (!past)
                return NULL;
        size_t n_lost = past->store ? past_finish(past, LAST_WAIT_MS) : 0;
        if (n_lost > 0)
                log_error("%zu change%s of kept runs did not get to the disk of the state directory and %s "
                          "lost",
                          n_lost, n_lost == 1 ? "" : "s", n_lost == 1 ? "is" : "are");
        for (size_t i = 0; i < past->n_followed; i++)
                followed_forget(&past->followed[i]);
        run_store_free(past->store);
        free(past);
        return NULL;
}

void past_freep(Past **past)
{
        past_free(*past);
}
