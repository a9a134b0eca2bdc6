/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger against a plain list of everything that was ever written: the sum over a day is never too small
 * and hardly too large, whatever order runs begin and end in, and through its file. */

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/json.h"
#include "tierprobe/ledger.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "seeds.h"

#define N_DISKS 4
#define N_RUNS 6
#define MAX_WRITES 4096
#define DAY ((int64_t) NS_PER_DAY)
#define MINUTE (60 * (int64_t) NS_PER_S)

static const DiskKey keys[N_DISKS] = { "wwid:eui.1", "serial:MODEL/2", "file:/image", "name:vda" };

/* ---- the model ---- */

typedef struct Write {
        unsigned disk;
        int64_t at_ns;
        uint64_t bytes;
} Write;

typedef struct ModelRun {
        bool known;
        char id[RUN_ID_SIZE];
        DiskKey disks[N_DISKS];
        unsigned disk_numbers[N_DISKS];
        size_t n_disks;
        uint64_t reserved, counted;
} ModelRun;

typedef struct Model {
        Write writes[MAX_WRITES];
        size_t n_writes;
        ModelRun runs[N_RUNS];
        int64_t last_end[N_DISKS];
        unsigned n_ids;
} Model;

static Model model;

/* What was written to the disk in the last SPAN, and what may still be. */
static uint64_t written(unsigned disk, int64_t now_ns, int64_t span)
{
        uint64_t bytes = 0;

        for (size_t i = 0; i < model.n_writes; i++)
                if (model.writes[i].disk == disk && model.writes[i].at_ns > now_ns - span)
                        bytes += model.writes[i].bytes;
        return bytes;
}

static uint64_t reserved(unsigned disk)
{
        uint64_t bytes = 0;

        for (size_t i = 0; i < N_RUNS; i++)
                for (size_t j = 0; model.runs[i].known && j < model.runs[i].n_disks; j++)
                        if (model.runs[i].disk_numbers[j] == disk &&
                            model.runs[i].reserved > model.runs[i].counted)
                                bytes += model.runs[i].reserved - model.runs[i].counted;
        return bytes;
}

static void model_count(ModelRun *run, uint64_t bytes, int64_t now_ns)
{
        if (bytes <= run->counted)
                return;
        for (size_t i = 0; i < run->n_disks; i++) {
                assert_true(model.n_writes < MAX_WRITES);
                model.writes[model.n_writes++] = (Write){ .disk = run->disk_numbers[i],
                                                          .at_ns = now_ns,
                                                          .bytes = bytes - run->counted };
        }
        run->counted = bytes;
}

static void model_end(ModelRun *run, uint64_t bytes, bool rests, int64_t now_ns)
{
        model_count(run, bytes, now_ns);
        for (size_t i = 0; rests && run->counted > 0 && i < run->n_disks; i++)
                model.last_end[run->disk_numbers[i]] = now_ns;
        run->known = false;
}

static void choose_disks(ModelRun *run)
{
        run->n_disks = 0;
        for (unsigned i = 0; i < N_DISKS; i++)
                if (random() % 3 == 0) {
                        memcpy(run->disks[run->n_disks], keys[i], sizeof keys[i]);
                        run->disk_numbers[run->n_disks++] = i;
                }
}

/* ---- both ---- */

static void compare(const Ledger *ledger, unsigned seed, int64_t now_ns)
{
        for (unsigned i = 0; i < N_DISKS; i++) {
                uint64_t least = written(i, now_ns, DAY) + reserved(i);
                uint64_t most = written(i, now_ns, DAY + (int64_t) LEDGER_ENTRY_NS) + reserved(i);
                uint64_t lifetime = written(i, now_ns, INT64_MAX);
                uint64_t day = ledger_last_day(ledger, &keys[i], 1, now_ns);

                if (day < least || day > most)
                        fail_msg("seed %u: disk %u: %llu is not %llu to %llu", seed, i,
                                 (unsigned long long) day, (unsigned long long) least,
                                 (unsigned long long) most);
                assert_true(ledger_lifetime(ledger, keys[i]) == lifetime);
                assert_true(ledger_last_end(ledger, &keys[i], 1, now_ns) == model.last_end[i]);
        }
        /* Of several disks the one with the most decides. */
        uint64_t most = 0;
        for (unsigned i = 0; i < N_DISKS; i++) {
                uint64_t day = ledger_last_day(ledger, &keys[i], 1, now_ns);
                most = day > most ? day : most;
        }
        assert_true(ledger_last_day(ledger, keys, N_DISKS, now_ns) == most);
}

/* There is room when it is said to be, and not a moment before. */
static void check_room(const Ledger *ledger, int64_t now_ns)
{
        uint64_t limit = (uint64_t) random() % 3000;
        int64_t at_ns = ledger_room_at(ledger, keys, N_DISKS, limit, now_ns);

        assert_true(at_ns >= now_ns);
        if (at_ns == INT64_MAX) {
                assert_true(ledger_last_day(ledger, keys, N_DISKS, now_ns + 2 * DAY) > limit);
                return;
        }
        assert_true(ledger_last_day(ledger, keys, N_DISKS, at_ns) <= limit);
        if (at_ns > now_ns)
                assert_true(ledger_last_day(ledger, keys, N_DISKS, at_ns - 1) > limit);
}

static void through_file(Ledger **ledger)
{
        Ledger *back = NULL;
        json_auto_t *document = json_ledger(*ledger);
        _cleanup_free_ char *text = json_document(document, NULL);

        assert_int_equal(json_read_ledger(text, strlen(text), &back), 0);
        ledger_free(*ledger);
        *ledger = back;
}

static void step(Ledger **ledger, int64_t now_ns)
{
        ModelRun *run = &model.runs[random() % N_RUNS];
        uint64_t bytes = run->counted + (uint64_t) random() % 100;

        if (!run->known) {
                *run = (ModelRun){ .known = true, .reserved = (uint64_t) random() % 300 };
                (void) snprintf(run->id, sizeof run->id, "run-%u", model.n_ids++);
                choose_disks(run);
                size_t n_now = random() % 4 ? run->n_disks : 0;
                assert_int_equal(ledger_reserve(*ledger, run->id, (const DiskKey *) run->disks, n_now,
                                                run->reserved, now_ns),
                                 0);
                if (n_now < run->n_disks) /* its device was not known when it was asked for */
                        assert_int_equal(ledger_set_disks(*ledger, run->id, (const DiskKey *) run->disks,
                                                          run->n_disks),
                                         0);
                assert_int_equal(ledger_reserve(*ledger, run->id, NULL, 0, 1, now_ns), -EEXIST);
        } else if (random() % 3) {
                ledger_count(*ledger, run->id, bytes, now_ns);
                model_count(run, bytes, now_ns);
        } else {
                if (random() % 4 == 0)
                        bytes = run->counted; /* it wrote nothing more */
                bool rests = random() % 3;
                ledger_settle(*ledger, run->id, bytes, rests, now_ns);
                model_end(run, bytes, rests, now_ns);
        }
        if (random() % 50 == 0)
                ledger_tidy(*ledger, now_ns);
        if (random() % 100 == 0)
                through_file(ledger);
}

static void test_random(void **state)
{
        (void) state;
        for (unsigned seed = 0; seed < seeds_of(400); seed++) {
                _cleanup_(ledger_freep) Ledger *ledger = NULL;
                int64_t now_ns = INT64_C(1800000000) * (int64_t) NS_PER_S;

                srandom(seed);
                memset(&model, 0, sizeof model);
                assert_int_equal(ledger_new(&ledger), 0);
                for (int i = 0; i < 400; i++) {
                        /* Whole milliseconds: that is what the file keeps. */
                        now_ns += random() % (2 * 1000 * (random() % 30 ? 300 : 20000)) * (int64_t) NS_PER_MS;
                        step(&ledger, now_ns);
                        compare(ledger, seed, now_ns);
                        check_room(ledger, now_ns);
                }
        }
}

/* A thousand small runs in a day stay within the entries, and none is forgotten. */
static void test_many(void **state)
{
        _cleanup_(ledger_freep) Ledger *ledger = NULL;
        int64_t now_ns = INT64_C(1800000000) * (int64_t) NS_PER_S;

        (void) state;
        assert_int_equal(ledger_new(&ledger), 0);
        for (int i = 0; i < 100000; i++) {
                now_ns += DAY / 50000;
                char id[RUN_ID_SIZE];
                (void) snprintf(id, sizeof id, "run-%d", i);
                assert_int_equal(ledger_reserve(ledger, id, keys, 1, 10, now_ns), 0);
                ledger_settle(ledger, id, 10, true, now_ns);
        }
        assert_in_range(ledger_last_day(ledger, keys, 1, now_ns), 500000 - 10, 500000 + 500000 / 144 + 10);
        assert_int_equal(ledger_lifetime(ledger, keys[0]), 1000000);
}

/* The daemon died: what the run might have written counts, once. */
static void test_lost(void **state)
{
        _cleanup_(ledger_freep) Ledger *ledger = NULL;
        int64_t now_ns = INT64_C(1800000000) * (int64_t) NS_PER_S;

        (void) state;
        assert_int_equal(ledger_new(&ledger), 0);
        assert_int_equal(ledger_reserve(ledger, "a", keys, 1, 1000, now_ns), 0);
        ledger_count(ledger, "a", 400, now_ns + MINUTE);
        assert_int_equal(ledger_last_day(ledger, keys, 1, now_ns + MINUTE), 1000);
        through_file(&ledger);
        ledger_settle_lost(ledger, now_ns + 2 * MINUTE);
        assert_int_equal(ledger->n_runs, 0);
        assert_int_equal(ledger_last_day(ledger, keys, 1, now_ns + 2 * MINUTE), 1000);
        assert_int_equal(ledger_lifetime(ledger, keys[0]), 1000);
        assert_true(ledger_last_end(ledger, keys, 1, now_ns + 2 * MINUTE) == now_ns + 2 * MINUTE);
        through_file(&ledger);
        assert_int_equal(ledger_last_day(ledger, keys, 1, now_ns + 2 * DAY), 0);
        assert_int_equal(ledger_lifetime(ledger, keys[0]), 1000);
}

/* The clock was wrong by years and is set right: nothing blocks for years, nothing is let through today. */
static void test_clock_set_back(void **state)
{
        _cleanup_(ledger_freep) Ledger *ledger = NULL;
        int64_t now_ns = INT64_C(1800000000) * (int64_t) NS_PER_S, later_ns = now_ns + 3000 * DAY;

        (void) state;
        assert_int_equal(ledger_new(&ledger), 0);
        assert_int_equal(ledger_add(ledger, keys, 1, 700, true, later_ns, later_ns), 0);
        assert_int_equal(ledger_last_day(ledger, keys, 1, now_ns), 700);
        assert_true(ledger_last_end(ledger, keys, 1, now_ns) == now_ns);
        ledger_tidy(ledger, now_ns);
        assert_true(ledger_room_at(ledger, keys, 1, 0, now_ns) == now_ns + DAY);
        assert_int_equal(ledger_last_day(ledger, keys, 1, now_ns + DAY), 0);
        assert_true(ledger_last_end(ledger, keys, 1, now_ns + DAY) == now_ns);
}

/* What was written down while the file could not be read is added to what the file has. */
static void test_merge(void **state)
{
        _cleanup_(ledger_freep) Ledger *ledger = NULL, *old = NULL;
        int64_t now_ns = INT64_C(1800000000) * (int64_t) NS_PER_S;

        (void) state;
        assert_int_equal(ledger_new(&ledger), 0);
        assert_int_equal(ledger_new(&old), 0);
        assert_int_equal(ledger_add(old, keys, 2, 100, true, now_ns - 2 * DAY, now_ns), 0);
        assert_int_equal(ledger_add(old, keys, 1, 30, true, now_ns - DAY / 2, now_ns), 0);
        assert_int_equal(ledger_add(ledger, keys, 1, 7, true, now_ns, now_ns), 0);
        assert_int_equal(ledger_merge(ledger, old, now_ns), 0);
        assert_int_equal(ledger_last_day(ledger, keys, 1, now_ns), 37);
        assert_int_equal(ledger_lifetime(ledger, keys[0]), 137);
        assert_int_equal(ledger_lifetime(ledger, keys[1]), 100);
        assert_true(ledger_last_end(ledger, keys, 1, now_ns) == now_ns);
}

/* More disks than there is room for: the one idle longest goes, one in use never does. */
static void test_many_disks(void **state)
{
        _cleanup_(ledger_freep) Ledger *ledger = NULL;
        int64_t now_ns = INT64_C(1800000000) * (int64_t) NS_PER_S;

        (void) state;
        assert_int_equal(ledger_new(&ledger), 0);
        assert_int_equal(ledger_reserve(ledger, "held", keys, 1, 5, now_ns), 0);
        for (int i = 0; i < 3 * LEDGER_MAX_DISKS; i++) {
                DiskKey key;

                (void) snprintf(key, sizeof key, "name:disk%d", i);
                assert_int_equal(
                        ledger_add(ledger, (const DiskKey *) &key, 1, 1, true, now_ns - 2 * DAY + i, now_ns),
                        0);
        }
        assert_int_equal(ledger->n_disks, LEDGER_MAX_DISKS);
        assert_int_equal(ledger_last_day(ledger, keys, 1, now_ns), 5);
        assert_int_equal(ledger_lifetime(ledger, "name:disk0"), 0);
        assert_int_equal(ledger_lifetime(ledger, "name:disk3071"), 1);
}

/* ---- the file ---- */

static int read_text(const char *text, Ledger **ret)
{
        return json_read_ledger(text, strlen(text), ret);
}

static void test_other_releases(void **state)
{
        static const char *const texts[] = {
                "{}",
                "{\"schema\":2,\"disks\":{},\"runs\":3}",
                "{\"disks\":[1,null,{},{\"disk\":7},{\"disk\":\"\"}],\"runs\":[{},{\"id\":\"../x\"}]}",
                ("{\"disks\":[{\"disk\":\"a\",\"lifetime_bytes\":\"x\",\"last_end_at\":5,\"written\":[[],{}]}"
                 "]"
                 "}"),
        };
        Ledger *ledger = NULL;

        (void) state;
        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                assert_int_equal(read_text(texts[i], &ledger), 0);
                ledger = ledger_free(ledger);
        }
        assert_int_equal(read_text("{\"disks\":[{\"disk\":\"a\",\"lifetime_bytes\":9,\"new\":true}],\"x\":1}",
                                   &ledger),
                         0);
        assert_int_equal(ledger_lifetime(ledger, "a"), 9);
        ledger = ledger_free(ledger);
        assert_int_equal(read_text("[]", &ledger), -EBADMSG);
        assert_int_equal(read_text("", &ledger), -EBADMSG);
        assert_int_equal(read_text("{\"disks\":[", &ledger), -EBADMSG);
        assert_null(ledger);
}

/* Whatever a damaged file says, the ledger that comes of it holds. */
static void test_damaged(void **state)
{
        unsigned n_read = 0;

        (void) state;
        for (unsigned seed = 0; seed < seeds_of(3000); seed++) {
                _cleanup_(ledger_freep) Ledger *ledger = NULL, *back = NULL;
                int64_t now_ns = INT64_C(1800000000) * (int64_t) NS_PER_S;

                srandom(seed);
                memset(&model, 0, sizeof model);
                assert_int_equal(ledger_new(&ledger), 0);
                for (int i = 0; i < 20; i++) {
                        now_ns += random() % (60 * 60 * 1000) * (int64_t) NS_PER_MS;
                        step(&ledger, now_ns);
                }
                json_auto_t *document = json_ledger(ledger);
                _cleanup_free_ char *text = json_document(document, NULL);
                for (int n = (int) (random() % 3); n >= 0; n--)
                        text[(size_t) random() % strlen(text)] = "0129\"{}[],:-x\xff"[random() % 14];
                int r = json_read_ledger(text, strlen(text), &back);
                if (r < 0) {
                        assert_int_equal(r, -EBADMSG);
                        continue;
                }
                n_read++;
                ledger_tidy(back, now_ns);
                ledger_settle_lost(back, now_ns);
                for (size_t i = 0; i < back->n_disks; i++) {
                        (void) ledger_last_day(back, (const DiskKey *) &back->disks[i].key, 1, now_ns);
                        int64_t at_ns =
                                ledger_room_at(back, (const DiskKey *) &back->disks[i].key, 1, 0, now_ns);
                        assert_true(at_ns >= now_ns && (at_ns == INT64_MAX || at_ns <= now_ns + DAY));
                }
        }
        assert_true(n_read > seeds_of(500));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_random),         cmocka_unit_test(test_many),
                cmocka_unit_test(test_lost),           cmocka_unit_test(test_clock_set_back),
                cmocka_unit_test(test_merge),          cmocka_unit_test(test_many_disks),
                cmocka_unit_test(test_other_releases), cmocka_unit_test(test_damaged),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
