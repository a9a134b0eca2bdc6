/* SPDX-License-Identifier: Apache-2.0 */
/* The store of past runs: ordered, atomic, not trusting its folder, and losing nothing that is damaged. */

#include "tierprobe/cleanup.h"
#include "tierprobe/history.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "seeds.h"
#define FOLDER_NAME "runs"
#include "folder.h"
#include "pidfd.h"

static RunStore *open_store(void)
{
        RunStore *store = NULL;

        assert_int_equal(run_store_open(&store, dir_fd, "runs"), 0);
        return store;
}

/* Waits for what is to be written. */
static void finish(RunStore *store)
{
        assert_int_equal(run_store_finish(store, 60000), 0);
}

static void close_store(RunStore **store)
{
        finish(*store);
        *store = run_store_free(*store);
}

static void put(RunStore *store, const char *id, const char *text)
{
        assert_int_equal(run_store_put(store, id, text, strlen(text)), 0);
}

static void assert_text(const RunStore *store, const char *id, const char *wanted)
{
        _cleanup_free_ char *text = NULL;
        size_t size = 0;

        assert_int_equal(run_store_get(store, id, &text, &size), 0);
        assert_int_equal(size, strlen(wanted));
        assert_string_equal(text, wanted);
}

static bool exists(const char *name)
{
        return faccessat(dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void touch(const char *name)
{
        _cleanup_close_ int fd = openat(dir_fd, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

        assert_true(fd >= 0);
}

static void test_put_get(void **state)
{
        struct stat st;
        char *text = NULL;

        (void) state;
        _cleanup_(run_store_freep) RunStore *store = open_store();
        assert_int_equal(fstatat(dir_fd, "runs", &st, 0), 0);
        assert_int_equal(st.st_mode & 07777, 0750);
        assert_int_equal(run_store_count(store), 0);
        assert_null(run_store_id(store, 0));
        put(store, "20261130T131405-7f3a9c", "{\"a\": 1}");
        put(store, "20261129T131405-7f3a9c", "");
        put(store, "20261130T131405-7f3a9c", "{\"a\": 2}");
        assert_int_equal(run_store_count(store), 2);
        assert_string_equal(run_store_id(store, 0), "20261130T131405-7f3a9c");
        assert_string_equal(run_store_id(store, 1), "20261129T131405-7f3a9c");
        assert_text(store, "20261130T131405-7f3a9c", "{\"a\": 2}");
        assert_text(store, "20261129T131405-7f3a9c", "");
        assert_int_equal(run_store_get(store, "x", &text, NULL), -ENOENT);
        static const char *const bad[] = {
                "", "..", "../x", "a.json", "a b", "123456789012345678901234", "é"
        };
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                assert_int_equal(run_store_get(store, bad[i], &text, NULL), -EINVAL);
                assert_int_equal(run_store_put(store, bad[i], "x", 1), -EINVAL);
                assert_int_equal(run_store_set_aside(store, bad[i]), -EINVAL);
        }
        assert_null(text);
        put(store, "12345678901234567890123", "x");
}

static void test_bounds(void **state)
{
        NEEDS_PIDFD();
        _cleanup_free_ char *big = calloc(1, RUN_STORE_MAX_BYTES + 1);
        RunStore *nothing = NULL;

        (void) state;
        _cleanup_(run_store_freep) RunStore *store = open_store();
        assert_int_equal(run_store_put(store, "big", big, RUN_STORE_MAX_BYTES + 1), -EFBIG);
        assert_int_equal(run_store_count(store), 0);
        assert_int_equal(run_store_put(store, "big", big, RUN_STORE_MAX_BYTES), 0);
        close_store(&store);

        touch("file");
        assert_int_equal(run_store_open(&nothing, dir_fd, "file"), -ENOTDIR);
        assert_int_equal(symlinkat("/tmp", dir_fd, "link"), 0);
        assert_true(run_store_open(&nothing, dir_fd, "link") < 0);
        assert_null(nothing);
}

static void test_order(void **state)
{
        (void) state;
        _cleanup_(run_store_freep) RunStore *store = open_store();
        assert_null(run_store_older(store, NULL));
        put(store, "4", "d");
        put(store, "2", "b");
        put(store, "5", "e");
        assert_int_equal(run_store_count(store), 3);
        assert_string_equal(run_store_older(store, NULL), "5");
        assert_string_equal(run_store_older(store, "6"), "5");
        assert_string_equal(run_store_older(store, "5"), "4");
        assert_string_equal(run_store_older(store, "45"), "4");
        assert_string_equal(run_store_older(store, "3"), "2"); /* there is none of this id */
        assert_null(run_store_older(store, "2"));
        assert_null(run_store_older(store, "1"));
        assert_true(run_store_has(store, "2"));
        assert_false(run_store_has(store, "3"));
}

static void test_remove(void **state)
{
        NEEDS_PIDFD();
        (void) state;
        RunStore *store = open_store();
        put(store, "1", "one");
        put(store, "2", "two");
        put(store, "3", "three");
        finish(store);
        assert_int_equal(run_store_remove(store, "../1"), -EINVAL);
        assert_int_equal(run_store_remove(store, "4"), -ENOENT);
        assert_int_equal(run_store_remove(store, "2"), 0);
        assert_int_equal(run_store_remove(store, "2"), -ENOENT);
        finish(store);
        assert_false(exists("runs/2.json"));
        assert_int_equal(unlinkat(dir_fd, "runs/1.json", 0), 0); /* taken away under us */
        assert_int_equal(run_store_remove(store, "1"), 0);
        finish(store);
        assert_int_equal(run_store_count(store), 1);
        assert_string_equal(run_store_id(store, 0), "3");
        run_store_free(store);
        store = open_store();
        assert_int_equal(run_store_count(store), 1);
        assert_text(store, "3", "three");
        run_store_free(store);
}

static void test_set_aside(void **state)
{
        NEEDS_PIDFD();
        char *text = NULL;

        (void) state;
        _cleanup_(run_store_freep) RunStore *store = open_store();
        put(store, "1", "a");
        put(store, "2", "b");
        put(store, "3", "c");
        finish(store);
        assert_int_equal(run_store_set_aside(store, "2"), 0);
        assert_int_equal(run_store_get(store, "2", &text, NULL), -ENOENT);
        assert_int_equal(run_store_set_aside(store, "2"), -ENOENT);
        assert_true(exists("runs/2.json.damaged"));
        assert_int_equal(run_store_count(store), 2);
        finish(store);
        assert_int_equal(run_store_set_aside(store, "1"), 0);
        assert_true(exists("runs/1.json.damaged"));
        assert_true(exists("runs/2.json.damaged"));
        /* The same run again: nothing that was set aside is overwritten. */
        for (int i = 1; i < 12; i++) {
                char name[64];

                put(store, "1", "again");
                finish(store);
                assert_int_equal(run_store_set_aside(store, "1"), 0);
                (void) snprintf(name, sizeof name, "runs/1.json.damaged.%d", i);
                assert_true(exists(name));
        }
        assert_int_equal(run_store_set_aside_count(store), 13);
        close_store(&store);
        store = open_store();
        assert_int_equal(run_store_count(store), 1);
        assert_int_equal(run_store_set_aside_count(store), 13);
        assert_true(exists("runs/1.json.damaged") && exists("runs/1.json.damaged.11"));
}

/* What a crash or a stranger left in the folder. */
static void test_strange_folder(void **state)
{
        char *text = NULL;

        (void) state;
        assert_int_equal(mkdirat(dir_fd, "runs", 0700), 0);
        static const char *const others[] = { "runs/README",
                                              "runs/a.txt",
                                              "runs/.json",
                                              "runs/a.json.old",
                                              "runs/with space.json",
                                              "runs/a.b.json",
                                              "runs/123456789012345678901234.json" };
        for (size_t i = 0; i < ELEMENTSOF(others); i++)
                touch(others[i]);
        touch("runs/1.json");
        touch("runs/2.json.new");
        touch("runs/3.json.damaged");
        touch("runs/5.json.damaged");
        touch("runs/4.json.damaged");
        assert_int_equal(mkdirat(dir_fd, "runs/7.json", 0700), 0);
        assert_int_equal(symlinkat("nowhere", dir_fd, "runs/8.json"), 0);
        _cleanup_(run_store_freep) RunStore *store = open_store();
        assert_int_equal(run_store_count(store), 3);
        for (size_t i = 0; i < ELEMENTSOF(others); i++)
                assert_true(exists(others[i]));
        assert_false(exists("runs/2.json.new"));
        assert_true(exists("runs/5.json.damaged"));
        assert_true(exists("runs/3.json.damaged"));
        assert_true(exists("runs/4.json.damaged"));
        assert_int_equal(run_store_set_aside_count(store), 3);
        assert_text(store, "1", "");
        assert_int_equal(run_store_get(store, "7", &text, NULL), -EISDIR);
        assert_int_equal(run_store_get(store, "8", &text, NULL), -ENOENT);
        assert_int_equal(run_store_set_aside(store, "7"), 0);
        assert_int_equal(run_store_set_aside(store, "8"), 0);
        assert_int_equal(run_store_count(store), 1);
        assert_int_equal(unlinkat(dir_fd, "runs/1.json", 0), 0); /* taken away under us */
        assert_int_equal(run_store_get(store, "1", &text, NULL), -ENOENT);
        assert_int_equal(run_store_set_aside(store, "1"), -ENOENT);
        assert_int_equal(run_store_count(store), 0);
}

static void test_full_disk(void **state)
{
        NEEDS_PIDFD();
        struct rlimit limit;

        (void) state;
        (void) signal(SIGXFSZ, SIG_IGN);
        _cleanup_(run_store_freep) RunStore *store = open_store();
        put(store, "1", "before");
        finish(store);
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
        rlim_t old = limit.rlim_cur;
        limit.rlim_cur = 3;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        put(store, "1", "after this");
        put(store, "2", "another");
        assert_int_equal(run_store_finish(store, 60000), 2);
        assert_int_equal(run_store_work(store, UINT64_MAX), -EFBIG);
        assert_text(store, "1", "after this"); /* from memory */
        assert_false(exists("runs/2.json"));
        assert_false(exists("runs/1.json.new"));
        assert_false(exists("runs/2.json.new"));
        limit.rlim_cur = old;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        close_store(&store);
        store = open_store();
        assert_int_equal(run_store_count(store), 2);
        assert_text(store, "1", "after this");
        assert_text(store, "2", "another");
}

/* Against a plain model: which ids are kept, in which order, with which text. */
static void test_random(void **state)
{
        NEEDS_PIDFD();
        enum { N = 60 };
        char texts[N][16];
        bool kept[N];

        (void) state;
        for (unsigned seed = 0; seed < seeds_of(60); seed++) {
                size_t n_kept = 0;
                _cleanup_(run_store_freep) RunStore *store = open_store();

                srandom(seed);
                while (run_store_count(store) > 0)
                        assert_int_equal(run_store_set_aside(store, run_store_id(store, 0)), 0);
                memset(kept, 0, sizeof kept);
                for (int step = 0; step < 150; step++) {
                        char id[16];
                        size_t i = (size_t) random() % N;

                        (void) snprintf(id, sizeof id, "r-%03zu", i);
                        if (random() % 10 == 0) {
                                int (*out)(RunStore *, const char *) =
                                        random() % 2 ? run_store_set_aside : run_store_remove;

                                finish(store);
                                assert_int_equal(out(store, id), kept[i] ? 0 : -ENOENT);
                                n_kept -= kept[i];
                                kept[i] = false;
                        } else if (random() % 20 == 0) {
                                close_store(&store);
                                store = open_store();
                        } else {
                                (void) snprintf(texts[i], sizeof texts[i], "%ld", random());
                                put(store, id, texts[i]);
                                n_kept += !kept[i];
                                kept[i] = true;
                        }
                        assert_int_equal(run_store_count(store), n_kept);
                        const char *older = run_store_older(store, NULL);
                        for (size_t j = N, index = 0; j-- > 0;)
                                if (kept[j]) {
                                        (void) snprintf(id, sizeof id, "r-%03zu", j);
                                        assert_string_equal(run_store_id(store, index++), id);
                                        assert_string_equal(older, id);
                                        assert_text(store, id, texts[j]);
                                        older = run_store_older(store, older);
                                }
                        assert_null(older);
                }
        }
}

#define test_case(f) cmocka_unit_test_setup_teardown(f, open_folder, close_folder)

int main(void)
{
        const struct CMUnitTest tests[] = {
                test_case(test_put_get),   test_case(test_bounds),    test_case(test_order),
                test_case(test_remove),    test_case(test_set_aside), test_case(test_strange_folder),
                test_case(test_full_disk), test_case(test_random),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
