/* SPDX-License-Identifier: Apache-2.0 */
/* Past runs over state directories of released formats, as they were written and mutated: what is JSON is
 * served as it stands, what is damaged is set aside and not lost, what cannot be read is left alone. */

#include "../../src/daemon/past.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/file.h"
#include "tierprobe/json.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "folder.h"
#include "pidfd.h"
#include "seeds.h"

/* ---- a disk that does not read ---- */

static bool read_fails;

ssize_t __real_read(int fd, void *buf, size_t size);
ssize_t __wrap_read(int fd, void *buf, size_t size);
ssize_t __wrap_read(int fd, void *buf, size_t size)
{
        if (read_fails) {
                errno = EIO;
                return -1;
        }
        return __real_read(fd, buf, size);
}

/* ---- state directories ---- */

#define MAX_DOCUMENTS 16
#define WAIT_MS 60000 /* for the disk, on a busy machine */

typedef struct Document {
        char id[RUN_ID_SIZE];
        char *text;
        size_t size;
} Document;

static Document corpus[MAX_DOCUMENTS];
static size_t n_corpus;
static char folder[64];
static int dir_fd = -1, runs_fd = -1;
static unsigned n_interrupted;
static const HistoryRules keep_all = { .keep_runs = 1000, .keep_for_ns = 400 * NS_PER_DAY };

static int read_corpus(void **state)
{
        const char *data = getenv("TIERPROBE_TEST_DATA"); /* NOLINT(concurrency-mt-unsafe): one thread */
        _cleanup_free_ char *path = path_format("%s/state/release-1/runs", data ? data : "tests/data");
        const struct dirent *entry = NULL;

        (void) state;
        _cleanup_closedir_ DIR *dir = opendir(path);
        if (!dir)
                return -1;
        while ((entry = readdir(dir))) { /* NOLINT(concurrency-mt-unsafe): one thread */
                Document *document = &corpus[n_corpus];

                if (entry->d_name[0] == '.')
                        continue;
                (void) snprintf(document->id, sizeof document->id, "%.*s", (int) strcspn(entry->d_name, "."),
                                entry->d_name);
                if (read_file_at(dirfd(dir), entry->d_name, 1 << 20, &document->text, &document->size) < 0)
                        return -1;
                n_corpus++;
        }
        return n_corpus < 5;
}

static int free_corpus(void **state)
{
        (void) state;
        for (size_t i = 0; i < n_corpus; i++)
                free(corpus[i].text);
        return 0;
}

static int make_folder(void **state)
{
        (void) state;
        n_interrupted = 0;
        if (test_folder_make("past", folder, sizeof folder) < 0)
                return -1;
        dir_fd = open(folder, O_DIRECTORY | O_CLOEXEC);
        if (dir_fd < 0 || mkdirat(dir_fd, "runs", 0700) < 0)
                return -1;
        runs_fd = openat(dir_fd, "runs", O_DIRECTORY | O_CLOEXEC);
        return runs_fd < 0;
}

static int remove_folder(void **state)
{
        (void) state;
        close_fdp(&runs_fd);
        close_fdp(&dir_fd);
        return test_folder_remove(folder);
}

static void write_document(const char id[RUN_ID_SIZE], const char *text, size_t size)
{
        _cleanup_free_ char *name = path_format("%s.json", id);

        assert_int_equal(write_file_atomic_at(runs_fd, name, text, size, 0600), 0);
}

static void fill_folder(void)
{
        for (size_t i = 0; i < n_corpus; i++)
                write_document(corpus[i].id, corpus[i].text, corpus[i].size);
}

/* How many files there are, whatever they are called, but for what a child is just writing. */
static size_t count_files(void)
{
        size_t n = 0;
        const struct dirent *entry = NULL;

        _cleanup_free_ char *path = path_format("%s/runs", folder);
        _cleanup_closedir_ DIR *runs = opendir(path);
        assert_non_null(runs);
        while ((entry = readdir(runs))) /* NOLINT(concurrency-mt-unsafe): one thread */
                n += entry->d_name[0] != '.' && !strstr(entry->d_name, ".new");
        return n;
}

/* ---- past ---- */

static void on_interrupted(const PastRun *run, void *userdata)
{
        (void) userdata;
        assert_int_equal(run->state, RUN_ABORTED);
        n_interrupted++;
}

/* The targets of the corpus, and one that never ran. */
static const PastSubject subjects[] = {
        { "cache", "/dev/shm/tierprobe-lab-22057-0/mnt", "small" },
        { "slow", "/dev/shm/tierprobe-lab-22057-1/mnt", "small" },
        { "none", "/dev/shm/tp-ovr44hk_", "small" },
        { "new", "/dev/shm", "small" },
};

static Past *open_past(const HistoryRules *rules)
{
        Past *past = NULL;

        assert_int_equal(past_new(&past, dir_fd, rules, &(PastEvents){ .interrupted = on_interrupted }), 0);
        past_follow(past, subjects, ELEMENTSOF(subjects), rules);
        return past;
}

static void assert_last(const Past *past, const char *target, const char *id, Verdict verdict)
{
        const PastRun *run = past_last_run(past, target);

        assert_non_null(run);
        assert_string_equal(run->id, id);
        assert_int_equal(run->verdict, verdict);
}

static size_t count_served(Past *past)
{
        char before[RUN_ID_SIZE];
        size_t n = 0;

        for (const char *id = past_older(past, NULL); id; id = past_older(past, before)) {
                _cleanup_(past_run_freep) PastRun *run = NULL;

                (void) snprintf(before, sizeof before, "%s", id);
                n += past_read(past, before, &run, NULL, NULL) == 0;
        }
        return n;
}

static void test_release_1(void **state)
{
        (void) state;
        fill_folder();
        _cleanup_(past_freep) Past *past = open_past(&keep_all);
        assert_last(past, "cache", "20261130T221058-911853", VERDICT_INCONCLUSIVE);
        assert_last(past, "slow", "20261130T221204-0730ee", VERDICT_INCONCLUSIVE); /* cut by a kill */
        assert_last(past, "none", "20261130T221058-efe04f", VERDICT_INCONCLUSIVE);
        assert_null(past_last_run(past, "new"));
        assert_string_equal(past_mount_point(past, "slow"), "/dev/shm/tierprobe-lab-22057-1/mnt");
        assert_null(past_mount_point(past, "new"));
        assert_int_equal(n_interrupted, 1);
        assert_int_equal(count_served(past), n_corpus);
        assert_int_equal(past_set_aside(past), 0);
        for (size_t i = 0; i < n_corpus; i++) {
                _cleanup_free_ char *text = NULL;
                size_t size = 0;

                assert_true(past_has(past, corpus[i].id));
                assert_int_equal(past_read(past, corpus[i].id, NULL, &text, &size), 0);
                if (strcmp(corpus[i].id, "20261130T221204-0730ee") == 0)
                        continue;
                assert_int_equal(size, corpus[i].size);
                assert_memory_equal(text, corpus[i].text, size);
        }
        (void) past_finish(past, WAIT_MS);
        assert_int_equal(count_files(), n_corpus);
}

/* ---- what stands, as it goes and after a restart ---- */

#define MAX_RUNS 12
#define STEP_NS (60 * (int64_t) NS_PER_S)

/* A run of any kind that ended at END_NS; a fail may have to be confirmed within three steps. */
static PastRun *any_run(unsigned index, int64_t end_ns, bool may_confirm)
{
        static const char *const states[] = { "finished", "finished", "finished", "aborted", "failed" };
        static const char *const verdicts[] = { "pass", "fail", "fail", "inconclusive" };
        char id[RUN_ID_SIZE], end[RFC3339_SIZE], counts[RFC3339_SIZE], text[600], error[128];
        const char *verdict = verdicts[(size_t) random() % ELEMENTSOF(verdicts)];
        bool confirm = may_confirm && strcmp(verdict, "fail") == 0 && random() % 4;
        PastRun *run = NULL;

        (void) snprintf(id, sizeof id, "r%02u", index);
        (void) rfc3339_format(end, end_ns);
        (void) rfc3339_format(counts, end_ns + (1 + random() % 3) * STEP_NS);
        int size =
                snprintf(text, sizeof text,
                         "{\"id\":\"%s\",\"target\":\"cache\",\"path\":\"/c\",\"profile\":\"%s\","
                         "\"official\":%s,\"state\":\"%s\",\"verdict\":\"%s\",\"finished_at\":\"%s\","
                         "\"to_confirm\":%s%s%s%s%s}",
                         id, random() % 4 ? "small" : "big", random() % 3 ? "true" : "false",
                         states[(size_t) random() % ELEMENTSOF(states)], verdict, end,
                         confirm ? "{\"at\":\"" : "null", confirm ? counts : "",
                         confirm ? "\",\"counts_from\":\"" : "", confirm ? counts : "", confirm ? "\"}" : "");
        assert_int_equal(past_run_read(&run, text, (size_t) size, id, error, sizeof error), 0);
        return run;
}

static const char *name_of(const PastRun *run)
{
        return run ? run->id : "none";
}

static void test_a_restart_finds_what_stood(void **state)
{
        static const PastSubject subject = { "cache", "/c", "small" };
        unsigned n_unconfirmed = 0, n_settled = 0;

        (void) state;
        for (unsigned seed = 0; seed < seeds_of(3000); seed++) {
                int64_t now_ns = INT64_C(1800000000) * (int64_t) NS_PER_S;
                PastRun *runs[MAX_RUNS] = { NULL };
                Followed live;

                srandom(seed);
                assert_int_equal(followed_init(&live, &subject), 0);
                for (unsigned n = 0; n < MAX_RUNS; n++) {
                        Followed found;

                        now_ns += (1 + random() % 4) * STEP_NS / 2;
                        n_settled += followed_settle(&live, now_ns);
                        runs[n] = any_run(n, now_ns,
                                          live.standing.run && live.standing.run->verdict == VERDICT_PASS &&
                                                  !live.standing.unconfirmed);
                        followed_take_newer(&live, runs[n], now_ns);
                        now_ns += random() % 4 * STEP_NS;
                        n_settled += followed_settle(&live, now_ns);
                        assert_int_equal(followed_init(&found, &subject), 0);
                        for (unsigned i = n + 1; i-- > 0;)
                                followed_take_older(&found, runs[i], now_ns);
                        assert_string_equal(name_of(found.standing.run), name_of(live.standing.run));
                        assert_string_equal(name_of(found.standing.unconfirmed),
                                            name_of(live.standing.unconfirmed));
                        n_unconfirmed += live.standing.unconfirmed != NULL;
                        followed_forget(&found);
                }
                followed_forget(&live);
                for (unsigned n = 0; n < MAX_RUNS; n++)
                        past_run_free(runs[n]);
        }
        assert_true(n_unconfirmed > 0 && n_settled > 0);
}

/* ---- documents of releases to come ---- */

static json_t *random_value(void)
{
        switch (random() % 7) {
        case 0:
                return json_null();
        case 1:
                return json_string("something new");
        case 2:
                return json_integer(random() % 2 ? -1 : INT64_MAX);
        case 3:
                return json_real(1e300);
        case 4:
                return json_array();
        case 5:
                return json_pack("{s:[i,b]}", "of", 1, 1);
        default:
                return json_false();
        }
}

static const char *random_key(json_t *object)
{
        size_t n = (size_t) random() % json_object_size(object);
        void *at = json_object_iter(object);

        while (n-- > 0)
                at = json_object_iter_next(object, at);
        return json_object_iter_key(at);
}

/* One thing that another release may do. */
static void mutate(json_t *document)
{
        json_t *object = document;
        json_t *inner = json_object_get(document, random_key(document));

        if (json_is_object(inner) && json_object_size(inner) > 0 && random() % 2)
                object = inner;
        switch (random() % 6) {
        case 0:
                (void) json_object_set_new(object, "added", random_value());
                break;
        case 1:
                (void) json_object_set_new(document, "schema", json_integer(2));
                break;
        case 2:
                (void) json_object_set_new(document, random() % 2 ? "state" : "verdict",
                                           json_string("splendid"));
                break;
        case 3:
                (void) json_object_set_new(document, "reasons",
                                           json_pack("[{s:s,s:s}]", "code", "of_the_moon", "detail", "x"));
                break;
        default: {
                const char *key = random_key(object);

                if (object == document && strcmp(key, "id") == 0)
                        break;
                if (random() % 2)
                        (void) json_object_del(object, key);
                else
                        (void) json_object_set_new(object, key, random_value());
        }
        }
}

static void test_other_releases(void **state)
{
        NEEDS_PIDFD();
        (void) state;
        fill_folder();
        for (unsigned seed = 0; seed < seeds_of(1500); seed++) {
                srandom(seed);
                const Document *chosen = &corpus[(size_t) random() % n_corpus];
                json_auto_t *document = json_loadb(chosen->text, chosen->size, 0, NULL);
                for (int n = (int) (random() % 3); n >= 0; n--)
                        mutate(document);
                _cleanup_free_ char *text = json_document(document, NULL);
                write_document(chosen->id, text, strlen(text));

                _cleanup_(past_freep) Past *past = open_past(&keep_all);
                _cleanup_(past_run_freep) PastRun *run = NULL;
                _cleanup_free_ char *served = NULL;
                size_t size = 0;
                if (count_served(past) != n_corpus || past_set_aside(past) > 0)
                        fail_msg("seed %u: %zu of %zu served", seed, count_served(past), n_corpus);
                assert_int_equal(past_read(past, chosen->id, &run, &served, &size), 0);
                /* One that was under way has been closed; every other is served byte for byte. */
                if (strcmp(chosen->id, "20261130T221204-0730ee") != 0)
                        assert_string_equal(served, text);
                json_auto_t *again = json_loadb(served, size, 0, NULL);
                (void) json_object_del(again, "schema");
                (void) json_object_del(again, "evidence");
                assert_true(json_equal(again, run->run));
                assert_int_equal(past_finish(past, WAIT_MS), 0);
                write_document(chosen->id, chosen->text, chosen->size);
        }
}

/* ---- damage ---- */

static void test_damaged(void **state)
{
        NEEDS_PIDFD();
        size_t n_aside = 0, n_again = 0;

        (void) state;
        fill_folder();
        for (unsigned seed = 0; seed < seeds_of(1500); seed++) {
                srandom(seed);
                const Document *chosen = &corpus[(size_t) random() % n_corpus];
                _cleanup_free_ char *text = strdup(chosen->text);
                size_t size = chosen->size;
                json_error_t error;

                for (int n = (int) (random() % 3); n >= 0; n--)
                        text[(size_t) random() % size] ^= (char) (1 << random() % 8);
                if (random() % 3 == 0)
                        size = (size_t) random() % size;
                write_document(chosen->id, text, size);
                json_auto_t *document = json_loadb(text, size, JSON_ALLOW_NUL, &error);
                const char *id = json_string_value(json_object_get(document, "id"));
                bool good = id && strcmp(id, chosen->id) == 0;

                _cleanup_(past_freep) Past *past = open_past(&keep_all);
                size_t n_served = count_served(past);
                assert_int_equal(past_finish(past, WAIT_MS), 0);
                bool is_aside = past_set_aside(past) > n_aside;
                n_aside += is_aside;
                n_again += is_aside && past_set_aside(past) > 1;
                /* A number beyond 64 bits is JSON all the same. */
                if (is_aside == good && !(document == NULL && !is_aside))
                        fail_msg("seed %u: set aside %d", seed, is_aside);
                assert_int_equal(past_set_aside(past), n_aside);
                assert_int_equal(n_served, n_corpus - is_aside);
                assert_int_equal(count_files(), n_corpus - is_aside + n_aside); /* nothing is lost */
                write_document(chosen->id, chosen->text, chosen->size);
        }
        assert_true(n_aside > seeds_of(300) && n_again > 0);
}

static void test_truncated(void **state)
{
        (void) state;
        for (size_t i = 0; i < n_corpus; i++)
                for (size_t size = 0; size + 1 < corpus[i].size; size++) { /* the last byte is a newline */
                        PastRun *run = NULL;
                        char error[128];

                        assert_int_equal(
                                past_run_read(&run, corpus[i].text, size, corpus[i].id, error, sizeof error),
                                -EBADMSG);
                }
}

/* ---- a disk that is not well ---- */

static void test_unreadable(void **state)
{
        NEEDS_PIDFD();
        PastRun *run = NULL;

        (void) state;
        fill_folder();
        read_fails = true;
        _cleanup_(past_freep) Past *past = open_past(&keep_all);
        assert_null(past_last_run(past, "cache"));
        assert_int_equal(past_read(past, corpus[0].id, &run, NULL, NULL), -EIO);
        assert_int_equal(count_served(past), 0);
        read_fails = false;
        assert_int_equal(past_set_aside(past), 0);
        assert_int_equal(count_served(past), n_corpus);
        assert_int_equal(past_finish(past, WAIT_MS), 0);
        assert_int_equal(count_files(), n_corpus);
        past_free(past);
        past = open_past(&keep_all);
        assert_last(past, "cache", "20261130T221058-911853", VERDICT_INCONCLUSIVE);
}

static RunRecord *make_record(const char *id, const char *target, const char *path)
{
        RunRecord *record = NULL;

        assert_int_equal(run_record_new(&record), 0);
        (void) snprintf(record->id, sizeof record->id, "%s", id);
        (void) snprintf(record->target, sizeof record->target, "%s", target);
        record->path = strdup(path);
        record->state = RUN_FINISHED;
        record->judgement.verdict = VERDICT_PASS;
        return record;
}

static void add_run(Past *past, const char *id)
{
        _cleanup_(run_record_freep) RunRecord *record = make_record(id, subjects[0].target, subjects[0].path);

        past_add(past, record);
}

static rlim_t set_file_limit(rlim_t bytes)
{
        struct rlimit limit;

        (void) signal(SIGXFSZ, SIG_IGN);
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
        rlim_t before = limit.rlim_cur;
        limit.rlim_cur = bytes;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        return before;
}

/* What a full disk does not take is served from memory, and written when it is well again. */
static void test_full_disk(void **state)
{
        NEEDS_PIDFD();
        _cleanup_free_ char *text = NULL;
        size_t size = 0;

        (void) state;
        fill_folder();
        _cleanup_(past_freep) Past *past = open_past(&keep_all);
        rlim_t before = set_file_limit(10);
        add_run(past, "20261201T000000-aaaaaa");
        add_run(past, "20261201T000001-aaaaaa");
        assert_last(past, "cache", "20261201T000001-aaaaaa", VERDICT_PASS);
        assert_string_equal(past_older(past, NULL), "20261201T000001-aaaaaa");
        assert_string_equal(past_older(past, "20261201T000001-aaaaaa"), "20261201T000000-aaaaaa");
        assert_int_equal(past_read(past, "20261201T000000-aaaaaa", NULL, &text, &size), 0);
        assert_non_null(strstr(text, "\"evidence\""));
        assert_int_equal(count_served(past), n_corpus + 2);
        assert_int_equal(past_finish(past, WAIT_MS), 2);
        assert_int_equal(count_files(), n_corpus);
        (void) set_file_limit(before);
        add_run(past, "20261201T000002-aaaaaa"); /* the next one takes them along */
        assert_int_equal(past_finish(past, WAIT_MS), 0);
        assert_int_equal(count_files(), n_corpus + 3);
        assert_int_equal(count_served(past), n_corpus + 3);
}

static void test_under_way(void **state)
{
        NEEDS_PIDFD();
        (void) state;
        _cleanup_(past_freep) Past *past = open_past(&keep_all);
        _cleanup_(run_record_freep) RunRecord *record =
                make_record("20261201T000000-aaaaaa", subjects[0].target, subjects[0].path);
        record->state = RUN_RUNNING;
        record->judgement.verdict = VERDICT_NEVER_RUN;
        past_keep(past, record);
        assert_int_equal(past_finish(past, WAIT_MS), 0);
        assert_int_equal(count_files(), 1);
        assert_null(past_older(past, NULL)); /* it is no past run yet */
        assert_false(past_has(past, record->id));
        assert_int_equal(past_read(past, record->id, NULL, NULL, NULL), -ENOENT);
        assert_int_equal(n_interrupted, 0);
        record->state = RUN_FINISHED;
        record->judgement.verdict = VERDICT_FAIL;
        past_add(past, record);
        assert_int_equal(past_finish(past, WAIT_MS), 0);
        assert_int_equal(count_files(), 1);
        assert_last(past, "cache", record->id, VERDICT_FAIL);
        assert_int_equal(count_served(past), 1);
}

/* ---- what is kept ---- */

/* Against a plain model: the newest KEEP_RUNS, none older by KEEP_FOR than the newest but one, and the last
 * run of each target in any case. */
static void test_rules(void **state)
{
        enum { N = 40 };

        (void) state;
        for (unsigned seed = 0; seed < seeds_of(300); seed++) {
                int64_t times[N], at_ns = INT64_C(1700000000) * (int64_t) NS_PER_S;
                char ids[N][RUN_ID_SIZE];
                HistoryRules rules = { .keep_runs = 1 + seed % 30,
                                       .keep_for_ns = (1 + seed % 25) * NS_PER_DAY };

                srandom(seed);
                remove_folder(NULL);
                make_folder(NULL);
                _cleanup_(past_freep) Past *past = open_past(&rules);
                _cleanup_(run_record_freep) RunRecord *seldom =
                        make_record("20200101T000000-aaaaaa", subjects[1].target, subjects[1].path);
                past_add(past, seldom);
                for (size_t i = 0; i < N; i++) {
                        at_ns += random() % 3 * (int64_t) NS_PER_DAY + (int64_t) NS_PER_S;
                        times[i] = at_ns;
                        run_id_make(ids[i], at_ns);
                        add_run(past, ids[i]);
                }
                past_work(past);
                assert_true(past_has(past, seldom->id));
                for (size_t i = 0; i < N; i++) {
                        /* The seldom one is one of those that are counted. */
                        bool wanted = i + 1 == N || (N - i <= rules.keep_runs &&
                                                     times[i] >= times[N - 2] - (int64_t) rules.keep_for_ns);

                        if (N - i == rules.keep_runs)
                                continue; /* whether the seldom one took its place depends on the order */
                        if (past_has(past, ids[i]) != wanted)
                                fail_msg("seed %u: run %zu of %d: wanted %d", seed, i, N, wanted);
                }
        }
}

/* One run made under a wrong clock does not make the others old. */
static void test_wrong_clock(void **state)
{
        NEEDS_PIDFD();
        (void) state;
        fill_folder();
        _cleanup_(past_freep) Past *past = open_past(&keep_all);
        add_run(past, "20990101T000000-aaaaaa");
        assert_int_equal(count_served(past), n_corpus + 1);
        past_free(past);
        past = open_past(&keep_all);
        assert_int_equal(count_served(past), n_corpus + 1);
}

#define test_case(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_restart_finds_what_stood),
                test_case(test_release_1),
                test_case(test_other_releases),
                test_case(test_damaged),
                test_case(test_truncated),
                test_case(test_unreadable),
                test_case(test_full_disk),
                test_case(test_under_way),
                test_case(test_rules),
                test_case(test_wrong_clock),
        };
        return cmocka_run_group_tests(tests, read_corpus, free_corpus);
}
