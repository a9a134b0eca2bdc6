/* SPDX-License-Identifier: Apache-2.0 */
/* Whose run decides, when it is stale, when the device has become worse: properties over random histories. */

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/standing.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N_SEEDS 5000
#define N_RUNS 40
#define NOW_NS (INT64_C(1793366045) * (int64_t) NS_PER_S)
#define HOUR_NS (3600 * NS_PER_S)

static uint64_t rng;

static uint64_t below(uint64_t n)
{
        rng ^= rng << 13;
        rng ^= rng >> 7;
        rng ^= rng << 17;
        return rng % n;
}

static void seed_random(uint64_t seed)
{
        rng = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
}

/* In [low, high), never on its edges. */
static double between(double low, double high)
{
        return low + (high - low) * ((double) below(1000000) + 0.5) / 1000000.5;
}

static StandingRun pass_of(unsigned number)
{
        StandingRun run = { .state = RUN_FINISHED,
                            .verdict = VERDICT_PASS,
                            .official = true,
                            .certifying = true,
                            .finished_real_ns = NOW_NS - (int64_t) HOUR_NS,
                            .profile = PROFILE_PROCEDURE,
                            .limits = limits_default(),
                            .place = { .device = "nvme0n1",
                                       .disks = 17,
                                       .disk = "wwid:eui.1",
                                       .firmware = "1.0",
                                       .filesystem = "xfs",
                                       .fs_uuid = "a-b" },
                            .value = { 1000, 2 } };

        (void) snprintf(run.id, sizeof run.id, "20261130T%06u-000000", number);
        (void) snprintf(run.profile.name, sizeof run.profile.name, "procedure");
        return run;
}

/* ---- whose run it is ---- */

static void make_history(StandingRun *runs, size_t n)
{
        static const char *const profiles[] = { "procedure", "quick", "mine" };

        for (size_t i = 0; i < n; i++) {
                runs[i] = pass_of((unsigned) i);
                runs[i].state = (RunState) below(_RUN_STATE_MAX + 1);
                runs[i].verdict = (Verdict) (1 + below(3));
                runs[i].official = below(3) == 0;
                (void) snprintf(runs[i].profile.name, sizeof runs[i].profile.name, "%s", profiles[below(3)]);
        }
}

static const StandingRun *stands(const StandingRun *runs, size_t n, const char *official)
{
        const StandingRun *standing = NULL;

        for (size_t i = 0; i < n; i++)
                if (standing_replaces(&runs[i], standing, official))
                        standing = &runs[i];
        return standing;
}

/* The rule, said in another way: the newest that ended by itself under the official profile, else the newest
 * that did under the one that was official then. */
static const StandingRun *rule(const StandingRun *runs, size_t n, const char *official)
{
        for (int former = 0; former < 2; former++)
                for (size_t i = n; i-- > 0;) {
                        bool itself = runs[i].state == RUN_FINISHED || runs[i].state == RUN_FAILED;
                        bool is_of = strcmp(runs[i].profile.name, official) == 0;

                        if (itself && (former ? runs[i].official : is_of))
                                return &runs[i];
                }
        return NULL;
}

static void test_which_run_stands(void **state)
{
        unsigned n_former = 0, n_none = 0;

        (void) state;
        for (uint64_t seed = 1; seed <= N_SEEDS; seed++) {
                StandingRun runs[N_RUNS];

                seed_random(seed);
                size_t n = below(8);
                make_history(runs, n + 1);
                const StandingRun *standing = stands(runs, n, "procedure");
                if (standing != rule(runs, n, "procedure"))
                        fail_msg("seed %" PRIu64 ": another run stands", seed);
                n_none += !standing;
                n_former += standing && standing_claim(standing, "procedure") == STANDING_FORMER;

                /* What was aborted, cut, or is of another profile never replaces it. */
                StandingRun *next = &runs[n];
                if (below(2)) {
                        next->state = below(2) ? RUN_ABORTED : RUN_RUNNING;
                } else {
                        (void) snprintf(next->profile.name, sizeof next->profile.name, "other");
                        next->official = false;
                }
                if (stands(runs, n + 1, "procedure") != standing)
                        fail_msg("seed %" PRIu64 ": it was replaced", seed);
                /* A run of the official profile that ends by itself always does, whatever its verdict. */
                *next = pass_of((unsigned) n);
                next->state = below(2) ? RUN_FINISHED : RUN_FAILED;
                next->verdict = (Verdict) (1 + below(3));
                if (stands(runs, n + 1, "procedure") != next)
                        fail_msg("seed %" PRIu64 ": it was not replaced", seed);
        }
        assert_true(n_former > N_SEEDS / 50 && n_none > N_SEEDS / 50);
}

/* ---- stale ---- */

static void check_stale(const StandingRun *run, const StandingNow *now, const char *wanted)
{
        Reasons reasons = { 0 };
        bool stale = standing_is_stale(run, now, &reasons);
        char codes[200] = "";

        for (size_t i = 0; i < reasons.n; i++) {
                size_t used = strlen(codes);

                (void) snprintf(codes + used, sizeof codes - used, "%s%s", used ? " " : "",
                                reason_to_string(reasons.items[i].code));
        }
        assert_string_equal(codes, wanted);
        assert_int_equal(stale, reasons.n > 0);
}

static void test_what_makes_it_stale(void **state)
{
        const StandingRun run = pass_of(1);
        const Limits limits = limits_default();
        Limits others = limits;
        Profile official = run.profile;
        StandingPlace place = run.place;
        StandingNow now = { .real_ns = NOW_NS,
                            .stale_after_ns = 2 * HOUR_NS,
                            .limits = &limits,
                            .official = &official,
                            .place = &place };

        (void) state;
        check_stale(&run, &now, "");
        now.real_ns = NOW_NS + 2 * (int64_t) HOUR_NS;
        check_stale(&run, &now, "too_old");
        now.real_ns = NOW_NS - 4 * (int64_t) HOUR_NS; /* a clock that is wrong */
        check_stale(&run, &now, "too_old");
        now.real_ns = run.finished_real_ns - (int64_t) NS_PER_S;
        check_stale(&run, &now, "");
        others.value[CRITERION_WRITE_LATENCY] = 10;
        others.pass_ratio = 0.8;
        now.limits = &others;
        check_stale(&run, &now, "limits_changed");
        now.limits = &limits;
        official.count = 100;
        check_stale(&run, &now, "profile_changed");
        official = run.profile;
        (void) snprintf(official.name, sizeof official.name, "quick");
        check_stale(&run, &now, "profile_changed");
        official = run.profile;
        place.disks = 18;
        (void) snprintf(place.firmware, sizeof place.firmware, "2.0"); /* of another disk: no news */
        check_stale(&run, &now, "device_changed");
        place.disks = run.place.disks;
        check_stale(&run, &now, "firmware_changed");
        place = run.place;
        (void) snprintf(place.filesystem, sizeof place.filesystem, "ext4");
        check_stale(&run, &now, "filesystem_changed");
        place = run.place;
        (void) snprintf(place.fs_uuid, sizeof place.fs_uuid, "c-d");
        check_stale(&run, &now, "filesystem_changed");
        place = run.place;
        (void) snprintf(place.device, sizeof place.device,
                        "nvme1n1"); /* the kernel counts anew at each boot */
        check_stale(&run, &now, "");
        now.place = NULL;
        check_stale(&run, &now, "");
        now.gone = "/db2 is not mounted. Mount it.";
        check_stale(&run, &now, "device_changed");
}

/* What one side does not know has not changed. */
static void test_what_is_not_known_has_not_changed(void **state)
{
        const StandingRun run = pass_of(1);
        const Limits limits = limits_default();

        (void) state;
        for (unsigned which = 0; which < 256; which++) {
                StandingRun then = run;
                StandingPlace place = run.place;
                Profile official = run.profile;
                const StandingNow now = { .real_ns = NOW_NS,
                                          .stale_after_ns = 2 * HOUR_NS,
                                          .limits = which & 1 ? &limits : NULL,
                                          .official = which & 2 ? &official : NULL,
                                          .place = &place };

                if (which & 4)
                        then.limits = (Limits){ .value = { NAN, NAN }, .pass_ratio = NAN };
                if (which & 8)
                        then.profile.name[0] = '\0';
                if (which & 16)
                        then.profile.block_size = 0;
                if (which & 32)
                        then.place = (StandingPlace){ 0 };
                if (which & 64)
                        place = (StandingPlace){ 0 };
                if (which & 128)
                        place.firmware[0] = place.fs_uuid[0] = '\0';
                check_stale(&then, &now, "");
        }
}

/* ---- degraded ---- */

static void make_past(StandingFigures *past, size_t n, double throughput, double latency, double noise)
{
        for (size_t i = 0; i < n; i++) {
                StandingRun run = pass_of((unsigned) (n - i));

                run.value[CRITERION_WRITE_THROUGHPUT] = throughput * between(1 - noise, 1 + noise);
                run.value[CRITERION_WRITE_LATENCY] = latency * between(1 - noise, 1 + noise);
                run.verdict = below(4) ? VERDICT_PASS : VERDICT_FAIL;
                assert_true(standing_figures_of(&run, &past[i]));
        }
}

static bool degraded(const StandingRun *run, const StandingFigures *past, size_t n)
{
        Reasons reasons = { 0 };
        bool is = standing_is_degraded(run, past, n, &reasons);

        assert_int_equal(reasons.n, is);
        if (is)
                assert_int_equal(reasons.items[0].code, REASON_DEGRADED);
        return is;
}

static StandingRun next_run(double throughput, double latency)
{
        StandingRun run = pass_of(999);

        run.value[CRITERION_WRITE_THROUGHPUT] = throughput;
        run.value[CRITERION_WRITE_LATENCY] = latency;
        return run;
}

static void test_degraded(void **state)
{
        (void) state;
        for (uint64_t seed = 1; seed <= N_SEEDS; seed++) {
                StandingFigures past[STANDING_MAX_FIGURES];

                seed_random(seed);
                size_t n = 5 + below(STANDING_MAX_FIGURES - 4);
                double throughput = between(700, 5000), latency = between(2, 10), noise = between(0, 0.05);
                make_past(past, n, throughput, latency, noise);

                /* As it always was, better, or a little worse: well. */
                StandingRun run = next_run(throughput * between(0.86, 3), latency * between(0.1, 1.13));
                if (degraded(&run, past, n))
                        fail_msg("seed %" PRIu64 ": degraded without need", seed);
                /* Far worse: said, and of which figure. */
                run = next_run(throughput * between(0.3, 0.6), latency);
                if (!degraded(&run, past, n))
                        fail_msg("seed %" PRIu64 ": a throughput that fell", seed);
                run = next_run(throughput, latency * between(1.8, 3));
                if (!degraded(&run, past, n))
                        fail_msg("seed %" PRIu64 ": a latency that rose", seed);

                /* What is worse still is so as well. */
                run.value[CRITERION_WRITE_LATENCY] *= between(1, 2);
                assert_true(degraded(&run, past, n));
                /* The order of the past does not matter. */
                StandingFigures swapped = past[0];
                size_t other = below(n);
                past[0] = past[other];
                past[other] = swapped;
                assert_true(degraded(&run, past, n));
                /* Less than five on the same disks say nothing. */
                for (size_t i = 4; i < n; i++)
                        past[i].disks++;
                assert_false(degraded(&run, past, n));
        }
}

/* A few bad runs in the past neither hide a fall nor make one. */
static void test_the_median_bears_bad_runs(void **state)
{
        (void) state;
        for (uint64_t seed = 1; seed <= N_SEEDS; seed++) {
                StandingFigures past[STANDING_MAX_FIGURES];

                seed_random(seed);
                size_t n = 7 + below(STANDING_MAX_FIGURES - 6);
                make_past(past, n, 2000, 4, 0.03);
                for (size_t i = 0; i < n / 4; i++)
                        past[below(n)].value[below(N_CRITERIA)] *= between(0.05, 5);
                StandingRun run = next_run(2000 * between(0.9, 1.1), 4 * between(0.9, 1.1));
                if (degraded(&run, past, n))
                        fail_msg("seed %" PRIu64 ": degraded without need", seed);
                run = next_run(700, 4);
                if (!degraded(&run, past, n))
                        fail_msg("seed %" PRIu64 ": a fall to a third", seed);
        }
}

/* A device that always varied must vary more before it is said. */
static void test_a_restless_device(void **state)
{
        const double values[] = { 1000, 1500, 2000, 2500, 3000, 1200, 2800 };
        StandingFigures past[ELEMENTSOF(values)];

        (void) state;
        seed_random(1);
        make_past(past, ELEMENTSOF(values), 2000, 4, 0);
        for (size_t i = 0; i < ELEMENTSOF(values); i++)
                past[i].value[CRITERION_WRITE_THROUGHPUT] = values[i];
        StandingRun run = next_run(1000, 4);
        assert_false(degraded(&run, past, ELEMENTSOF(values)));
}

/* A twentieth of the limit is not felt: 0.05 ms more where 20 are allowed. */
static void test_small_latencies(void **state)
{
        StandingFigures past[10];

        (void) state;
        seed_random(1);
        make_past(past, 10, 2000, 0.10, 0.001);
        StandingRun run = next_run(2000, 0.15);
        assert_false(degraded(&run, past, 10));
        run = next_run(2000, 1.2);
        assert_true(degraded(&run, past, 10));
}

static void test_only_certifying_passes_count(void **state)
{
        StandingFigures past[10], figures;

        (void) state;
        seed_random(1);
        make_past(past, 10, 2000, 4, 0.01);
        StandingRun run = next_run(800, 4);
        assert_true(degraded(&run, past, 10));
        assert_false(degraded(&run, past, 4));
        run.certifying = false;
        assert_false(degraded(&run, past, 10));
        assert_false(standing_figures_of(&run, &figures));
        run.certifying = true;
        run.verdict = VERDICT_INCONCLUSIVE;
        assert_false(degraded(&run, past, 10));
        assert_false(standing_figures_of(&run, &figures));
        run = next_run(800, 4);
        run.place.disks = 0;
        assert_false(degraded(&run, past, 10));
        /* Itself, and what is newer, is no past. */
        run = next_run(800, 4);
        for (size_t i = 0; i < 10; i++)
                memcpy(past[i].id, run.id, sizeof run.id);
        assert_false(degraded(&run, past, 10));
}

/* ---- places ---- */

static Device device_of(DeviceNode *nodes, size_t n, char *filesystem)
{
        Device device = { .status = DEVICE_OK, .nodes = nodes, .n_nodes = n, .filesystem = filesystem };

        (void) snprintf(device.name, sizeof device.name, "%s", nodes[0].name);
        return device;
}

static void test_places(void **state)
{
        char xfs[] = "xfs";
        DeviceNode nodes[] = {
                { .name = "md0", .kind = DEVICE_RAID, .parent = -1 },
                { .name = "sda", .kind = DEVICE_DISK, .parent = 0, .wwid = "naa.1", .firmware = "B" },
                { .name = "sdb", .kind = DEVICE_DISK, .parent = 0, .wwid = "naa.2", .firmware = "A" },
        };
        DeviceNode renamed[] = { nodes[0], nodes[2], nodes[1] };
        const Device device = device_of(nodes, 3, xfs);
        Device other = device_of(renamed, 3, xfs);
        StandingPlace a, b;

        (void) state;
        (void) strcpy(renamed[1].name, "sda");
        (void) strcpy(renamed[2].name, "sdb");
        standing_place_of(&device, &a);
        standing_place_of(&other, &b);
        assert_true(a.disks != 0 && a.disks == b.disks);
        assert_string_equal(a.firmware, "A, B");
        assert_string_equal(b.firmware, "A, B");
        assert_string_equal(a.filesystem, "xfs");
        (void) strcpy(renamed[1].wwid, "naa.3");
        standing_place_of(&other, &b);
        assert_true(a.disks != b.disks);
        other.n_nodes = 0;
        standing_place_of(&other, &b);
        assert_true(b.disks == 0 && b.firmware[0] == '\0');
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_which_run_stands),
                cmocka_unit_test(test_what_makes_it_stale),
                cmocka_unit_test(test_what_is_not_known_has_not_changed),
                cmocka_unit_test(test_degraded),
                cmocka_unit_test(test_the_median_bears_bad_runs),
                cmocka_unit_test(test_a_restless_device),
                cmocka_unit_test(test_small_latencies),
                cmocka_unit_test(test_only_certifying_passes_count),
                cmocka_unit_test(test_places),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
