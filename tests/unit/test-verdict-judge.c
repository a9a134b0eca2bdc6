/* SPDX-License-Identifier: Apache-2.0 */
/* The judge of runs: the two published rows, each end and each doubt, boundaries, and what must hold for any
 * facts whatever. */

#include "tierprobe/clock.h"
#include "tierprobe/verdict.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MAX_READINGS 90

/* A run under construction: a steady device by default, with a snapshot a second. */
typedef struct Run {
        Reading readings[MAX_READINGS];
        RunFacts facts;
        Surroundings surroundings;
} Run;

static void run_start(Run *run)
{
        memset(run, 0, sizeof *run);
        run->readings[0].row = (Snapshot){ .mono_ns = 1000 * NS_PER_S,
                                           .boot_ns = 1000 * NS_PER_S,
                                           .major = 8,
                                           .counters = { .n_fields = 17 } };
        run->facts = (RunFacts){ .end = TEST_COMPLETE,
                                 .device_name = "sdc",
                                 .readings = run->readings,
                                 .n_readings = 1,
                                 .block_size = 1 << 20,
                                 .streams = 1,
                                 .background_write_mb_per_s = NAN };
}

/* An interval of NS with so many writes, sectors and milliseconds, all of them ours. */
static Snapshot *run_add(Run *run, uint64_t ns, uint64_t ios, uint64_t sectors, uint64_t ms)
{
        assert_true(run->facts.n_readings < MAX_READINGS);
        Snapshot *last = &run->readings[run->facts.n_readings - 1].row;
        Snapshot *next = &run->readings[run->facts.n_readings++].row;

        *next = *last;
        next->gap = GAP_NONE;
        next->mono_ns += ns;
        next->boot_ns += ns;
        next->counters.w_ios += ios;
        next->counters.w_sectors += sectors;
        next->counters.w_ms += (uint32_t) ms;
        next->counters.queue_ms += (uint32_t) ms;
        run->facts.bytes_written += sectors * SECTOR_BYTES;
        run->facts.bytes_total = run->facts.bytes_written;
        return next;
}

static void run_add_seconds(Run *run, unsigned n, uint64_t ios, uint64_t sectors, uint64_t ms)
{
        for (unsigned i = 0; i < n; i++)
                run_add(run, NS_PER_S, ios, sectors, ms);
}

/* All that was written was so in the window. */
static void run_end(Run *run)
{
        if (run->facts.n_readings > 1)
                run->readings[run->facts.n_readings - 1].written_bytes = run->facts.bytes_written;
}

static Judgement judge(Run *run)
{
        Judgement j;

        run_end(run);
        const Limits limits = limits_default();
        judge_run(&limits, &run->facts, &j);
        return j;
}

/* The verdict, and its reasons in order, as one text: "fail: write_latency_high unsteady". */
static const char *outcome(const Judgement *j)
{
        static char text[1024];

        (void) snprintf(text, sizeof text, "%s", verdict_to_string(j->verdict));
        for (size_t i = 0; i < j->reasons.n; i++) {
                size_t at = strlen(text);
                (void) snprintf(text + at, sizeof text - at, "%s%s", i ? " " : ": ",
                                reason_to_string(j->reasons.items[i].code));
                assert_true(strlen(j->reasons.items[i].detail) > 20);
        }
        return text;
}

static void check(Run *run, const char *expected)
{
        Judgement j = judge(run);

        assert_string_equal(outcome(&j), expected);
}

static void expect_detail(const Judgement *j, ReasonCode code, const char *part)
{
        for (size_t i = 0; i < j->reasons.n; i++)
                if (j->reasons.items[i].code == code) {
                        if (!strstr(j->reasons.items[i].detail, part))
                                fail_msg("\"%s\" is not in \"%s\"", part, j->reasons.items[i].detail);
                        return;
                }
        fail_msg("no reason %s", reason_to_string(code));
}

static void test_published(void **state)
{
        Run run;

        (void) state;
        /* 12555 w/s, 803520 wkB/s, w_await 11.30 */
        run_start(&run);
        run_add_seconds(&run, 10, 12555, 803520 * 2, 141872);
        Judgement j = judge(&run);
        assert_string_equal(outcome(&j), "pass");
        assert_float_equal(j.criteria[CRITERION_WRITE_THROUGHPUT].value, 803.52, 1e-9);
        assert_float_equal(j.criteria[CRITERION_WRITE_LATENCY].value, 11.30, 0.005);
        assert_float_equal(j.measured.wkb_s, 803520, 1e-6);
        assert_float_equal(j.measured.w_s, 12555, 1e-9);
        assert_int_equal(j.samples_total, 8);
        assert_int_equal(j.samples_passing, 8);
        assert_float_equal(j.foreign_write_ratio, 0, 0);
        assert_true(j.criteria_known);

        /* 2786 w/s, 680715 wkB/s, w_await 53.85 */
        run_start(&run);
        run_add_seconds(&run, 10, 2786, 680715 * 2, 150026);
        j = judge(&run);
        assert_string_equal(outcome(&j), "fail: write_latency_high");
        assert_true(j.criteria[CRITERION_WRITE_THROUGHPUT].pass);
        assert_float_equal(j.criteria[CRITERION_WRITE_LATENCY].value, 53.85, 0.005);
        expect_detail(&j, REASON_WRITE_LATENCY_HIGH, "53.85 ms");
        expect_detail(&j, REASON_WRITE_LATENCY_HIGH, "20 ms");
}

static void test_boundaries(void **state)
{
        Run run;

        (void) state;
        run_start(&run);
        run_add_seconds(&run, 5, 1000, 1200000, 19999);
        check(&run, "pass"); /* exactly 600000 kB/s, 19.999 ms */

        run_start(&run);
        run_add_seconds(&run, 5, 1000, 1199999, 5000);
        check(&run, "fail: write_throughput_low");
        Judgement j = judge(&run);
        expect_detail(&j, REASON_WRITE_THROUGHPUT_LOW, "599.9995 MB/s");

        run_start(&run);
        run_add_seconds(&run, 5, 1000, 1200000, 20000);
        check(&run, "fail: write_latency_high"); /* exactly 20 ms */

        /* Intervals no clock would be so kind as to make: the quotient still is exact. */
        for (unsigned n = 1; n < 2000; n++) {
                run_start(&run);
                for (unsigned i = 0; i < 5; i++)
                        run_add(&run, n * UINT64_C(2500000) / 3 * 3, n * 7, n * UINT64_C(3000),
                                n * 7 * 20 - 1);
                if (n * UINT64_C(2500000) % 3 == 0)
                        check(&run, "pass");
        }
}

static void test_samples(void **state)
{
        Run run;

        (void) state;
        /* The straddling intervals at the edges do not count; a tick on the edge makes them whole. */
        run_start(&run);
        run_add(&run, NS_PER_S / 2, 10, 1000, 10);
        run_add_seconds(&run, 10, 2000, 2000000, 10000);
        run_add(&run, NS_PER_S / 2, 10, 1000, 10);
        Judgement j = judge(&run);
        assert_int_equal(j.samples_total, 10);
        assert_int_equal(j.samples_passing, 10);
        assert_string_equal(outcome(&j), "pass");
        run.facts.first_is_tick = run.facts.last_is_tick = true;
        j = judge(&run);
        assert_int_equal(j.samples_total, 12);
        assert_int_equal(j.samples_passing, 10);
        assert_string_equal(outcome(&j), "fail: unsteady");

        /* A tick at the very moment of the start: the same snapshot twice, no interval and no gap. */
        run_start(&run);
        run_add(&run, 0, 0, 0, 0);
        run_add_seconds(&run, 5, 2000, 2000000, 10000);
        run_add(&run, 0, 0, 0, 0);
        j = judge(&run);
        assert_string_equal(outcome(&j), "pass");
        assert_int_equal(j.samples_dropped, 0);
        assert_int_equal(j.samples_total, 5);

        /* 9 of 10 will do, 8 of 10 will not; the mean passes. */
        for (unsigned bad = 1; bad <= 2; bad++) {
                run_start(&run);
                run.facts.first_is_tick = run.facts.last_is_tick = true;
                run_add_seconds(&run, 10 - bad, 2000, 2000000, 10000);
                run_add_seconds(&run, bad, 200, 200000, 1000);
                check(&run, bad == 1 ? "pass" : "fail: unsteady");
        }
        j = judge(&run);
        assert_int_equal(j.samples_missing[CRITERION_WRITE_THROUGHPUT], 2);
        assert_int_equal(j.samples_missing[CRITERION_WRITE_LATENCY], 0);
        expect_detail(&j, REASON_UNSTEADY, "8 of 10");
        expect_detail(&j, REASON_UNSTEADY,
                      "First third 1000.0 MB/s, last third 400.0 MB/s, worst 100.0 MB/s");
        expect_detail(&j, REASON_UNSTEADY, "cliff");

        /* Of two samples none says that a device whose mean is good is unsteady. */
        for (unsigned n = 1; n <= 3; n++) {
                run_start(&run);
                run.facts.first_is_tick = run.facts.last_is_tick = true;
                run_add_seconds(&run, 1, 200, 200000, 1000);
                run_add_seconds(&run, n - 1, 6000, 6000000, 10000);
                check(&run, n == 1   ? "fail: write_throughput_low"
                            : n == 2 ? "inconclusive: too_few_samples"
                                     : "fail: unsteady");
        }

        /* Dips count for as long as they last: as many samples as you like, but less than a row of iostat. */
        run_start(&run);
        run.facts.first_is_tick = run.facts.last_is_tick = true;
        run.facts.interval_ns = NS_PER_S;
        for (unsigned i = 0; i < 40; i++)
                run_add(&run, NS_PER_S / 20, i % 3 ? 400 : 20, i % 3 ? 400000 : 20000, 400);
        j = judge(&run);
        assert_string_equal(outcome(&j), "pass: unsteady");
        expect_detail(&j, REASON_UNSTEADY, "14 of 40 samples");
        expect_detail(&j, REASON_UNSTEADY, "700 ms");
        for (unsigned i = 40; i < 80 && i < MAX_READINGS - 1; i++)
                run_add(&run, NS_PER_S / 20, i % 3 ? 400 : 20, i % 3 ? 400000 : 20000, 400);
        check(&run, "fail: unsteady");

        /* An interval in which nobody looked is none; what the mean misses is missed all the same. */
        run_start(&run);
        run.facts.first_is_tick = run.facts.last_is_tick = true;
        run.facts.interval_ns = NS_PER_S;
        run_add_seconds(&run, 5, 2000, 2000000, 10000);
        run_add(&run, 5 * NS_PER_S, 10000, 10000000, 50000);
        check(&run, "inconclusive: too_few_samples");
        expect_detail(&(Judgement){ .reasons = judge(&run).reasons }, REASON_TOO_FEW_SAMPLES,
                      "5.0 s of the 10.0 s");
        run.facts.interval_ns = 5 * NS_PER_S;
        check(&run, "pass");
        run_start(&run);
        run.facts.interval_ns = NS_PER_S;
        run_add_seconds(&run, 5, 200, 200000, 1000);
        run_add(&run, 5 * NS_PER_S, 1000, 1000000, 5000);
        check(&run, "fail: write_throughput_low");

        /* A second in which no write completed is a sample that fails. */
        run_start(&run);
        run.facts.first_is_tick = run.facts.last_is_tick = true;
        run_add_seconds(&run, 8, 3000, 3000000, 10000);
        run_add_seconds(&run, 2, 0, 0, 0);
        check(&run, "fail: unsteady");
}

static void test_too_few(void **state)
{
        Run run;

        (void) state;
        /* One slow sample of one, in a test whose mean passes, is no proof of an unsteady disk. */
        run_start(&run);
        run_add(&run, NS_PER_S, 3000, 3000000, 10000);
        run_add(&run, NS_PER_S / 10, 10, 1000, 10);
        run_add(&run, NS_PER_S / 10, 300, 300000, 1000);
        check(&run, "inconclusive: too_few_samples");

        for (unsigned n = 1; n <= 6; n++) {
                run_start(&run);
                run_add_seconds(&run, n, 2000, 2000000, 10000);
                check(&run, n < 5 ? "inconclusive: too_few_samples" : "pass");
        }
        /* With a single full sample a failure is still one. */
        run_start(&run);
        run_add_seconds(&run, 3, 200, 200000, 1000);
        check(&run, "fail: write_throughput_low");
        run_start(&run);
        check(&run, "inconclusive: too_few_samples");
        run.facts.n_readings = 0;
        run.facts.readings = NULL;
        check(&run, "inconclusive: too_few_samples");
        Judgement j = judge(&run);
        assert_true(isnan(j.criteria[0].value) && isnan(j.criteria[1].value) && isnan(j.elapsed_s));
        assert_false(j.criteria_known);
}

static void test_ends(void **state)
{
        Run run;

        (void) state;
        run_start(&run);
        run_add_seconds(&run, 6, 2000, 2000000, 10000);
        run.facts.end = TEST_ABORTED;
        run.facts.abort_detail = "Aborted by SIGINT";
        check(&run, "inconclusive: aborted");
        Judgement j = judge(&run);
        assert_float_equal(j.criteria[0].value, 1000, 1e-9); /* evidence all the same */
        expect_detail(&j, REASON_ABORTED, "SIGINT");

        run.facts.end = TEST_NO_SPACE;
        check(&run, "inconclusive: no_space");

        run.facts.end = TEST_NOT_STARTED;
        run.facts.start_reason = REASON_PATH_MISSING;
        run.facts.start_detail = "/db2/cache does not exist: make it, or mend the path.";
        check(&run, "inconclusive: path_missing");

        run.facts.end = TEST_TIME_LIMIT;
        run.facts.time_limit_ns = 6 * NS_PER_S;
        check(&run, "pass: truncated");

        run.facts.end = TEST_WRITE_ERROR;
        static const struct {
                int error;
                const char *expected;
        } errors[] = {
                { EIO, "fail: write_error" },
                { ENODEV, "fail: write_error" },
                { EROFS, "fail: write_error" },
                { EINVAL, "fail: write_error" },
                { 12345, "fail: write_error" },
                { ENOSPC, "inconclusive: no_space" },
                { EDQUOT, "inconclusive: throttled" },
                { ENOMEM, "inconclusive: aborted" },
                { EFBIG, "inconclusive: throttled" },
                { ETIMEDOUT, "fail: write_error" },
                { EACCES, "inconclusive: not_permitted" },
                { EUCLEAN, "fail: write_error" },
        };
        for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
                run.facts.write_errno = errors[i].error;
                check(&run, errors[i].expected);
        }
        run.facts.write_errno = EIO;
        run.facts.write_offset_bytes = 3200000000;
        j = judge(&run);
        expect_detail(&j, REASON_WRITE_ERROR, "3051.8 MiB");
        expect_detail(&j, REASON_WRITE_ERROR, "EIO");

        run_start(&run);
        run.facts.end = TEST_WRITE_ERROR;
        run.facts.write_errno = EINVAL;
        check(&run, "inconclusive: direct_io_unsupported");
}

static void test_gaps(void **state)
{
        static const struct {
                Gap gap;
                const char *expected;
        } gaps[] = {
                { GAP_ABSENT, "inconclusive: counters_reset" },
                { GAP_UNREADABLE, "inconclusive: counters_reset" },
                { GAP_SUSPENDED, "inconclusive: suspended" },
        };
        Run run;

        (void) state;
        for (size_t i = 0; i < sizeof gaps / sizeof gaps[0]; i++) {
                run_start(&run);
                run_add_seconds(&run, 4, 2000, 2000000, 10000);
                run_add(&run, NS_PER_S, 2000, 2000000, 10000)->gap = gaps[i].gap;
                run_add_seconds(&run, 4, 2000, 2000000, 10000);
                check(&run, gaps[i].expected);
        }
        /* Found by the difference: the counters fell, and the machine slept. The good intervals still speak.
         */
        run_start(&run);
        run_add_seconds(&run, 4, 2000, 2000000, 10000);
        run_add(&run, NS_PER_S, 0, 0, 0)->counters.w_ios -= 5000;
        run_add_seconds(&run, 4, 2000, 2000000, 10000);
        check(&run, "inconclusive: counters_reset");
        Judgement j = judge(&run);
        assert_int_equal(j.samples_dropped, 1);
        assert_float_equal(j.elapsed_s, 8, 1e-9);
        assert_float_equal(j.criteria[0].value, 1000, 1e-9);

        run_start(&run);
        run_add_seconds(&run, 4, 2000, 2000000, 10000);
        run_add(&run, NS_PER_S, 2000, 2000000, 10000)->boot_ns += 3600 * NS_PER_S;
        run_add_seconds(&run, 4, 2000, 2000000, 10000);
        check(&run, "inconclusive: suspended");

        /* A failed write outweighs what its device's row did. */
        run.facts.end = TEST_WRITE_ERROR;
        run.facts.write_errno = ENODEV;
        check(&run, "fail: write_error");

        /* Forward, but absurdly: 1 TB within a second. */
        run_start(&run);
        run_add_seconds(&run, 4, 2000, 2000000, 10000);
        run_add(&run, NS_PER_S, 2000, 2000000000, 10000);
        check(&run, "inconclusive: counters_reset");
        /* Each write took an hour, in a test of six seconds. */
        run_start(&run);
        run_add_seconds(&run, 6, 100, 2000000, 360000000);
        check(&run, "inconclusive: counters_reset");
}

static void test_doubts(void **state)
{
        Run run;

        (void) state;
        run_start(&run);
        run_add_seconds(&run, 6, 2000, 2000000, 10000);
        run.facts.iostats_disabled = true;
        check(&run, "inconclusive: counters_disabled");

        /* No time at all over thousands of large writes. */
        run_start(&run);
        run_add_seconds(&run, 6, 1000, 2000000, 0);
        check(&run, "inconclusive: counters_untimed");
        Judgement j = judge(&run);
        assert_true(isnan(j.criteria[CRITERION_WRITE_LATENCY].value));
        /* Too slow is too slow, timed or not. */
        run_start(&run);
        run_add_seconds(&run, 6, 100, 200000, 0);
        check(&run, "fail: write_throughput_low counters_untimed");
        /* 90 quick writes may honestly sum up to less than a millisecond. */
        run_start(&run);
        run_add_seconds(&run, 6, 15, 2000000, 0);
        check(&run, "pass");

        /* The device saw less than nine tenths: another took them. */
        run_start(&run);
        run_add_seconds(&run, 6, 2000, 2000000, 10000);
        run.facts.bytes_written = run.facts.bytes_written * 10 / 9;
        check(&run, "pass");
        run.facts.bytes_written += 1 << 20;
        check(&run, "inconclusive: bytes_mismatch");
        run.facts.compresses = true;
        j = judge(&run);
        expect_detail(&j, REASON_BYTES_MISMATCH, "pattern = random");

        run_start(&run);
        run_add_seconds(&run, 6, 0, 0, 0);
        check(&run, "inconclusive: no_write_completed");
        run.facts.bytes_written = run.facts.bytes_total = 1000000;
        check(&run, "inconclusive: no_write_completed bytes_mismatch");

        /* A device that hung for good. */
        run_start(&run);
        run_add_seconds(&run, 6, 0, 0, 0);
        run.facts.end = TEST_TIME_LIMIT;
        run.facts.stall_limit_ns = 5 * NS_PER_S;
        run.facts.longest_stall_ns = 6 * NS_PER_S;
        check(&run, "inconclusive: no_write_completed stalled truncated");
        run.facts.longest_stall_ns = 5 * NS_PER_S;
        check(&run, "inconclusive: no_write_completed truncated");
}

static void test_foreign(void **state)
{
        Run run;

        (void) state;
        /* Half of what the slow device wrote was not ours. */
        run_start(&run);
        run_add_seconds(&run, 6, 500, 500000, 1000);
        run.facts.bytes_written /= 2;
        run.facts.background_write_mb_per_s = 125;
        check(&run, "inconclusive: foreign_io write_throughput_low");
        Judgement j = judge(&run);
        assert_float_equal(j.foreign_write_ratio, 0.5, 1e-9);
        expect_detail(&j, REASON_FOREIGN_IO, "50 %");
        expect_detail(&j, REASON_FOREIGN_IO, "125.0 MB/s");
        /* Journal and metadata: no excuse. */
        run.facts.bytes_written = (uint64_t) ((double) 6 * 500000 * 512 * 0.95);
        check(&run, "fail: write_throughput_low");
        /* Even a lot of it, where the file system is known to write that much: 256 KiB for each of 1 MiB. */
        run.facts.block_size = 1 << 20;
        run.facts.bytes_written = (uint64_t) ((double) 6 * 500000 * 512 * 0.80);
        check(&run, "inconclusive: foreign_io write_throughput_low");
        run.facts.metadata_bytes_per_block = 256 << 10;
        check(&run, "fail: write_throughput_low");
        j = judge(&run);
        assert_float_equal(j.foreign_write_ratio, 0, 0.001);
        /* What is beyond that is foreign all the same. */
        run.facts.bytes_written /= 2;
        check(&run, "inconclusive: foreign_io write_throughput_low");
        assert_float_equal(judge(&run).foreign_write_ratio, 0.5, 0.001);
        /* A device that passes under foreign load passes. */
        run_start(&run);
        run_add_seconds(&run, 6, 3000, 3000000, 10000);
        run.facts.bytes_written /= 2;
        check(&run, "pass");
        /* But two copies of each byte are neither foreign nor throughput. */
        run.facts.rows_summed = true;
        check(&run, "pass");
        j = judge(&run);
        assert_float_equal(j.criteria[0].value, 750, 1e-9);
        assert_true(isnan(j.foreign_write_ratio));
        run_start(&run);
        run_add_seconds(&run, 6, 2000, 2000000, 10000);
        run.facts.bytes_written /= 2;
        run.facts.rows_summed = true;
        check(&run, "fail: write_throughput_low");
}

/* ---- whose fault it is ---- */

static void test_blame(void **state)
{
        Surroundings around = { .processor = 0.1, .waiting = 0, .steal = 0, .call_ms = 10 };
        Run run;

        (void) state;
        /* 100 MB/s by a device that is idle: the limit in front of it is named, and no faster device asked
         * for. */
        run_start(&run);
        run_add_seconds(&run, 6, 200, 200000, 100);
        for (size_t i = 1; i < run.facts.n_readings; i++)
                run.readings[i].row.counters.io_ms = (uint32_t) (i * 24);
        run.facts.surroundings = &around;
        check(&run, "fail: write_throughput_low");
        Judgement j = judge(&run);
        expect_detail(&j, REASON_WRITE_THROUGHPUT_LOW, "Look above the device");
        expect_detail(&j, REASON_WRITE_THROUGHPUT_LOW, "device busy 2 %");
        expect_detail(&j, REASON_WRITE_THROUGHPUT_LOW, "a write call 10.00 ms");
        assert_null(strstr(j.reasons.items[0].detail, "faster device"));
        around.limit = "io.max in /sys/fs/cgroup/db/io.max is 8:0 wbps=104857600";
        check(&run, "inconclusive: throttled write_throughput_low");
        j = judge(&run);
        expect_detail(&j, REASON_THROTTLED, "/sys/fs/cgroup/db/io.max is 8:0 wbps=104857600");

        /* A latency of the device's own is its own fault, unless the limit shows in it. */
        run_start(&run);
        run_add_seconds(&run, 6, 200, 200000, 20000);
        run.facts.surroundings = &around;
        check(&run, "fail: write_throughput_low write_latency_high");
        around.limit_in_latency = true;
        check(&run, "inconclusive: throttled write_throughput_low write_latency_high");

        /* The writers had no processor for most of the time; for a little of it that explains nothing. */
        run_start(&run);
        run_add_seconds(&run, 6, 200, 200000, 100);
        around = (Surroundings){ .processor = 0.1, .waiting = 0.7, .steal = 0.15, .call_ms = 10 };
        run.facts.surroundings = &around;
        check(&run, "inconclusive: throttled write_throughput_low");
        around.waiting = 0.1;
        check(&run, "fail: write_throughput_low");
        around.state = "md0 is being rebuilt, which takes a part of its speed";
        j = judge(&run);
        expect_detail(&j, REASON_WRITE_THROUGHPUT_LOW, "md0 is being rebuilt");

        /* Heat explains what began well. */
        run_start(&run);
        run_add_seconds(&run, 8, 3000, 3000000, 10000);
        run_add_seconds(&run, 8, 200, 200000, 1000);
        around = (Surroundings){ .processor = NAN, .waiting = NAN, .steal = NAN, .call_ms = NAN };
        around.heat = "nvme0n1 reached 84 C, its limit is 83 C";
        run.facts.surroundings = &around;
        check(&run, "fail: unsteady");
        j = judge(&run);
        expect_detail(&j, REASON_UNSTEADY, "reached 84 C");

        /* Every sentence gives one piece of advice: no verdict says both more and fewer writers. */
        run_start(&run);
        run_add_seconds(&run, 6, 2000, 2000000, 100000);
        run.facts.streams = 16;
        j = judge(&run);
        expect_detail(&j, REASON_WRITE_LATENCY_HIGH, "fewer writers at once than 16");

        /* Written twice on purpose: not foreign, and said. */
        run_start(&run);
        run_add_seconds(&run, 6, 500, 500000, 1000);
        run.facts.bytes_written /= 2;
        run.facts.journals_data = true;
        check(&run, "fail: write_throughput_low double_writes");
        assert_float_equal(judge(&run).foreign_write_ratio, 0, 0.001);
        run_start(&run);
        run_add_seconds(&run, 6, 2000, 2000000, 1000);
        run.facts.cache_in_front = true;
        check(&run, "pass: cache_in_front");
}

/* ---- any facts whatever ---- */

static uint64_t rng;

static uint64_t any(uint64_t below)
{
        rng = rng * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return below ? (rng >> 33) % below : 0;
}

static bool once_in(uint64_t n)
{
        return any(n) == 0;
}

static void run_any(Run *run)
{
        uint64_t ios = 1 + any(4000), per_io = 1 + any(2048), await = any(60);
        unsigned n = (unsigned) any(16);

        run_start(run);
        run->facts.first_is_tick = once_in(3);
        run->facts.last_is_tick = once_in(3);
        for (unsigned i = 0; i < n; i++) {
                uint64_t now = once_in(6) ? any(ios + 1) : ios;
                Snapshot *s = run_add(run, once_in(8) ? any(NS_PER_S) : NS_PER_S, now, now * per_io,
                                      once_in(20) ? 0 : now * await);
                if (once_in(60))
                        s->gap = (Gap) any(_GAP_MAX);
                if (once_in(60))
                        s->counters.w_ios = any(100);
                if (once_in(60))
                        s->boot_ns += any(NS_PER_S);
                if (once_in(60))
                        s->counters.w_sectors += UINT64_C(1) << any(63);
                if (once_in(100))
                        s->mono_ns = any(2000) * NS_PER_S;
        }
        RunFacts *f = &run->facts;
        if (once_in(4))
                f->bytes_written = f->bytes_written * any(200) / 100;
        if (once_in(3))
                f->end = (TestEnd) any(_TEST_END_MAX);
        f->start_reason = (ReasonCode) any(_REASON_MAX);
        f->write_errno = (int) any(140);
        f->write_offset_bytes = once_in(2) ? 0 : any(1 << 30);
        f->iostats_disabled = once_in(20);
        f->cache_in_front = once_in(4);
        f->journals_data = once_in(6);
        run->surroundings =
                (Surroundings){ .limit = once_in(3) ? "io.max in /sys/fs/cgroup/a is 8:0 wbps=1" : NULL,
                                .limit_in_latency = once_in(3),
                                .state = once_in(3) ? "md0 is being rebuilt" : NULL,
                                .heat = once_in(3) ? "nvme0n1 reached 84 C" : NULL,
                                .processor = once_in(2) ? NAN : (double) any(101) / 100,
                                .waiting = once_in(2) ? NAN : (double) any(101) / 100,
                                .steal = once_in(2) ? NAN : (double) any(101) / 100,
                                .call_ms = once_in(2) ? NAN : (double) any(100) };
        f->surroundings = once_in(3) ? &run->surroundings : NULL;
        f->compresses = once_in(4);
        f->rows_summed = once_in(6);
        f->stall_limit_ns = once_in(3) ? NS_PER_S : 0;
        f->longest_stall_ns = any(3 * NS_PER_S);
        f->background_write_mb_per_s = once_in(2) ? NAN : (double) any(1000);
        f->interval_ns = once_in(2) ? 0 : NS_PER_S / (once_in(2) ? 1 : 1 + any(9));
        f->writers_ns = once_in(2) ? 0 : (1 + any(20)) * NS_PER_S;
        f->unseen_ns = once_in(4) ? any(f->writers_ns / 4 + 1) : 0;
        if (once_in(8))
                f->device_name = NULL;
}

static void check_invariants(const Limits *limits, const RunFacts *facts, const Judgement *j)
{
        static const ReasonCode remarks[] = { REASON_TRUNCATED, REASON_STALLED, REASON_CACHE_IN_FRONT,
                                              REASON_DOUBLE_WRITES, REASON_UNSTEADY };
        const Criterion *throughput = &j->criteria[0], *latency = &j->criteria[1];
        size_t n_remarks = 0;

        for (size_t i = 0; i < (j->verdict == VERDICT_PASS ? 5 : 4); i++)
                n_remarks += reasons_have(&j->reasons, remarks[i]);
        assert_true(j->samples_passing <= j->samples_total);
        for (size_t i = 0; i < N_CRITERIA; i++)
                assert_true(j->samples_missing[i] <= j->samples_total);
        assert_true(j->samples_total + j->samples_dropped < facts->n_readings || facts->n_readings == 0);
        assert_true(isnan(throughput->value) ||
                    throughput->pass == (throughput->value >= limits->value[CRITERION_WRITE_THROUGHPUT]));
        assert_true(isnan(latency->value) ||
                    latency->pass == (latency->value < limits->value[CRITERION_WRITE_LATENCY]));
        assert_true(isnan(j->foreign_write_ratio) ||
                    (j->foreign_write_ratio >= 0 && j->foreign_write_ratio <= 1));
        assert_false(isinf(j->app_write_mb_per_s) || isinf(throughput->value) || isinf(latency->value));
        switch (j->verdict) {
        case VERDICT_PASS:
                assert_int_equal(j->reasons.n, n_remarks);
                assert_true(throughput->pass && latency->pass);
                assert_false(isnan(throughput->value) || isnan(latency->value) || isnan(j->elapsed_s) ||
                             isnan(j->measured.wkb_s) || isnan(j->measured.w_await));
                assert_true(j->samples_total >= MIN_SAMPLES_TO_PASS);
                /* Dips that iostat would not show as a row are remarked on. */
                assert_int_equal(ratio_met(limits, j->samples_passing, j->samples_total),
                                 !reasons_have(&j->reasons, REASON_UNSTEADY));
                assert_int_equal(j->samples_dropped, 0);
                assert_true(facts->end == TEST_COMPLETE || facts->end == TEST_TIME_LIMIT);
                break;
        case VERDICT_FAIL:
                if (facts->end == TEST_WRITE_ERROR)
                        assert_true(reasons_have(&j->reasons, REASON_WRITE_ERROR));
                else
                        assert_true(!throughput->pass || !latency->pass ||
                                    (reasons_have(&j->reasons, REASON_UNSTEADY) &&
                                     j->samples_total >= MIN_SAMPLES_TO_PASS));
                assert_true(j->reasons.n > n_remarks);
                break;
        case VERDICT_INCONCLUSIVE:
                assert_true(j->reasons.n > n_remarks || facts->end == TEST_NOT_STARTED);
                assert_true(j->reasons.n > 0);
                break;
        case VERDICT_NEVER_RUN:
        case _VERDICT_MAX:
                fail_msg("no verdict");
        }
}

/* Seconds of a good disk, between which it had nothing to do, or hung with a request under way. */
static void test_held_up(void **state)
{
        Run run;

        (void) state;
        for (unsigned seconds = 1; seconds < 60; seconds++)
                for (int hangs = 0; hangs < 2; hangs++) {
                        run_start(&run);
                        for (unsigned i = 0; i < 10; i++)
                                run_add(&run, NS_PER_S, 1000, 2000000, 3000)->counters.io_ms += 500;
                        for (unsigned i = 0; i < seconds; i++) {
                                Snapshot *row = run_add(&run, NS_PER_S, 0, 0, 0);

                                row->counters.in_flight = hangs;
                                row->counters.io_ms += hangs ? 1000 : 0;
                        }
                        for (unsigned i = 0; i < 10; i++) {
                                Snapshot *row = run_add(&run, NS_PER_S, 1000, 2000000, 3000);

                                row->counters.in_flight = 0;
                                row->counters.io_ms += 500;
                        }
                        run.facts.longest_stall_ns = seconds * NS_PER_S;
                        run.facts.stall_limit_ns = 2 * NS_PER_S;
                        Judgement j = judge(&run);
                        /* 1000 MB/s for 20 s: above 600 MB/s with 13 s more, steady with 2. */
                        bool low = seconds > 13, unsteady = seconds > 2;
                        assert_int_equal(j.verdict, !unsteady ? VERDICT_PASS
                                                    : hangs   ? VERDICT_FAIL
                                                              : VERDICT_INCONCLUSIVE);
                        if (!hangs && unsteady)
                                expect_detail(&j, REASON_THROTTLED, "nothing was on its way to sdc");
                        if (low)
                                expect_detail(&j, REASON_WRITE_THROUGHPUT_LOW, "MB/s");
                        if (seconds > 2)
                                expect_detail(&j, REASON_STALLED,
                                              hangs ? "was outstanding" : "A write call took");
                }
        /* Frozen with whoever reads the counters: one long interval. A device that was busy in it is not
         * excused. */
        for (int busy = 0; busy < 2; busy++) {
                run_start(&run);
                run.facts.interval_ns = NS_PER_S;
                for (unsigned i = 0; i < 10; i++)
                        run_add(&run, NS_PER_S, 1000, 2000000, 3000)->counters.io_ms += 500;
                run_add(&run, 30 * NS_PER_S, 1000, 2000000, 3000)->counters.io_ms += busy ? 30000 : 500;
                for (unsigned i = 0; i < 10; i++)
                        run_add(&run, NS_PER_S, 1000, 2000000, 3000)->counters.io_ms += 500;
                Judgement j = judge(&run);
                assert_int_equal(j.verdict, busy ? VERDICT_FAIL : VERDICT_INCONCLUSIVE);
        }
        /* A slow disk stays one, however long its writers were stopped. */
        run_start(&run);
        for (unsigned i = 0; i < 40; i++)
                run_add(&run, NS_PER_S, i < 20 ? 100 : 0, i < 20 ? 200000 : 0, 900)->counters.io_ms +=
                        i < 20 ? 900 : 0;
        check(&run, "fail: write_throughput_low");
}

static void test_any(void **state)
{
        unsigned seen[_VERDICT_MAX] = { 0 }, codes[_REASON_MAX] = { 0 };

        (void) state;
        for (unsigned seed = 0; seed < 60000; seed++) {
                Run run;
                Judgement j, stricter;
                Limits limits = limits_default(), strict;

                rng = seed;
                run_any(&run);
                run_end(&run);
                if (once_in(2))
                        limits =
                                (Limits){ { (double) any(1000), (double) any(40) }, (double) any(101) / 100 };
                judge_run(&limits, &run.facts, &j);
                check_invariants(&limits, &run.facts, &j);
                seen[j.verdict]++;
                for (size_t i = 0; i < j.reasons.n; i++)
                        codes[j.reasons.items[i].code]++;

                /* A higher bar passes nothing that failed, and leaves what could not be judged. */
                strict = limits;
                strict.value[CRITERION_WRITE_THROUGHPUT] += once_in(2) ? 0 : (double) any(300);
                strict.value[CRITERION_WRITE_LATENCY] -= once_in(2) ? 0 : (double) any(10);
                strict.pass_ratio += once_in(2) ? 0 : (1 - limits.pass_ratio) * (double) any(100) / 100;
                judge_run(&strict, &run.facts, &stricter);
                /* Where a part is unseen, the writers' own rate must say the same, and does not of each
                 * limit. */
                if (run.facts.unseen_ns > 0 || run.facts.surroundings)
                        continue; /* nor does what the host did excuse each */
                if (stricter.verdict == VERDICT_PASS && j.verdict != VERDICT_PASS)
                        fail_msg("seed %u: a stricter limit turns %s into a pass", seed, outcome(&j));
                if (j.verdict == VERDICT_FAIL && stricter.verdict != VERDICT_FAIL)
                        fail_msg("seed %u: a stricter limit turns a fail into %s", seed, outcome(&stricter));
        }
        /* The cases reach what they are to test. */
        assert_true(seen[VERDICT_PASS] > 1000 && seen[VERDICT_FAIL] > 1000 &&
                    seen[VERDICT_INCONCLUSIVE] > 1000);
        for (ReasonCode code = 0; code < _REASON_MAX; code++)
                assert_true(codes[code] > 10);
}

static void test_names(void **state)
{
        Verdict verdict = VERDICT_PASS;
        ReasonCode code = REASON_NO_ROWS;

        (void) state;
        for (Verdict v = 0; v < _VERDICT_MAX; v++) {
                assert_int_equal(verdict_from_string(verdict_to_string(v), &verdict), 0);
                assert_int_equal(verdict, v);
        }
        for (ReasonCode c = 0; c < _REASON_MAX; c++) {
                assert_int_equal(reason_from_string(reason_to_string(c), &code), 0);
                assert_int_equal(code, c);
        }
        assert_int_equal(verdict_from_string("passed", &verdict), -EINVAL);
        assert_int_equal(reason_from_string("", &code), -EINVAL);

        /* fail, inconclusive, never_run, pass */
        static const Verdict order[] = { VERDICT_FAIL, VERDICT_INCONCLUSIVE, VERDICT_NEVER_RUN,
                                         VERDICT_PASS };
        for (size_t a = 0; a < 4; a++)
                for (size_t b = 0; b < 4; b++)
                        assert_int_equal(verdict_worst(order[a], order[b]), order[a < b ? a : b]);
}

static void test_reasons(void **state)
{
        Reasons reasons = { 0 };
        char text[1000];

        (void) state;
        reasons_add(&reasons, REASON_ABORTED, "first %d", 1);
        reasons_add(&reasons, REASON_ABORTED, "second");
        assert_int_equal(reasons.n, 1);
        assert_string_equal(reasons.items[0].detail, "first 1");
        /* What does not fit is cut where a character ends. */
        for (size_t shift = 0; shift < 3; shift++) {
                Reasons one = { 0 };

                memset(text, 'x', shift);
                for (size_t i = shift; i + 3 < sizeof text; i += 3)
                        memcpy(text + i, "\xe2\x82\xac", 4);
                reasons_add(&one, REASON_ABORTED, "%s", text);
                size_t length = strlen(one.items[0].detail);
                assert_true(length >= sizeof one.items[0].detail - 4);
                assert_int_equal((length - shift) % 3, 0);
        }
        for (ReasonCode code = 0; code < _REASON_MAX; code++)
                reasons_add(&reasons, code, "x");
        assert_int_equal(reasons.n, MAX_REASONS);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_published), cmocka_unit_test(test_boundaries),
                cmocka_unit_test(test_samples),   cmocka_unit_test(test_too_few),
                cmocka_unit_test(test_ends),      cmocka_unit_test(test_gaps),
                cmocka_unit_test(test_doubts),    cmocka_unit_test(test_foreign),
                cmocka_unit_test(test_blame),     cmocka_unit_test(test_held_up),
                cmocka_unit_test(test_any),       cmocka_unit_test(test_names),
                cmocka_unit_test(test_reasons),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
