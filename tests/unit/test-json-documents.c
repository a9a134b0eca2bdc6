/* SPDX-License-Identifier: Apache-2.0 */
/* The small documents, and the one body that the server reads. */

#include "tierprobe/cleanup.h"
#include "tierprobe/json.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_problem(void **state)
{
        (void) state;
        json_auto_t *problem =
                json_problem(409, "Conflict", "run_in_progress", "wait\xff", "runs", json_array());
        size_t size = 0;
        _cleanup_free_ char *text = json_document(problem, &size);

        assert_string_equal(text,
                            "{\"schema\":1,\"type\":\"about:blank\",\"title\":\"Conflict\",\"status\":409,"
                            "\"code\":\"run_in_progress\",\"detail\":\"wait\xef\xbf\xbd\",\"runs\":[]}\n");
        assert_int_equal(size, strlen(text));
}

static void test_start_request(void **state)
{
        static const char *const bad[] = { "",
                                           "[]",
                                           "null",
                                           "\"x\"",
                                           "{",
                                           "{\"path\":\"/etc\"}",
                                           "{\"target\":1}",
                                           "{\"target\":\"\"}",
                                           "{\"target\":\"a\",\"target\":\"b\"}",
                                           "{\"target\":\"a\\u0000b\"}",
                                           "{\"target\":\"\xff\"}",
                                           "{} {}",
                                           "target=cache" };
        StartRequest request;
        char error[100], longest[200];

        (void) state;
        assert_int_equal(json_read_start_request("{}", 2, &request, error, sizeof error), 0);
        assert_string_equal(request.target, "");
        static const char both[] = "{\"target\":\"cache\",\"profile\":null}";
        assert_int_equal(json_read_start_request(both, strlen(both), &request, error, sizeof error), 0);
        assert_string_equal(request.target, "cache");
        assert_string_equal(request.profile, "");
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                *error = '\0';
                if (json_read_start_request(bad[i], strlen(bad[i]), &request, error, sizeof error) != -EINVAL)
                        fail_msg("accepted: %s", bad[i]);
                assert_true(strlen(error) > 10);
        }
        assert_string_equal(request.target, "cache"); /* untouched on failure */

        /* Depth must not reach the stack's end. */
        _cleanup_free_ char *deep = malloc(4096);
        memset(deep, '[', 4096);
        assert_int_equal(json_read_start_request(deep, 4096, &request, error, sizeof error), -EINVAL);
        memset(longest, 'x', sizeof longest);
        memcpy(longest, "{\"target\":\"", 11);
        memcpy(longest + 11 + NAME_SIZE, "\"}", 3);
        assert_int_equal(json_read_start_request(longest, strlen(longest), &request, error, sizeof error),
                         -EINVAL);
        memcpy(longest + 11 + NAME_SIZE - 1, "\"}", 3);
        assert_int_equal(json_read_start_request(longest, strlen(longest), &request, error, sizeof error), 0);
}

/* Only what was not started is listed, each with its code. */
static void test_start_answers(void **state)
{
        const StartAnswer answers[] = {
                { .result = START_ACCEPTED, .target = "a", .run_id = "r1" },
                { .result = START_BUSY, .target = "b", .run_id = "r2" },
                { .result = START_COOLDOWN, .target = "c", .retry_after_s = 90 },
                { .result = START_REFUSED, .target = "d", .reason = REASON_NO_SPACE, .detail = "full" },
        };

        (void) state;
        json_auto_t *array = json_start_answers(answers, ELEMENTSOF(answers));
        _cleanup_free_ char *text = json_document(array, NULL);
        assert_string_equal(
                text, "[{\"target\":\"b\",\"code\":\"run_in_progress\",\"detail\":\"\",\"run_id\":\"r2\","
                      "\"retry_after_s\":null},{\"target\":\"c\",\"code\":\"cooldown\",\"detail\":\"\","
                      "\"run_id\":null,\"retry_after_s\":90},{\"target\":\"d\",\"code\":\"no_space\","
                      "\"detail\":\"full\",\"run_id\":null,\"retry_after_s\":null}]\n");
}

/* A sample without an interval has every key, and null where there is no figure. */
static void test_sample(void **state)
{
        const RingRecord record = { .seq = 3, .device = "sdb", .snapshot = { .real_ns = 1000000000 } };

        (void) state;
        json_auto_t *sample = json_sample(&record, NULL, GAP_RESET);
        assert_int_equal(json_object_size(sample), 5 + N_METRIC_COLUMNS + 1);
        assert_true(json_is_null(json_object_get(sample, "interval_s")));
        assert_true(json_is_null(json_object_get(sample, "run_id")));
        for (size_t i = 0; i < N_METRIC_COLUMNS; i++)
                assert_true(json_is_null(json_object_get(sample, metric_columns[i].key)));
        assert_string_equal(json_string_value(json_object_get(sample, "gap")), gap_to_string(GAP_RESET));
        assert_string_equal(json_string_value(json_object_get(sample, "time")), "1970-01-01T00:00:01.000Z");
}

/* The tree as JSON sees it: numbers without their kind. */
static void as_reals(json_t *sample)
{
        const char *key = NULL;
        json_t *value = NULL;

        json_object_foreach(sample, key, value) if (json_is_integer(value))(void)
                json_object_set_new_nocheck(sample, key, json_real((double) json_integer_value(value)));
}

static RingRecord random_record(Delta *delta, Gap *ret_gap)
{
        static const char *const names[] = { "sdb", "nvme0n1", "", "cciss!c0d0", "a\"b\\c,d\n", "\xff\x01" };
        RingRecord record = { .seq = (uint64_t) random(),
                              .snapshot.real_ns = random() % 5 ? (int64_t) random() * random() : 0 };
        uint64_t *fields = &delta->interval_ns;

        (void) strcpy(record.device, names[(size_t) random() % ELEMENTSOF(names)]);
        (void) strcpy(record.run_id, random() % 2 ? "20261130T131405-7f3a9c" : "");
        *delta = (Delta){ .has_discards = random() % 2, .has_flushes = random() % 2 };
        for (size_t i = 0; i < 17; i++)
                fields[i] = random() % 3 ? (uint64_t) random() % 1000000 : 0;
        delta->interval_ns = 1 + (uint64_t) random() % 2000000000;
        *ret_gap = random() % 4 ? GAP_NONE : (Gap) (random() % _GAP_MAX);
        return record;
}

/* The three forms of a sample say the same. */
static void test_sample_forms(void **state)
{
        char header[SAMPLE_TEXT_SIZE], text[SAMPLE_TEXT_SIZE], row[SAMPLE_TEXT_SIZE];
        size_t header_size = csv_sample_header(header, sizeof header), columns = 1;

        (void) state;
        for (size_t i = 0; i < header_size; i++)
                columns += header[i] == ',';
        assert_int_equal(columns, 5 + N_METRIC_COLUMNS + 1);
        assert_memory_equal(header, "seq,time,interval_s,run_id,device,r/s,w/s,", 42);
        assert_memory_equal(header + header_size - 11, "%util,gap\r\n", 11);
        srandom(20261130);
        for (int i = 0; i < 5000; i++) {
                Delta delta;
                Gap gap = GAP_NONE;
                const RingRecord record = random_record(&delta, &gap);
                size_t size = json_sample_text(text, sizeof text, &record, &delta, gap), row_columns = 1;
                json_auto_t *tree = json_sample(&record, &delta, gap);
                json_auto_t *read = json_loadb(text, size, 0, NULL);

                if (!read)
                        fail_msg("case %d: %.*s", i, (int) size, text);
                as_reals(read);
                as_reals(tree);
                /* Names that no kernel gives are made harmless in the text. */
                (void) json_object_del(read, "device");
                (void) json_object_del(tree, "device");
                if (!json_equal(read, tree))
                        fail_msg("case %d: %.*s", i, (int) size, text);

                size_t row_size = csv_sample_row(row, sizeof row, &record, &delta, gap);
                assert_true(row_size > 2 && memcmp(row + row_size - 2, "\r\n", 2) == 0);
                for (size_t c = 0; c < row_size - 2; c++) {
                        row_columns += row[c] == ',';
                        assert_false(row[c] == '"' || (unsigned char) row[c] < ' ');
                }
                assert_int_equal(row_columns, columns);
                for (size_t less = 0; less < size; less += 1 + less / 8)
                        assert_int_equal(json_sample_text(text, less, &record, &delta, gap), 0);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_problem),       cmocka_unit_test(test_start_request),
                cmocka_unit_test(test_start_answers), cmocka_unit_test(test_sample),
                cmocka_unit_test(test_sample_forms),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
