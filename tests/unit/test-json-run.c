/* SPDX-License-Identifier: Apache-2.0 */
/* RUN out and back in: key order, nulls, thousands of random records, thousands of damaged documents. */

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/json.h"
#include "tierprobe/past-run.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "seeds.h"

/* ---- random records ---- */

static uint64_t random_u64(void)
{
        return ((uint64_t) random() << 31 ^ (uint64_t) random()) >> (random() % 60);
}

/* NAN now and then: whatever may be unknown is unknown sometimes. */
static double random_number(void)
{
        return random() % 4 ? (double) random_u64() / 1024.0 : NAN;
}

static void random_word(char *buf, size_t size)
{
        static const char letters[] = "abcXYZ012-";
        size_t length = 1 + (size_t) random() % (size - 1);

        for (size_t i = 0; i < length; i++)
                buf[i] = letters[(size_t) random() % (sizeof letters - 1)];
        buf[length] = '\0';
}

static void random_text(char *buf, size_t size)
{
        static const char *const pieces[] = { "a",  "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
                                              "\"", "\\",       "\n",           " " };
        size_t length = 0;

        while (random() % 12) {
                const char *piece = pieces[random() % 8];
                if (length + strlen(piece) >= size)
                        break;
                memcpy(buf + length, piece, strlen(piece));
                length += strlen(piece);
        }
        buf[length] = '\0';
}

static char *random_copy(void)
{
        char text[64];

        if (random() % 4 == 0)
                return NULL;
        random_text(text, sizeof text);
        return strdup(text);
}

static Device *random_device(void)
{
        Device *device = calloc(1, sizeof *device);

        assert_non_null(device);
        device->status = (DeviceStatus) (random() % 4);
        device->detail = random_copy();
        device->mount_point = random_copy();
        device->filesystem = random_copy();
        device->mount_source = random_copy();
        device->mount_options = random_copy();
        random_text(device->fs_uuid, sizeof device->fs_uuid);
        device->n_nodes = (size_t) random() % 5;
        device->nodes = calloc(device->n_nodes + 1, sizeof *device->nodes);
        device->rows = calloc(device->n_nodes + 1, sizeof *device->rows);
        for (size_t i = 0; i < device->n_nodes; i++) {
                DeviceNode *node = &device->nodes[i];

                (void) snprintf(node->name, sizeof node->name, "sd%zu", i);
                node->major = (uint32_t) random();
                node->minor = (uint32_t) random();
                node->kind = (DeviceKind) (random() % _DEVICE_KIND_MAX);
                node->parent = (int) ((size_t) random() % (i + 1)) - 1;
                random_text(node->model, sizeof node->model);
                random_text(node->serial, sizeof node->serial);
                random_text(node->dm_uuid, sizeof node->dm_uuid);
                node->dio = (int) (random() % 3) - 1;
                node->iostats = (int) (random() % 3) - 1;
                node->fua = (int) (random() % 3) - 1;
                node->rotational = (int) (random() % 3) - 1;
                node->read_only = (int) (random() % 3) - 1;
                node->max_sectors_kb = (int64_t) (random() % 3) - 1;
                node->nr_requests = (int64_t) random_u64();
                node->size_bytes = random_u64();
                node->diskseq = random_u64();
                if (random() % 2)
                        device->rows[device->n_rows++] = i;
        }
        if (device->n_rows) {
                (void) snprintf(device->name, sizeof device->name, "%s", device->nodes[device->rows[0]].name);
                device->major = device->nodes[device->rows[0]].major;
                device->minor = device->nodes[device->rows[0]].minor;
        }
        device->leaves_serve = random() % 2;
        return device;
}

static RunRecord *random_run(void)
{
        RunRecord *run = NULL;
        Judgement *judgement = NULL;

        assert_int_equal(run_record_new(&run), 0);
        judgement = &run->judgement;
        random_word(run->id, sizeof run->id);
        random_word(run->target, sizeof run->target);
        random_word(run->profile.name, sizeof run->profile.name);
        run->path = random_copy();
        run->certifying = random() % 2;
        run->trigger = (RunTrigger) (random() % _TRIGGER_MAX);
        run->state = (RunState) (random() % _RUN_STATE_MAX);
        run->queued_real_ns = (int64_t) (random_u64() / NS_PER_MS * NS_PER_MS);
        run->started_real_ns = (int64_t) (random_u64() / NS_PER_MS * NS_PER_MS);
        run->finished_real_ns = (int64_t) (random_u64() / NS_PER_MS * NS_PER_MS);
        run->elapsed_ns = random_u64() % 1000000000000000;
        run->stalled_ns = random() % 2 ? random_u64() % 1000000000000000 : 0;
        run->profile.block_size = random_u64();
        run->profile.count = random_u64();
        run->profile.streams = (unsigned) random() % (PROBE_MAX_STREAMS + 1);
        run->profile.pattern = (ProbePattern) (random() % _PATTERN_MAX);
        run->max_duration_ns = random_u64() % 1000000000000000;
        run->bytes_total = random_u64();
        run->bytes_written = random_u64();
        run->limits = (Limits){ .value = { 600, 20.5 }, .pass_ratio = 0.1 };
        if (run_state_ended(run->state))
                judgement->verdict = (Verdict) (1 + random() % (_VERDICT_MAX - 1));
        judgement->reasons.n = (size_t) random() % (MAX_REASONS + 1);
        for (size_t i = 0; i < judgement->reasons.n; i++) {
                judgement->reasons.items[i].code = (ReasonCode) (random() % _REASON_MAX);
                random_text(judgement->reasons.items[i].detail, sizeof judgement->reasons.items[i].detail);
        }
        judgement->criteria_known = random() % 2;
        for (size_t i = 0; i < N_CRITERIA; i++)
                judgement->criteria[i] = (Criterion){ .value = random_number(), .pass = random() % 2 };
        for (size_t i = 0; i < N_METRIC_COLUMNS; i++)
                memcpy((char *) &judgement->measured + metric_columns[i].offset, &(double){ random_number() },
                       sizeof(double));
        judgement->elapsed_s = random_number();
        judgement->app_write_mb_per_s = random_number();
        judgement->foreign_write_ratio = random_number();
        judgement->worst_sample_mb_per_s = random_number();
        judgement->samples_total = (unsigned) random();
        judgement->samples_passing = (unsigned) random() % (judgement->samples_total + 1U);
        judgement->samples_dropped = (unsigned) random();
        for (size_t i = 0; i < N_CRITERIA; i++)
                judgement->samples_missing[i] = (unsigned) random();
        run->has_latency = random() % 2;
        if (run->has_latency)
                run->latency = (LatencySummary){ random_number(), random_number(), random_number(),
                                                 random_number(), random_number(), random_number() };
        run->profile.duration_ns = random() % 2 ? random_u64() % 1000000000000000 : 0;
        run->profile.ramp = random() % 2;
        run->n_steps = run->profile.ramp ? (size_t) random() % (RAMP_MAX_STEPS + 1) : 0;
        for (size_t i = 0; i < run->n_steps; i++)
                run->steps[i] = (RampStep){ .streams = (unsigned) random() % (PROBE_MAX_STREAMS + 1),
                                            .meets_latency = random() % 2,
                                            .measured = { .wkb_s = (double) (random() % 1000000),
                                                          .w_await = random_number() },
                                            .app_write_mb_per_s = random_number(),
                                            .latency = { .p99 = random_number() } };
        if (random() % 4)
                run->device = random_device();
        return run;
}

static char *run_text(const RunRecord *run, bool evidence)
{
        json_auto_t *document = json_run(run, evidence);

        assert_non_null(document);
        char *text = json_document(document, NULL);
        assert_non_null(text);
        return text;
}

/* ---- tests ---- */

/* What is kept is served as it was written, and the fields are those that were written. */
static void test_round_trip(void **state)
{
        (void) state;
        srandom(20261130);
        for (unsigned i = 0; i < seeds_of(3000); i++) {
                _cleanup_(run_record_freep) RunRecord *run = random_run();
                _cleanup_(past_run_freep) PastRun *back = NULL;
                _cleanup_free_ char *kept = run_text(run, true), *wanted = run_text(run, false);
                const char *mount_point = run->device ? run->device->mount_point : NULL;
                char error[256] = "";

                if (past_run_read(&back, kept, strlen(kept), run->id, error, sizeof error) < 0)
                        fail_msg("record %d: %s\n%s", i, error, kept);
                wanted[strlen(wanted) - 1] = '\0'; /* the newline */
                assert_string_equal(back->text, wanted);
                assert_int_equal(back->size, strlen(wanted));
                json_auto_t *tree = json_run(run, false);
                assert_true(json_is_object(back->run) &&
                            json_object_size(back->run) == json_object_size(tree));
                assert_string_equal(back->id, run->id);
                assert_string_equal(back->target, name_is_valid(run->target) ? run->target : "");
                assert_string_equal(back->profile, name_is_valid(run->profile.name) ? run->profile.name : "");
                assert_int_equal(back->certifying, run->certifying);
                assert_int_equal(back->state, run->state);
                assert_int_equal(back->verdict, run->judgement.verdict);
                assert_int_equal(past_run_ended(back), run_state_ended(run->state));
                assert_true(back->queued_real_ns == run->queued_real_ns &&
                            back->started_real_ns == run->started_real_ns &&
                            back->finished_real_ns == run->finished_real_ns);
                assert_true(back->bytes_written ==
                            (run->bytes_written > INT64_MAX ? INT64_MAX : run->bytes_written));
                assert_int_equal(back->path == NULL, run->path == NULL);
                if (run->path)
                        assert_string_equal(back->path, run->path);
                assert_int_equal(back->mount_point == NULL, mount_point == NULL);
                if (mount_point)
                        assert_string_equal(back->mount_point, mount_point);
        }
}

/* Flipped bytes, cut ends and swapped pieces are damage, told in a sentence, or something that can be served:
 * whatever is, is JSON. */
static void test_damage(void **state)
{
        int refused = 0;

        (void) state;
        srandom(7);
        for (unsigned i = 0; i < seeds_of(3000); i++) {
                _cleanup_(run_record_freep) RunRecord *run = random_run();
                _cleanup_(past_run_freep) PastRun *back = NULL;
                _cleanup_free_ char *text = run_text(run, true);
                size_t size = strlen(text);
                char error[64] = "";

                for (int n = (int) (random() % 4); n >= 0; n--)
                        text[(size_t) random() % size] = "0\"{}[],:n-x\xff"[random() % 12];
                if (random() % 8 == 0)
                        size = (size_t) random() % size;
                int r = past_run_read(&back, text, size, run->id, error, sizeof error);
                if (r < 0) {
                        assert_int_equal(r, -EBADMSG);
                        assert_null(back);
                        assert_true(*error);
                        refused++;
                } else {
                        assert_non_null(back);
                        assert_true(json_is_object(back->run));
                }
        }
        assert_in_range(refused, seeds_of(1000), seeds_of(3000));
}

static const char id[] = "20261130T131405-7f3a9c";

/* The sample document with one member replaced (NULL: taken out). */
static int read_with(const char *key, const char *value, PastRun **ret, char *error, size_t error_size)
{
        _cleanup_(run_record_freep) RunRecord *run = NULL;

        assert_int_equal(run_record_new(&run), 0);
        (void) strcpy(run->id, id);
        (void) strcpy(run->target, "cache");
        (void) strcpy(run->profile.name, "procedure");
        run->state = RUN_FINISHED;
        run->judgement.verdict = VERDICT_PASS;
        json_auto_t *document = json_run(run, true);
        if (!value)
                assert_int_equal(json_object_del(document, key), 0);
        else
                assert_int_equal(json_object_set_new(document, key, json_loads(value, JSON_DECODE_ANY, NULL)),
                                 0);
        _cleanup_free_ char *text = json_document(document, NULL);
        return past_run_read(ret, text, strlen(text), id, error, error_size);
}

/* Documents of other releases: nothing in them but the id is a reason not to serve them. */
static void test_other_releases(void **state)
{
        static const struct {
                const char *key, *value;
                Verdict verdict;
        } others[] = {
                { "schema", "2", VERDICT_PASS },
                { "schema", "\"1\"", VERDICT_PASS },
                { "target", "\".hidden\"", VERDICT_PASS },
                { "target", NULL, VERDICT_PASS },
                { "profile", "null", VERDICT_PASS },
                { "trigger", "\"cron\"", VERDICT_PASS },
                { "state", "\"dancing\"", VERDICT_PASS },
                { "state", NULL, VERDICT_PASS },
                { "verdict", "\"never_run\"", VERDICT_INCONCLUSIVE },
                { "verdict", "\"splendid\"", VERDICT_INCONCLUSIVE },
                { "verdict", "7", VERDICT_INCONCLUSIVE },
                { "verdict", "null", VERDICT_INCONCLUSIVE },
                { "reasons", "{}", VERDICT_PASS },
                { "reasons", "[1]", VERDICT_PASS },
                { "reasons", "[{\"code\":\"nobody_knows\",\"detail\":\"\"}]", VERDICT_PASS },
                { "reasons", "[{},{},{},{},{},{},{},{},{},{},{},{},{}]", VERDICT_PASS },
                { "started_at", "\"yesterday\"", VERDICT_PASS },
                { "started_at", "1", VERDICT_PASS },
                { "elapsed_s", "-1", VERDICT_PASS },
                { "bytes_written", "-1", VERDICT_PASS },
                { "bytes_written", "1.5", VERDICT_PASS },
                { "bytes_written", NULL, VERDICT_PASS },
                { "test", "[]", VERDICT_PASS },
                { "criteria", "[{\"name\":\"beauty\"}]", VERDICT_PASS },
                { "measured", "null", VERDICT_PASS },
                { "device", "\"sda\"", VERDICT_PASS },
                { "device", "{\"mount_point\":3}", VERDICT_PASS },
                { "evidence", "null", VERDICT_PASS },
                { "new_with_us", "{\"a\":[1,2,{\"b\":null}]}", VERDICT_PASS },
        };
        char error[200];

        (void) state;
        for (size_t i = 0; i < ELEMENTSOF(others); i++) {
                _cleanup_(past_run_freep) PastRun *run = NULL;
                const char *key = others[i].key;

                if (read_with(key, others[i].value, &run, error, sizeof error) < 0)
                        fail_msg("refused: %s = %s: %s", key, others[i].value, error);
                assert_string_equal(run->id, id);
                assert_int_equal(run->verdict, others[i].verdict);
                assert_int_equal(run->bytes_written, 0);
                if (strcmp(key, "schema") == 0 || strcmp(key, "evidence") == 0)
                        continue;
                json_auto_t *wanted =
                        others[i].value ? json_loads(others[i].value, JSON_DECODE_ANY, NULL) : NULL;
                const json_t *served = json_object_get(run->run, key);
                assert_true(wanted ? json_equal(wanted, served) : !served);
        }
}

static void test_no_run(void **state)
{
        static const struct {
                const char *key, *value;
        } bad[] = { { "id", NULL },
                    { "id", "\"\"" },
                    { "id", "\"../../etc/passwd\"" },
                    { "id", "\"20261130T131405-7f3a9d\"" },
                    { "id", "7" } };
        static const char *const texts[] = {
                "[]", "", "7", "{", "{}", "{\"id\":\"20261130T131405-7f3a9c\"}x"
        };
        PastRun *run = NULL;
        char error[200];

        (void) state;
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                *error = '\0';
                assert_int_equal(read_with(bad[i].key, bad[i].value, &run, error, sizeof error), -EBADMSG);
                assert_true(strlen(error) > 10);
        }
        for (size_t i = 0; i < ELEMENTSOF(texts); i++)
                assert_int_equal(past_run_read(&run, texts[i], strlen(texts[i]), id, error, sizeof error),
                                 -EBADMSG);
        assert_null(run);
}

/* A run that was cut off is closed, and the rest of its document stays what it was. */
static void test_close(void **state)
{
        static const char *const kept[] = {
                "id", "target", "queued_at", "started_at", "bytes_total", "extra"
        };

        (void) state;
        srandom(11);
        for (unsigned i = 0; i < seeds_of(500); i++) {
                _cleanup_(run_record_freep) RunRecord *record = random_run();
                _cleanup_(past_run_freep) PastRun *run = NULL;
                _cleanup_free_ char *closed = NULL;
                size_t size = 0;
                char error[200];

                record->state = random() % 2 ? RUN_RUNNING : RUN_QUEUED;
                record->finished_real_ns = 0;
                json_auto_t *document = json_run(record, random() % 2);
                assert_int_equal(json_object_set_new(document, "extra", json_integer(i)), 0);
                _cleanup_free_ char *text = json_document(document, NULL);
                assert_int_equal(past_run_close(text, strlen(text), "It was cut off.", &closed, &size), 0);
                assert_int_equal(past_run_read(&run, closed, size, record->id, error, sizeof error), 0);
                assert_int_equal(run->state, RUN_ABORTED);
                assert_int_equal(run->verdict, VERDICT_INCONCLUSIVE);
                assert_true(run->finished_real_ns == past_run_begin_real_ns(run));
                const json_t *reason = json_array_get(json_object_get(run->run, "reasons"), 0);
                assert_string_equal(json_string_value(json_object_get(reason, "code")), "aborted");
                assert_string_equal(json_string_value(json_object_get(reason, "detail")), "It was cut off.");
                for (size_t k = 0; k < ELEMENTSOF(kept); k++)
                        assert_true(json_equal(json_object_get(document, kept[k]),
                                               json_object_get(run->run, kept[k])));
        }
}

static void assert_keys_first(const json_t *object, const char *const *keys)
{
        /* The iterator is jansson's own, which has no const form. */
        void *at = json_object_iter((json_t *) (uintptr_t) object);

        for (; *keys; keys++) {
                assert_non_null(at);
                assert_string_equal(json_object_iter_key(at), *keys);
                at = json_object_iter_next((json_t *) (uintptr_t) object, at);
        }
}

static void test_shape(void **state)
{
        static const char *const keys[] = {
                "id",        "target",   "profile",     "certifying",    "trigger",
                "state",     "verdict",  "reasons",     "started_at",    "finished_at",
                "elapsed_s", "test",     "bytes_total", "bytes_written", "progress",
                "criteria",  "measured", "samples",     "latency_ms",    "foreign_write_ratio",
                "device",    NULL
        };
        static const char *const measured[] = { "wkB/s",  "w_await", "w/s",
                                                "aqu-sz", "util",    "app_write_mb_per_s",
                                                NULL };
        static const char *const criterion[] = { "name", "value", "unit", "limit", "column", "pass", NULL };
        static const char *const unknown[] = { "verdict",    "started_at",          "finished_at", "progress",
                                               "latency_ms", "foreign_write_ratio", "device" };
        _cleanup_(run_record_freep) RunRecord *run = NULL;

        (void) state;
        assert_int_equal(run_record_new(&run), 0);
        run->limits = limits_default();
        json_auto_t *object = json_run(run, false);
        assert_keys_first(object, keys);
        assert_keys_first(json_object_get(object, "measured"), measured);
        for (size_t i = 0; i < ELEMENTSOF(unknown); i++)
                assert_true(json_is_null(json_object_get(object, unknown[i])));

        /* Both requirements are there from the start, with their limits and without a value. */
        const json_t *criteria = json_object_get(object, "criteria");
        assert_int_equal(json_array_size(criteria), 2);
        for (size_t i = 0; i < 2; i++) {
                const json_t *item = json_array_get(criteria, i);
                assert_keys_first(item, criterion);
                assert_true(json_is_null(json_object_get(item, "value")));
                assert_true(json_is_null(json_object_get(item, "pass")));
                assert_true(json_number_value(json_object_get(item, "limit")) > 19.5);
        }
        assert_null(json_object_get(object, "evidence"));
}

static void test_evidence(void **state)
{
        _cleanup_(run_record_freep) RunRecord *run = NULL;

        (void) state;
        assert_int_equal(run_record_new(&run), 0);
        run->path = strdup("/db2/it's");
        run->profile.block_size = 1 << 20;
        run->profile.count = 10000;
        run->n_samples = 3;
        run->samples = calloc(3, sizeof *run->samples);
        for (size_t i = 0; i < 3; i++)
                run->samples[i] = (Reading){
                        .row = { .mono_ns = (i + 1) * NS_PER_S,
                                 .boot_ns = (i + 1) * NS_PER_S,
                                 .real_ns = (int64_t) NS_PER_S,
                                 .counters = { .n_fields = 17, .w_ios = 10 * i, .w_sectors = 2000 * i } }
                };
        run->last_is_tick = true;
        run->n_slowest = 1;
        run->slowest[0] = (ProbeSlowWrite){ .latency_ns = 5 * NS_PER_MS, .offset_bytes = 4096, .stream = 2 };
        json_auto_t *object = json_run(run, true);
        assert_int_equal(json_integer_value(json_object_get(object, "schema")), 1);
        const json_t *evidence = json_object_get(object, "evidence");
        assert_string_equal(
                json_string_value(json_object_get(evidence, "command")),
                "dd if=/dev/zero of='/db2/it'\\''s/testfile' bs=1M count=10000 oflag=direct,dsync");
        const json_t *samples = json_object_get(evidence, "samples");
        assert_int_equal(json_array_size(samples), 2);
        assert_true(json_is_false(json_object_get(json_array_get(samples, 0), "full")));
        assert_true(json_is_true(json_object_get(json_array_get(samples, 1), "full")));
        double wkb_s = json_number_value(json_object_get(json_array_get(samples, 1), "wkB/s"));
        assert_true(wkb_s > 999.9 && wkb_s < 1000.1);
        const json_t *slow = json_array_get(json_object_get(evidence, "slowest_writes"), 0);
        assert_int_equal(json_integer_value(json_object_get(slow, "stream")), 2);
        assert_true(json_number_value(json_object_get(slow, "latency_ms")) > 4.99);
}

static void test_text(void **state)
{
        static const struct {
                const char *in, *out;
        } cases[] = {
                { "plain", "plain" },
                { "\xc3\xa4\xf0\x9f\x98\x80", "\xc3\xa4\xf0\x9f\x98\x80" },
                { "a\xff"
                  "b",
                  "a\xef\xbf\xbd"
                  "b" },
                { "\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd" },                                 /* overlong */
                { "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },                 /* surrogate */
                { "\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" }, /* too large */
                { "x\xe2\x82", "x\xef\xbf\xbd\xef\xbf\xbd" },                               /* cut */
        };

        (void) state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                json_auto_t *text = json_text(cases[i].in);
                assert_string_equal(json_string_value(text), cases[i].out);
        }
        /* Whatever comes out, jansson's own check takes it. */
        srandom(3);
        for (unsigned i = 0; i < seeds_of(20000); i++) {
                char bytes[12];

                for (size_t b = 0; b < sizeof bytes - 1; b++)
                        bytes[b] = (char) ("\xc3\xa4\xe2\x82\xac\xed\xf0\x9f\x98\x80"
                                           "aa"[random() % 12]);
                bytes[sizeof bytes - 1] = '\0';
                json_auto_t *text = json_text(bytes);
                json_auto_t *checked = json_string(json_string_value(text));
                json_auto_t *original = json_string(bytes);
                assert_non_null(checked);
                if (original)
                        assert_true(json_equal(original, text));
                else
                        assert_non_null(strstr(json_string_value(text), "\xef\xbf\xbd"));
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_shape),  cmocka_unit_test(test_evidence),
                cmocka_unit_test(test_text),   cmocka_unit_test(test_round_trip),
                cmocka_unit_test(test_damage), cmocka_unit_test(test_other_releases),
                cmocka_unit_test(test_no_run), cmocka_unit_test(test_close),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
