/* SPDX-License-Identifier: Apache-2.0 */
/* Captures nobody should make: noise, endless lines, too many devices, damaged and mixed rows, more rows than
 * memory is given. */

#include "tierprobe/capture.h"
#include "tierprobe/cleanup.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEADER "Device r/s w/s rkB/s wkB/s w_await util\n"
#define GOOD_ROW "sdc 0.00 1000.00 0.00 700000.00 5.00 90.00\n"

static CaptureJudge *judge_new(const char *device)
{
        CaptureJudge *judge = NULL;

        const Limits limits = limits_default();

        assert_int_equal(capture_judge_new(&limits, device, &judge), 0);
        return judge;
}

static void feed(CaptureJudge *judge, const char *text, size_t size)
{
        assert_int_equal(capture_judge_feed(judge, text, size), 0);
}

static void feed_text(CaptureJudge *judge, const char *text)
{
        feed(judge, text, strlen(text));
}

static _printf_(2, 3) void feed_format(CaptureJudge *judge, const char *format, ...)
{
        char text[1024];
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(text, sizeof text, format, ap);
        va_end(ap);
        feed_text(judge, text);
}

static const Judgement *finish(CaptureJudge *judge)
{
        assert_int_equal(capture_judge_finish(judge), 0);
        return capture_judge_overall(judge);
}

static bool noted(const CaptureJudge *judge, const char *part)
{
        const char *note = NULL;

        for (size_t i = 0; (note = capture_judge_note(judge, i)); i++)
                if (strstr(note, part))
                        return true;
        return false;
}

/* 16 MB of every byte, with lines of a megabyte among them, around one good row. */
static void test_noise(void **state)
{
        uint64_t rng = 1;

        (void) state;
        _cleanup_free_ char *chunk = malloc(1 << 20);
        assert_non_null(chunk);
        _cleanup_(capture_judge_freep) CaptureJudge *judge = judge_new(NULL);
        for (unsigned n = 0; n < 16; n++) {
                for (size_t i = 0; i < 1 << 20; i++) {
                        rng = rng * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
                        chunk[i] = (char) (rng >> 56);
                        if (n % 2 && chunk[i] == '\n')
                                chunk[i] = ' ';
                }
                chunk[0] = 'x';
                feed(judge, chunk, 1 << 20);
                if (n == 8)
                        feed_text(judge, "\n" HEADER GOOD_ROW);
        }
        feed_text(judge, "\n");
        const Judgement *j = finish(judge);
        assert_non_null(capture_judge_decider(judge));
        assert_string_equal(capture_judge_decider(judge)->name, "sdc");
        assert_int_equal(j->verdict, VERDICT_PASS);
        assert_true(noted(judge, "longer than"));
}

static void test_many_devices(void **state)
{
        (void) state;
        _cleanup_(capture_judge_freep) CaptureJudge *judge = judge_new(NULL);
        feed_text(judge, HEADER);
        for (unsigned i = 0; i < 100000; i++)
                feed_format(judge, "loop%u 0.00 100.00 0.00 %u.00 1.00 5.00\n", i, i % 5000);
        (void) finish(judge);
        assert_int_equal(capture_judge_n_devices(judge), CAPTURE_MAX_DEVICES);
        assert_string_equal(capture_judge_decider(judge)->name, "loop4095");
        assert_true(noted(judge, "95904 rows of devices beyond the first 4096"));
}

/* More rows than the buffer holds go through the file and come back. */
static void test_spool(void **state)
{
        (void) state;
        for (unsigned round = 0; round < 2; round++) {
                _cleanup_(capture_judge_freep) CaptureJudge *judge = judge_new("sdc");
                unsigned reports = 100000;

                for (unsigned i = 0; i < reports; i++)
                        feed_format(judge, HEADER "sda 0.00 500.00 0.00 %u.50 2.00 50.00\n" GOOD_ROW,
                                    400000 + i % 1000);
                const Judgement *j = finish(judge);
                assert_int_equal(j->verdict, VERDICT_PASS);
                assert_int_equal(j->samples_total, reports - 2);
                assert_int_equal(j->samples_passing, reports - 2);
                const CaptureDevice *other = capture_judge_device(judge, 1);
                assert_string_equal(other->name, "sda");
                assert_float_equal(other->judgement.measured.wkb_s, 400000 + 499.5 + 0.5, 0.02);
        }
        /* Where there is no room for the file, that is said, not swallowed. */
        assert_int_equal(setenv("TMPDIR", "/nonexistent", 1), 0);
        _cleanup_(capture_judge_freep) CaptureJudge *judge = judge_new(NULL);
        int r = 0;
        feed_text(judge, HEADER);
        for (unsigned i = 0; i < 100000 && r == 0; i++)
                r = capture_judge_feed(judge, GOOD_ROW, strlen(GOOD_ROW));
        assert_int_equal(r, -ENOENT);
        assert_int_equal(unsetenv("TMPDIR"), 0);
}

static void test_damaged(void **state)
{
        (void) state;
        /* One row in twenty is unreadable: left out, said, and the rest judged. */
        _cleanup_(capture_judge_freep) CaptureJudge *judge = judge_new(NULL);
        for (unsigned i = 0; i < 40; i++)
                feed_text(judge, i % 20 == 10 ? HEADER "sdc 0.00 1000.00 0.00 7000\n" : HEADER GOOD_ROW);
        const Judgement *j = finish(judge);
        assert_int_equal(j->verdict, VERDICT_PASS);
        assert_int_equal(j->samples_total, 36);
        assert_int_equal(j->samples_dropped, 2);
        assert_true(noted(judge, "2 rows that cannot be read were left out"));

        /* One in four: nobody knows what they hid. */
        _cleanup_(capture_judge_freep) CaptureJudge *worse = judge_new(NULL);
        for (unsigned i = 0; i < 40; i++)
                feed_text(worse,
                          i % 4 == 2 ? HEADER "sdc 0.00 1000.00 nan nan 5.00 90.00\n" : HEADER GOOD_ROW);
        j = finish(worse);
        assert_int_equal(j->verdict, VERDICT_INCONCLUSIVE);
        assert_true(reasons_have(&j->reasons, REASON_TOO_FEW_SAMPLES));

        /* NULs, as a file has that was truncated while it was written to: in front they are blank, inside
         * they are damage. */
        static const char nuls[] =
                "\0\0\0\0" HEADER "\0\0" GOOD_ROW "sdc 0.00 10\0\0.00 0.00 1.00 5.00 90.00\n";
        _cleanup_(capture_judge_freep) CaptureJudge *holes = judge_new(NULL);
        feed(holes, nuls, sizeof nuls - 1);
        j = finish(holes);
        assert_int_equal(j->verdict, VERDICT_PASS);
        assert_int_equal(j->samples_total, 1);

        /* Nor do they make a name of two words: once the shorter one was read beyond its end. */
        static const char names[] = HEADER "a\0b 0.00 1000.00 0.00 700000.00 5.00 90.00\n"
                                           "a\0c 0.00 1000.00 0.00 700000.00 5.00 90.00\n";
        _cleanup_(capture_judge_freep) CaptureJudge *split = judge_new(NULL);
        feed(split, names, sizeof names - 1);
        j = finish(split);
        assert_int_equal(j->verdict, VERDICT_INCONCLUSIVE);
        assert_int_equal(capture_judge_n_devices(split), 0);
}

/* The counters went back: sysstat up to 12.7.2 prints 2^64. */
static void test_absurd(void **state)
{
        static const char *const rows[] = {
                "sdc 0.00 18446744073709549568.00 0.00 9223372036854175744.00 0.00 90.00\n",
                "sdc 0.00 1000.00 0.00 700000.00 429496729.50 90.00\n",
                "sdc 0.00 1000.00 0.00 300000000.00 5.00 90.00\n",
                "sdc 0.00 -3.00 0.00 700000.00 5.00 90.00\n",
                "sdc 0.00 1000.00 0.00 99999999999999999999999999999999999999.00 5.00 90.00\n",
        };

        (void) state;
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
                _cleanup_(capture_judge_freep) CaptureJudge *judge = judge_new(NULL);
                for (unsigned n = 0; n < 5; n++)
                        feed_format(judge, "%s%s", HEADER, n == 2 ? rows[i] : GOOD_ROW);
                const Judgement *j = finish(judge);
                assert_int_equal(j->verdict, VERDICT_INCONCLUSIVE);
                assert_int_equal(j->reasons.n, 1);
                assert_int_equal(j->reasons.items[0].code, REASON_COUNTERS_RESET);
                assert_float_equal(j->measured.wkb_s, 700000, 1e-9);

                /* Outside the window it does not matter. */
                _cleanup_(capture_judge_freep) CaptureJudge *before = judge_new(NULL);
                for (unsigned n = 0; n < 5; n++)
                        feed_format(before, "%s%s", HEADER, n == 0 ? rows[i] : GOOD_ROW);
                assert_int_equal(finish(before)->verdict, VERDICT_PASS);
        }
}

/* Means of equal rows are that value exactly, whatever the weights. */
static void test_exact(void **state)
{
        (void) state;
        for (unsigned n = 3; n < 300; n += 7) {
                _cleanup_(capture_judge_freep) CaptureJudge *judge = judge_new(NULL);
                for (unsigned i = 0; i < n; i++)
                        feed_format(judge, HEADER "sdc 0.00 %u.%02u 0.00 600000.00 20.00 90.00\n", 1 + i * 37,
                                    i % 100);
                const Judgement *j = finish(judge);
                assert_int_equal(j->verdict, VERDICT_FAIL);
                assert_true(j->criteria[CRITERION_WRITE_THROUGHPUT].pass);
                assert_false(j->criteria[CRITERION_WRITE_LATENCY].pass);
        }
}

/* Units and columns change in the middle of the file; headers filtered out by grep; groups. */
static void test_mixed(void **state)
{
        (void) state;
        _cleanup_(capture_judge_freep) CaptureJudge *judge = judge_new(NULL);
        feed_text(judge, HEADER GOOD_ROW GOOD_ROW GOOD_ROW);
        feed_text(judge, "Device: w_await w/s wMB/s\nsdc 5.00 1000.00 1000.00\nsdc 5.00 1000.00 1000.00\n");
        feed_text(judge, "Device tps kB_read/s kB_wrtn/s kB_read kB_wrtn\nsdc 1.00 2.00 3.00 4 5\n");
        feed_text(judge, HEADER GOOD_ROW);
        const Judgement *j = finish(judge);
        assert_int_equal(j->verdict, VERDICT_PASS); /* the basic report says nothing, not that it was quiet */
        assert_int_equal(j->samples_total, 4);
        assert_int_equal(j->samples_passing, 4);

        _cleanup_(capture_judge_freep) CaptureJudge *groups = judge_new(NULL);
        feed_text(groups, HEADER "sda 0.00 1.00 0.00 400000.00 1.00 9.00\n"
                                 "sdb 0.00 1.00 0.00 400000.00 1.00 9.00\n"
                                 " my disks 0.00 2.00 0.00 800000.00 1.00 9.00\n");
        j = finish(groups);
        assert_string_equal(capture_judge_decider(groups)->name, "sda"); /* a sum is no device */
        assert_int_equal(j->verdict, VERDICT_FAIL);
        assert_string_equal(capture_judge_device(groups, 0)->name, "my disks");

        /* The endless document of an interrupted run, and what is no document at all. */
        static const struct {
                const char *text;
                ReasonCode code;
        } broken[] = {
                { "{", REASON_NO_ROWS },
                { "{}", REASON_NOT_A_CAPTURE },
                { "{\"sysstat\": {\"hosts\": [{\"statistics\": [{\"disk\": [", REASON_NO_ROWS },
                { "{\"statistics\": [{]}", REASON_NO_ROWS },
                { "{\"statistics\": [7, \"x\", [{}]]}", REASON_NO_ROWS },
                { "{\"statistics\": [{\"disk\": 3}, {\"disk\": [4, {\"disk_device\": 5}]}]}",
                  REASON_UNREADABLE_ROWS },
        };
        for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
                _cleanup_(capture_judge_freep) CaptureJudge *json = judge_new(NULL);
                feed_text(json, broken[i].text);
                j = finish(json);
                assert_int_equal(j->verdict, VERDICT_INCONCLUSIVE);
                assert_int_equal(j->reasons.items[0].code, broken[i].code);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_noise),  cmocka_unit_test(test_many_devices),
                cmocka_unit_test(test_spool),  cmocka_unit_test(test_damaged),
                cmocka_unit_test(test_absurd), cmocka_unit_test(test_exact),
                cmocka_unit_test(test_mixed),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
