/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler over a made-up /proc and /sys: what is found where, what goes away, comes back, breaks. */

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/file.h"

#include "iostat-testing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "folder.h"

static char root[64];
static char procfs[80], sysfs[80];

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
        (void) st, (void) type, (void) ftw;
        return remove(path);
}

static int setup(void **state)
{
        (void) state;
        if (test_folder_make("sampler", root, sizeof root) < 0)
                return -1;
        (void) snprintf(procfs, sizeof procfs, "%s/proc", root);
        (void) snprintf(sysfs, sizeof sysfs, "%s/sys", root);
        return 0;
}

static int teardown(void **state)
{
        (void) state;
        return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Writes ROOT/PATH with its directories; TEXT NULL removes the tree PATH. */
static void put(const char *path, const char *text)
{
        _cleanup_free_ char *full = path_format("%s/%s", root, path);

        assert_non_null(full);
        if (!text) {
                (void) nftw(full, remove_one, 16, FTW_DEPTH | FTW_PHYS);
                return;
        }
        for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
                *slash = '\0';
                assert_true(mkdir(full, 0755) == 0 || errno == EEXIST);
                *slash = '/';
        }
        assert_int_equal(write_file_atomic_at(AT_FDCWD, full, text, strlen(text), 0644), 0);
}

static void clear(void)
{
        put("proc", NULL);
        put("sys", NULL);
}

static Sampler *sampler_of(const char *const *names, size_t n)
{
        Sampler *sampler = NULL;

        assert_int_equal(sampler_new(&sampler, procfs, sysfs, names, n), 0);
        return sampler;
}

static void test_names(void **state)
{
        static const char *const bad[] = {
                "",    ".",      "..",
                "a/b", "../sda", "a_name_that_takes_more_than_the_room_a_device_name_may_take_here"
        };
        const char *many[65];
        Sampler *sampler = NULL;

        (void) state;
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_int_equal(sampler_new(&sampler, procfs, sysfs, &bad[i], 1), -EINVAL);
        for (size_t i = 0; i < ELEMENTSOF(many); i++)
                many[i] = "sda";
        assert_int_equal(sampler_new(&sampler, procfs, sysfs, many, 65), -EINVAL);
        assert_int_equal(sampler_new(&sampler, procfs, sysfs, many, 0), -EINVAL);
        assert_null(sampler);
        assert_int_equal(sampler_new(&sampler, procfs, sysfs, many, 64), 0);
        sampler_freep(&sampler);
        assert_null(sampler);
}

static void test_places(void **state)
{
        const char *sda = "sda", *slash = "cciss!c0d0";
        Snapshot s;

        (void) state;
        clear();
        _cleanup_(sampler_freep) Sampler *sampler = sampler_of(&sda, 1);
        _cleanup_(sampler_freep) Sampler *with_slash = sampler_of(&slash, 1);
        sampler_read(sampler, &s);
        assert_int_equal(s.gap, GAP_ABSENT);

        put("proc/diskstats", "8 0 sda 3 0 0 0 0 0 0 0 0 0 0\n"
                              "garbage\n"
                              "104 0 cciss/c0d0 4 0 0 0 0 0 0 0 0 0 0");
        sampler_read(sampler, &s);
        assert_int_equal(s.gap, GAP_NONE);
        assert_int_equal(s.counters.r_ios, 3);
        assert_int_equal(s.major, 8);
        sampler_read(with_slash, &s);
        assert_int_equal(s.gap, GAP_NONE);
        assert_int_equal(s.counters.r_ios, 4);
        assert_int_equal(s.major, 104);

        put("sys/block/sda/stat", "2 0 0 0 0 0 0 0 0 0 0\n");
        sampler_read(sampler, &s);
        assert_int_equal(s.counters.r_ios, 2);
        put("sys/class/block/sda/stat", "1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n");
        put("sys/class/block/sda/dev", "8:16\n");
        put("sys/class/block/sda/diskseq", "42\n");
        sampler_read(sampler, &s);
        assert_int_equal(s.gap, GAP_NONE);
        assert_int_equal(s.counters.r_ios, 1);
        assert_int_equal(s.counters.n_fields, 17);
        assert_int_equal(s.minor, 16);
        assert_int_equal(s.diskseq, 42);
        put("sys/class/block/cciss!c0d0/stat", "5 0 0 0 0 0 0 0 0 0 0\n");
        sampler_read(with_slash, &s);
        assert_int_equal(s.counters.r_ios, 5);

        /* A partition has its disk's number. */
        const char *sda1 = "sda1";
        _cleanup_(sampler_freep) Sampler *partition = sampler_of(&sda1, 1);
        put("sys/class/block/sda1/stat", "6 0 0 0 0 0 0 0 0 0 0\n");
        put("sys/class/block/diskseq", "43\n"); /* where "sda1/.." leads in this tree without links */
        sampler_read(partition, &s);
        assert_int_equal(s.diskseq, 0);
        put("sys/class/block/sda1/partition", "1\n");
        sampler_read(partition, &s);
        assert_int_equal(s.diskseq, 43);
}

static void test_life(void **state)
{
        const char *name = "sda";
        Snapshot a, b, c;
        Delta d;

        (void) state;
        clear();
        _cleanup_(sampler_freep) Sampler *sampler = sampler_of(&name, 1);
        uint64_t before_ns = clock_ns(CLOCK_MONOTONIC), boot_ns = clock_ns(CLOCK_BOOTTIME);
        int64_t real_ns = (int64_t) clock_ns(CLOCK_REALTIME);
        put("sys/class/block/sda/stat", "1 0 0 0 10 0 80 4 0 0 0\n");
        put("sys/class/block/sda/diskseq", "1\n");
        sampler_read(sampler, &a);
        put("sys/class/block/sda/stat", "1 0 0 0 30 0 240 8 0 0 0\n");
        sampler_read(sampler, &b);
        assert_int_equal(delta_compute(&a, &b, &d), GAP_NONE);
        assert_int_equal(d.w_ios, 20);
        assert_true(a.mono_ns >= before_ns && b.mono_ns > a.mono_ns &&
                    b.mono_ns <= clock_ns(CLOCK_MONOTONIC));
        assert_true(a.boot_ns + 1000000 >= boot_ns && b.boot_ns > a.boot_ns);
        assert_true(a.real_ns + 1000000 >= real_ns && a.real_ns <= real_ns + (int64_t) (60 * NS_PER_S));
        assert_true(a.bracket_ns > 0 && a.bracket_ns < 60 * NS_PER_S);

        put("sys/class/block/sda/diskseq", "2\n");
        sampler_read(sampler, &c);
        assert_int_equal(delta_compute(&b, &c, &d), GAP_REPLACED);
        put("sys/class/block/sda", NULL);
        sampler_read(sampler, &a);
        assert_int_equal(delta_compute(&c, &a, &d), GAP_ABSENT);
        put("sys/class/block/sda/stat", "1 0 0 0 10 0 80 4 0 0 0\n");
        sampler_read(sampler, &b);
        assert_int_equal(delta_compute(&a, &b, &d), GAP_RETURNED);
        sampler_read(sampler, &c);
        assert_int_equal(delta_compute(&b, &c, &d), GAP_NONE);

        static const char *const broken[] = { "", "\n", "1 2 3 4\n", "1 2 3 4 5 6 7 8 9 10 x\n" };
        for (size_t i = 0; i < ELEMENTSOF(broken); i++) {
                put("sys/class/block/sda/stat", broken[i]);
                sampler_read(sampler, &a);
                assert_int_equal(delta_compute(&c, &a, &d), GAP_UNREADABLE);
        }
        char huge[5000];
        memset(huge, '1', sizeof huge);
        huge[sizeof huge - 1] = '\0';
        put("sys/class/block/sda/stat", huge);
        sampler_read(sampler, &a);
        assert_int_equal(a.gap, GAP_UNREADABLE);
        put("sys/class/block/sda/stat", "1 0 0 0 10 0 80 4 0 0 0\n");
        put("sys/class/block/sda/diskseq", "18446744073709551616\n");
        sampler_read(sampler, &a);
        assert_int_equal(a.gap, GAP_UNREADABLE);
}

static void test_sum(void **state)
{
        static const char *const names[] = { "sda", "sdb", "sdc" };
        Snapshot a, b;
        Delta d;

        (void) state;
        clear();
        _cleanup_(sampler_freep) Sampler *sampler = sampler_of(names, 3);
        put("sys/class/block/sda/stat",
            "1 0 8 4294967290 10 0 80 4294967290 1 4294967290 4294967290 0 0 0 0\n");
        put("sys/class/block/sdb/stat", "2 0 16 5 20 0 160 50 2 5 5 0 0 0 0 0 0\n");
        put("sys/class/block/sdc/stat", "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n");
        sampler_read(sampler, &a);
        assert_int_equal(a.gap, GAP_NONE);
        assert_int_equal(a.counters.r_ios, 3);
        assert_int_equal(a.counters.w_sectors, 240);
        assert_int_equal(a.counters.in_flight, 3);
        assert_int_equal(a.counters.n_fields, 15);

        /* One row's milliseconds wrap: 10 + 6 = 16 ms. The sum of the others goes on. */
        put("sys/class/block/sda/stat", "1 0 8 4294967290 12 0 96 4 0 4294967290 4294967290 0 0 0 0\n");
        put("sys/class/block/sdb/stat", "2 0 16 5 21 0 168 56 0 5 5 0 0 0 0 0 0\n");
        sampler_read(sampler, &b);
        assert_int_equal(delta_compute(&a, &b, &d), GAP_NONE);
        assert_int_equal(d.w_ios, 3);
        assert_int_equal(d.w_ms, 16);

        /* One row falls back by less than the other grows: the sum grows, and is worth nothing. */
        put("sys/class/block/sda/stat", "1 0 8 4294967290 11 0 88 4 0 4294967290 4294967290 0 0 0 0\n");
        put("sys/class/block/sdb/stat", "2 0 16 5 900 0 7200 66 0 5 5 0 0 0 0 0 0\n");
        sampler_read(sampler, &a);
        assert_true(a.counters.w_ios > b.counters.w_ios);
        assert_int_equal(delta_compute(&b, &a, &d), GAP_RESET);
        sampler_read(sampler, &b);
        assert_int_equal(delta_compute(&a, &b, &d), GAP_NONE);

        put("sys/class/block/sdb/diskseq", "7\n");
        sampler_read(sampler, &a);
        assert_int_equal(delta_compute(&b, &a, &d), GAP_REPLACED);
        put("sys/class/block/sdc", NULL);
        sampler_read(sampler, &b);
        assert_int_equal(delta_compute(&a, &b, &d), GAP_ABSENT);
        put("sys/class/block/sdc/stat", "0 0 0 0 0 0 0 0 -1 0 0 0 0 0 0 0 0\n");
        sampler_read(sampler, &a);
        assert_int_equal(delta_compute(&b, &a, &d), GAP_RETURNED);
        sampler_read(sampler, &b);
        assert_int_equal(delta_compute(&a, &b, &d), GAP_NONE);
        assert_true(d.in_flight_suspect);
        put("sys/class/block/sdc/stat", "0 0\n");
        sampler_read(sampler, &a);
        assert_int_equal(delta_compute(&b, &a, &d), GAP_UNREADABLE);
}

/* Random histories of several rows: the sum's delta is the sum of what was added, as long as nothing broke.
 */
static void test_sum_random(void **state)
{
        static const char *const names[] = { "sda", "sdb", "sdc", "sdd" };
        uint64_t seed = 99, rng = seed, truth[4][17] = { 0 };
        unsigned kept = 0;
        Snapshot previous = { 0 };

        (void) state;
        clear();
        _cleanup_(sampler_freep) Sampler *sampler = sampler_of(names, 4);
        for (size_t i = 0; i < 4; i++)
                for (size_t f = 0; f < 17; f++)
                        truth[i][f] = UINT32_MAX - random_below(&rng, 3000);
        for (int step = 0; step < 300; step++) {
                uint64_t w_ios = 0, w_ms = 0;
                bool broken = false;

                for (size_t i = 0; i < 4; i++) {
                        char text[512], path[64];
                        uint64_t ios = random_below(&rng, 50), ms = random_below(&rng, 20 * (ios + 1));

                        if (random_below(&rng, 40) == 0 && step > 0) {
                                truth[i][4] -= 1;
                                broken = true;
                        } else {
                                truth[i][4] += ios;
                                w_ios += ios;
                        }
                        truth[i][7] += ms;
                        w_ms += ms;
                        truth[i][8] = 0;
                        size_t n = print_fields(text, sizeof text, truth[i], 17);
                        assert_true(n < sizeof text);
                        (void) snprintf(path, sizeof path, "sys/class/block/%s/stat", names[i]);
                        put(path, text);
                }
                Snapshot now;
                Delta d;
                sampler_read(sampler, &now);
                Gap gap = delta_compute(step > 0 ? &previous : NULL, &now, &d);
                previous = now;
                if (step == 0)
                        continue;
                if (gap != (broken ? GAP_RESET : GAP_NONE))
                        fail_msg("seed %" PRIu64 " step %d: %s", seed, step, gap_to_string(gap));
                if (gap != GAP_NONE)
                        continue;
                kept++;
                assert_int_equal(d.w_ios, w_ios);
                assert_int_equal(d.w_ms, w_ms);
        }
        assert_true(kept > 200 && kept < 299);
}

/* This machine's own devices, where there are any: descriptors that stay open, twice. */
static void test_real(void **state)
{
        (void) state;
        _cleanup_closedir_ DIR *dir = opendir("/sys/class/block");
        if (!dir) {
                skip();
                return;
        }
        for (struct dirent *entry; (entry = readdir(dir));) {
                const char *name = entry->d_name;
                Sampler *sampler = NULL;
                Snapshot s[3];
                Delta d;

                if (name[0] == '.')
                        continue;
                assert_int_equal(sampler_new(&sampler, "/proc", "/sys", &name, 1), 0);
                for (size_t i = 0; i < ELEMENTSOF(s); i++)
                        sampler_read(sampler, &s[i]);
                sampler_freep(&sampler);
                for (size_t i = 1; i < ELEMENTSOF(s); i++) {
                        /* A device may come or go, or be replaced, while this runs; and two reads may be as
                         * close as the clocks are exact. */
                        Gap gap = delta_compute(&s[i - 1], &s[i], &d);
                        if (gap != GAP_NONE && gap != GAP_ABSENT && gap != GAP_RETURNED &&
                            gap != GAP_REPLACED && gap != GAP_CLOCK)
                                fail_msg("%s: %s", name, gap_to_string(gap));
                        if (gap == GAP_NONE)
                                assert_true(s[i].counters.n_fields >= 11);
                }
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_names), cmocka_unit_test(test_places),     cmocka_unit_test(test_life),
                cmocka_unit_test(test_sum),   cmocka_unit_test(test_sum_random), cmocka_unit_test(test_real),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
