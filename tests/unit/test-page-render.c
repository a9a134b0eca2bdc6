/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of documents that hold anything: every text goes out as text, and the markup closes what it opens. */

#include "tierprobe/cleanup.h"
#include "tierprobe/page.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "seeds.h"

#define EVIL "<x-evil onload='a' \"b\">&\x01\n</section></pre>"
#define N_SEEDS 4000

static uint64_t seed;

static uint64_t next_random(void)
{
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        return seed;
}

static const char run_text[] =
        "{\"schema\":1,\"id\":\"20261130T222530-bb5322\",\"target\":\"cache\",\"profile\":\"procedure\","
        "\"certifying\":true,"
        "\"trigger\":\"manual\",\"state\":\"finished\",\"verdict\":\"pass\",\"reasons\":[{\"code\":"
        "\"stalled\",\"detail\":\"words\"}],"
        "\"started_at\":\"2026-11-30T22:25:30.926Z\",\"finished_at\":\"2026-11-30T22:25:32.679Z\",\"elapsed_"
        "s\":1.75,"
        "\"test\":{\"block_size\":1048576,\"count\":1000,\"streams\":1,\"pattern\":\"zero\"},\"bytes_total\":"
        "1048576000,"
        "\"bytes_written\":1048576000,\"progress\":1,\"criteria\":[{\"name\":\"write_throughput\",\"value\":"
        "602.85,\"unit\":\"MB/s\","
        "\"limit\":600,\"column\":\"wkB/"
        "s\",\"pass\":true},{\"name\":\"write_latency\",\"value\":0.22,\"unit\":\"ms\",\"limit\":20,"
        "\"column\":\"w_await\",\"pass\":true}],\"measured\":{\"wkB/"
        "s\":602852.5,\"w_await\":0.22},\"limits\":{\"write_mb_per_s\":600,"
        "\"w_await_ms\":20,\"pass_ratio\":0.9},\"samples\":{\"total\":10,\"passing\":10},\"latency_ms\":{"
        "\"mean\":1.7,\"p50\":1.3,"
        "\"p90\":3,\"p99\":5,\"p99_9\":8,\"max\":9},\"foreign_write_ratio\":0,\"device\":{\"name\":\"vda\","
        "\"filesystem\":\"ext4\","
        "\"mount_point\":\"/"
        "\",\"stack\":[{\"name\":\"vda\",\"kind\":\"disk\",\"parent\":null,\"size_bytes\":1e12,\"model\":"
        "\"m\","
        "\"firmware\":\"f\",\"serial\":\"s\"},{\"name\":\"sda\",\"parent\":\"vda\"}]},\"path\":\"/"
        "tmp\",\"ramp\":[{\"streams\":1,\"wkB/s\":5e5,"
        "\"w_await\":0.2},{\"streams\":2,\"wkB/s\":9e5,\"w_await\":0.3}],\"headroom\":{\"streams\":2,\"wkB/"
        "s\":9e5,\"w_await\":0.3},"
        "\"evidence\":{\"hostname\":\"h\",\"kernel\":\"k\",\"version\":\"v\",\"command\":\"dd "
        "if=/dev/zero\",\"samples\":[{\"at_s\":0.5,"
        "\"wkB/s\":6e5,\"w_await\":0.2},{\"at_s\":1,\"wkB/s\":null,\"w_await\":null},{\"at_s\":1.5,\"wkB/"
        "s\":7e5,\"w_await\":0.3}],"
        "\"slowest_writes\":[{\"latency_ms\":9,\"at_s\":1}],\"latency_histogram\":[{\"le_ms\":1,\"count\":5},"
        "{\"le_ms\":2,\"count\":50}]}}";

static json_t *parse(const char *text)
{
        json_t *document = json_loads(text, 0, NULL);

        assert_non_null(document);
        return document;
}

static json_t *status_of(json_t *run)
{
        json_t *target = json_pack(
                "{s:s,s:s,s:s,s:s,s:[{s:s,s:s}],s:f,s:b,s:b,s:[{s:s,s:s}],s:s,s:O,s:O,s:O,s:f,s:f,s:{s:{"
                "s:f,s:f,s:{s:f,s:n}}}}",
                "name", "cache", "path", "/db2/cache", "state", "idle", "verdict", "pass", "reasons", "code",
                "c", "detail", "d", "age_s", 60.0, "stale", 1, "degraded", 0, "problems", "code", "too_old",
                "detail", "It is old.", "next_run_at", "2026-12-01T02:00:00.000Z", "device",
                json_object_get(run, "device"), "standing_run", run, "current_run", run, "free_bytes", 1e11,
                "disk_written_day_bytes", 9e10, "observed", "hour", "samples_with_writes", 5.0,
                "over_limit_ratio", 0.1, "w_await", "p50", 3.0, "p95");

        assert_non_null(target);
        return json_pack("{s:i,s:s,s:s,s:[o]}", "schema", 1, "verdict", "pass", "config_error", "line 3",
                         "targets", target);
}

/* ---- what comes out ---- */

static char *rendered(int page, const json_t *document)
{
        const char *name = "host";
        const char *error = NULL;
        char *text = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);

        assert_non_null(out);
        switch (page) {
        case 0:
                page_write_status(out, document, NULL, EVIL);
                break;
        case 1:
                page_write_run(out, document, EVIL);
                break;
        case 2:
                page_write_report(out, &document, &name, &error, 1);
                break;
        default:
                page_write_markdown(out, &document, &name, &error, 1);
                break;
        }
        assert_int_equal(fclose(out), 0);
        assert_int_equal(strlen(text), size);
        return text;
}

static bool is_void(const char *name, size_t length)
{
        static const char *const names[] = { "meta", "link", "input", "!DOCTYPE" };

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                if (strlen(names[i]) == length && strncmp(names[i], name, length) == 0)
                        return true;
        return false;
}

/* Every element is closed by its own end, in order. */
static void assert_well_formed(const char *text)
{
        struct {
                const char *name;
                size_t length;
        } open[64];
        size_t n = 0;

        for (const char *at = text; (at = strchr(at, '<')); at++) {
                bool closes = at[1] == '/';
                const char *name = at + 1 + closes, *end = strchr(at, '>');
                size_t length = strcspn(name, " >/\n");

                assert_non_null(end);
                if (closes) {
                        assert_true(n > 0);
                        n--;
                        assert_int_equal(length, open[n].length);
                        assert_memory_equal(name, open[n].name, length);
                } else if (end[-1] != '/' && !is_void(name, length)) {
                        assert_true(n < ELEMENTSOF(open));
                        open[n].name = name;
                        open[n++].length = length;
                        if (length == 5 && strncmp(name, "style", 5) == 0)
                                at = strstr(at, "</style>") - 1;
                }
        }
        assert_int_equal(n, 0);
}

static void check(const json_t *document)
{
        for (int page = 0; page < 4; page++) {
                _cleanup_free_ char *text = rendered(page, document);

                if (page < 3) {
                        assert_null(strstr(text, "<x-evil"));
                        assert_well_formed(text);
                }
                assert_null(strchr(text, '\x01'));
                assert_null(strstr(text, "nan"));
                assert_null(strstr(text, ">inf"));
        }
}

/* ---- documents ---- */

/* Replaces or removes members at random, at every depth. */
static void mangle(json_t *value, unsigned one_in)
{
        void *next;
        const char *key;
        json_t *member;
        size_t i;

        json_object_foreach_safe(value, next, key, member)
        {
                mangle(member, one_in);
                if (next_random() % one_in)
                        continue;
                switch (next_random() % 9) {
                case 0:
                        (void) json_object_del(value, key);
                        break;
                case 1:
                        (void) json_object_set_new(value, key, json_null());
                        break;
                case 2:
                        (void) json_object_set_new(value, key, json_string(EVIL));
                        break;
                case 3:
                        (void) json_object_set_new(value, key, json_real(1e300));
                        break;
                case 4:
                        (void) json_object_set_new(value, key, json_real(-1e-300));
                        break;
                case 5:
                        (void) json_object_set_new(value, key, json_pack("[{}, 3, [n]]"));
                        break;
                case 6:
                        (void) json_object_set_new(value, key, json_integer(0));
                        break;
                case 7:
                        (void) json_object_set_new(value, key, json_pack("{s:s}", EVIL, EVIL));
                        break;
                default:
                        (void) json_object_set_new(value, key, json_true());
                        break;
                }
        }
        json_array_foreach(value, i, member) mangle(member, one_in);
}

static void test_whole_documents(void **state)
{
        json_auto_t *run = parse(run_text), *status = status_of(run);
        _cleanup_free_ char *text = rendered(0, status), *page = rendered(1, run),
                            *markdown = rendered(3, run);

        (void) state;
        check(run);
        check(status);
        assert_non_null(strstr(text, "This disk is fit for a caching tier."));
        assert_non_null(strstr(text, "602.9"));
        assert_non_null(strstr(text, "It is old."));
        assert_non_null(strstr(page, "dd if=/dev/zero"));
        assert_non_null(strstr(page, "Headroom (marked): 900.0 MB/s, writers: 2,"));
        assert_non_null(strstr(markdown, "| host | cache | pass | 602.9 | 0.220 | vda |"));
}

static void test_any_document(void **state)
{
        (void) state;
        for (unsigned n = 0; n < seeds_of(N_SEEDS); n++) {
                json_auto_t *run = parse(run_text), *status = status_of(run);
                json_auto_t *copy = json_deep_copy(status);

                seed = n + 1;
                mangle(run, 1 + n % 20);
                mangle(copy, 1 + n % 20);
                check(run);
                check(copy);
        }
        check(NULL);
        for (const char *const *text = (const char *const[]){ "[]", "{}", "[[]]", "[3]", NULL }; *text;
             text++) {
                json_auto_t *document = parse(*text);
                check(document);
        }
}

/* The whole tree below a device, without what is around it. */
static void check_tree(const char *stack_text, const char *heat_text, const char *expected)
{
        json_auto_t *run = parse(run_text), *stack = parse(stack_text), *heat = parse(heat_text);
        json_t *conditions = json_pack("{s:O}", "heat", heat);

        (void) json_object_set(json_object_get(run, "device"), "stack", stack);
        (void) json_object_set_new(json_object_get(run, "evidence"), "conditions", conditions);
        check(run);
        _cleanup_free_ char *text = rendered(1, run);
        if (!strstr(text, expected))
                fail_msg("no %s in %s", expected, strstr(text, "<div class=\"device\">"));
}

static void test_tree(void **state)
{
        (void) state;
        check_tree("[{\"name\":\"dm-0\",\"parent\":null},{\"name\":\"sda1\",\"parent\":\"dm-0\"},"
                   "{\"name\":\"sdb1\",\"parent\":\"dm-0\"},{\"name\":\"sda\",\"parent\":\"sda1\"}]",
                   "[]",
                   "<ul><li><b>dm-0</b><ul><li><b>sda1</b><ul><li><b>sda</b></li></ul></li>"
                   "<li><b>sdb1</b></li></ul></li></ul>");
        check_tree("[{\"name\":\"nvme0n1\",\"parent\":null}]",
                   "[{\"device\":\"nvme1n1\",\"peak_c\":20},{\"device\":\"nvme0n1\",\"peak_c\":null},"
                   "{\"device\":\"nvme0n1\",\"peak_c\":41.6,\"max_c\":83}]",
                   "<b>nvme0n1</b>, at most 42 °C (its limit is 83 °C)");
        check_tree("[{\"name\":\"sda\",\"parent\":null}]", "[{\"device\":\"sda\",\"now_c\":38}]",
                   "<b>sda</b>, 38 °C</li>");
        /* Each names the other, and itself. */
        check_tree("[{\"name\":\"a\",\"parent\":\"b\"},{\"name\":\"b\",\"parent\":\"a\"},"
                   "{\"name\":\"c\",\"parent\":\"c\"},{\"name\":\"d\",\"parent\":null}]",
                   "[]", "<ul><li><b>d</b></li></ul>");
}

/* A document in which every node has the same name and parent says so in no more lines than it has nodes. */
static void test_tree_is_bounded(void **state)
{
        json_auto_t *run = parse(run_text);
        json_t *stack = json_array();

        (void) state;
        for (int i = 0; i < 2000; i++)
                (void) json_array_append_new(stack,
                                             json_pack("{s:s,s:s?}", "name", "a", "parent", i ? "a" : NULL));
        (void) json_object_set_new(json_object_get(run, "device"), "stack", stack);
        _cleanup_free_ char *text = rendered(1, run);
        size_t n = 0;
        for (const char *p = text; (p = strstr(p, "<b>a</b>")); p++)
                n++;
        assert_int_equal(n, 2000);
}

static void test_files(void **state)
{
        static const char *const names[] = { "page.css", "page.js",    "chart.js",
                                             "icon.svg", "dygraph.js", "dygraph.css" };
        size_t weight = 0;

        (void) state;
        assert_int_equal(n_page_files, ELEMENTSOF(names));
        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                const PageFile *file = page_file_find(names[i]);

                assert_non_null(file);
                assert_true(file->size > 0 && file->gzip_size > 0);
                assert_int_equal(file->gzip[0], 0x1f);
                weight += file->gzip_size;
        }
        assert_true(weight < 150 * 1000);
        assert_null(page_file_find("../page.css"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_whole_documents),
                cmocka_unit_test(test_any_document),
                cmocka_unit_test(test_tree),
                cmocka_unit_test(test_tree_is_bounded),
                cmocka_unit_test(test_files),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
