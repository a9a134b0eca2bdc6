/* SPDX-License-Identifier: Apache-2.0 */
/* Every capture in tests/data/judge: published/ holds published measurements, layouts/ every layout of
 * sysstat, reports/ what people put into mails and issues. Each is fed whole, byte by byte, and in pieces,
 * and must give the same. */

#include "tierprobe/capture.h"
#include "tierprobe/cleanup.h"
#include "tierprobe/file.h"

#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MAX_FIELDS 8

static const size_t pieces[] = { 1 << 20, 1, 7, 4096 };

static char *read_data(const char *folder, const char *name, size_t *ret_size)
{
        const char *data = getenv("TIERPROBE_TEST_DATA");
        char *text = NULL;

        _cleanup_free_ char *path = path_format("%s/judge/%s/%s", data ? data : "tests/data", folder, name);
        assert_non_null(path);
        int r = read_file_at(AT_FDCWD, path, 1 << 20, &text, ret_size);
        if (r < 0)
                fail_msg("%s: %s", path, strerror(-r));
        return text;
}

static CaptureJudge *judge_pieces(const char *text, size_t size, const char *device, size_t piece)
{
        CaptureJudge *judge = NULL;

        const Limits limits = limits_default();

        assert_int_equal(capture_judge_new(&limits, device, &judge), 0);
        for (size_t at = 0; at < size; at += piece)
                assert_int_equal(capture_judge_feed(judge, text + at, size - at < piece ? size - at : piece),
                                 0);
        assert_int_equal(capture_judge_finish(judge), 0);
        return judge;
}

static void check_figure(const char *file, const char *expected, double value)
{
        if (strcmp(expected, "-") == 0)
                assert_true(isnan(value));
        else if (!(fabs(value - strtod(expected, NULL)) < 0.01)) /* in the C locale */
                fail_msg("%s: %f is not %s", file, value, expected);
}

/* FIELDS as the header of layouts/expected.tsv names them; of that of published/ only the first three. */
static void check_case(const char *folder, char *fields[MAX_FIELDS], size_t n)
{
        const char *file = fields[0];
        bool published = strcmp(folder, "published") == 0;
        size_t size = 0;

        assert_true(n >= (published ? 3 : 7));
        _cleanup_free_ char *text = read_data(folder, file, &size);
        for (size_t p = 0; p < ELEMENTSOF(pieces); p++) {
                /* Published: asked for by name, and found without. */
                _cleanup_(capture_judge_freep) CaptureJudge *judge =
                        judge_pieces(text, size, published && p % 2 ? fields[1] : NULL, pieces[p]);
                const CaptureDevice *decider = capture_judge_decider(judge);
                const Judgement *j = capture_judge_overall(judge);
                char reasons[400] = "", samples[32];

                if (strcmp(verdict_to_string(j->verdict), fields[2]) != 0)
                        fail_msg("%s: %s, not %s", file, verdict_to_string(j->verdict), fields[2]);
                assert_string_equal(decider ? decider->name : "-", fields[1]);
                if (published)
                        continue;
                for (size_t i = 0; i < j->reasons.n; i++) {
                        size_t at = strlen(reasons);
                        (void) snprintf(reasons + at, sizeof reasons - at, "%s%s", i ? "+" : "",
                                        reason_to_string(j->reasons.items[i].code));
                }
                assert_string_equal(reasons[0] ? reasons : "-", fields[3]);
                check_figure(file, fields[4], j->measured.wkb_s);
                check_figure(file, fields[5], j->measured.w_await);
                (void) snprintf(samples, sizeof samples, "%u/%u", j->samples_passing, j->samples_total);
                assert_string_equal(samples, fields[6]);
        }
}

/* Whether TEXT is in a reason or in a note. */
static bool says(const CaptureJudge *judge, const char *text)
{
        const Reasons *reasons = &capture_judge_overall(judge)->reasons;
        const char *note = NULL;

        for (size_t i = 0; i < reasons->n; i++)
                if (strstr(reasons->items[i].detail, text))
                        return true;
        for (size_t i = 0; (note = capture_judge_note(judge, i)); i++)
                if (strstr(note, text))
                        return true;
        return false;
}

static bool is_among(const char *list, const char *word)
{
        size_t size = strlen(word);

        for (const char *p = list; (p = strstr(p, word)); p += size)
                if ((p == list || p[-1] == '|') && (p[size] == '|' || p[size] == '\0'))
                        return true;
        return false;
}

/* FIELDS as the header of reports/expected.tsv names them. */
static void check_report(const char *folder, char *fields[MAX_FIELDS], size_t n)
{
        const char *file = fields[0], *device = fields[1], *said = fields[3], *never = fields[4];
        size_t size = 0;

        assert_int_equal(n, 6);
        _cleanup_free_ char *text = read_data(folder, file, &size);
        for (size_t p = 0; p < ELEMENTSOF(pieces); p++) {
                _cleanup_(capture_judge_freep) CaptureJudge *judge =
                        judge_pieces(text, size, strcmp(device, "-") == 0 ? NULL : device, pieces[p]);
                const Judgement *j = capture_judge_overall(judge);

                if (!is_among(fields[2], verdict_to_string(j->verdict)))
                        fail_msg("%s: %s, not %s", file, verdict_to_string(j->verdict), fields[2]);
                if (strcmp(said, "-") != 0 && !says(judge, said))
                        fail_msg("%s does not say \"%s\" but \"%s\"", file, said,
                                 j->reasons.n ? j->reasons.items[0].detail : "nothing");
                if (strcmp(never, "-") != 0 && says(judge, never))
                        fail_msg("%s says \"%s\"", file, never);
                assert_true(j->verdict == VERDICT_PASS || j->reasons.n > 0);
        }
}

static void check_folder(const char *folder, unsigned at_least,
                         void (*check)(const char *folder, char *fields[MAX_FIELDS], size_t n))
{
        unsigned cases = 0;
        char *save = NULL;

        _cleanup_free_ char *table = read_data(folder, "expected.tsv", NULL);
        char *line = NULL;

        (void) strtok_r(table, "\n", &save); /* the names of the columns */
        while ((line = strtok_r(NULL, "\n", &save))) {
                static char missing[] = "";
                char *fields[MAX_FIELDS], *rest = line, *field = NULL;
                size_t n = 0;

                for (size_t i = 0; i < MAX_FIELDS; i++)
                        fields[i] = missing;
                while (n < MAX_FIELDS && (field = strsep(&rest, "\t")))
                        fields[n++] = field;
                check(folder, fields, n);
                cases++;
        }
        assert_true(cases >= at_least);
}

static void test_published(void **state)
{
        (void) state;
        check_folder("published", 21, check_case);
}

static void test_layouts(void **state)
{
        (void) state;
        check_folder("layouts", 40, check_case);
}

static void test_reports(void **state)
{
        (void) state;
        check_folder("reports", 56, check_report);
        check_folder("mangled", 24, check_report);
}

static const char *first_detail(const CaptureJudge *judge)
{
        const Reasons *reasons = &capture_judge_overall(judge)->reasons;

        assert_true(reasons->n > 0);
        return reasons->items[0].detail;
}

static void test_sentences(void **state)
{
        size_t size = 0;

        (void) state;
        _cleanup_free_ char *latency = read_data("layouts", "boundary-latency.txt", &size);
        _cleanup_(capture_judge_freep) CaptureJudge *judge = judge_pieces(latency, size, NULL, size);
        assert_non_null(strstr(first_detail(judge), "within the rounding"));
        assert_null(capture_judge_note(judge, 0));

        _cleanup_free_ char *cut = read_data("layouts", "cut-line.txt", &size);
        _cleanup_(capture_judge_freep) CaptureJudge *cut_judge = judge_pieces(cut, size, NULL, size);
        assert_non_null(strstr(capture_judge_note(cut_judge, 0), "last line is cut"));

        _cleanup_free_ char *json = read_data("layouts", "iostat-12.6.1-json-cut.txt", &size);
        _cleanup_(capture_judge_freep) CaptureJudge *json_judge = judge_pieces(json, size, NULL, size);
        assert_non_null(strstr(capture_judge_note(json_judge, 0), "breaks off"));

        /* Asked for by its path, or for one that is not there. */
        _cleanup_free_ char *x = read_data("layouts", "iostat-12.6.1-x.txt", &size);
        _cleanup_(capture_judge_freep) CaptureJudge *by_path = judge_pieces(x, size, "/dev/loop0", size);
        assert_string_equal(capture_judge_decider(by_path)->name, "loop0");
        _cleanup_(capture_judge_freep) CaptureJudge *missing = judge_pieces(x, size, "sdq", size);
        assert_null(capture_judge_decider(missing));
        assert_true(reasons_have(&capture_judge_overall(missing)->reasons, REASON_NO_ROWS));
        assert_non_null(strstr(first_detail(missing), "vda"));
}

/* Every capture cut at every byte: never a crash, always a verdict with its reason. */
static void test_cut_anywhere(void **state)
{
        static const char *const names[] = { "iostat-12.6.1-colour.txt", "iostat-12.6.1-json-m.txt",
                                             "iostat-12.6.1-pretty.txt", "h2-10.1.5-two-lines.txt" };

        (void) state;
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
                size_t size = 0;

                _cleanup_free_ char *text = read_data("layouts", names[i], &size);
                for (size_t cut = 0; cut < size; cut++) {
                        _cleanup_(capture_judge_freep) CaptureJudge *judge =
                                judge_pieces(text, cut, NULL, size);
                        const Judgement *j = capture_judge_overall(judge);

                        assert_true(j->verdict == VERDICT_PASS || j->reasons.n > 0);
                        for (size_t d = 0; d < capture_judge_n_devices(judge); d++) {
                                const char *name = capture_judge_device(judge, d)->name;
                                assert_true(strcmp(name, "vda") == 0 || strcmp(name, "sda") == 0 ||
                                            strcmp(name, "loop0") == 0 || strncmp(name, "mapper/", 7) == 0);
                        }
                }
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_published),    cmocka_unit_test(test_layouts),
                cmocka_unit_test(test_reports),      cmocka_unit_test(test_sentences),
                cmocka_unit_test(test_cut_anywhere),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
