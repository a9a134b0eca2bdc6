/* SPDX-License-Identifier: Apache-2.0 */
/* What keeping costs: appending a sample, opening a ring of a month at a second, finding the last runs among
 * a thousand, serving them all. Prints times; judges nothing. */

#include "../../src/daemon/past.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/file.h"
#include "tierprobe/history.h"
#include "tierprobe/json.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MONTH 2678400U /* samples of 31 days */
#define DAY 86400U
#define RUNS 1000
#define ROUNDS 9

static char folder[] = "/dev/shm/bench-state-XXXXXX";
static int dir_fd;

static int compare_doubles(const void *a, const void *b)
{
        double x = *(const double *) a, y = *(const double *) b;

        return (x > y) - (x < y);
}

static void report(const char *what, double *values, const char *unit)
{
        qsort(values, ROUNDS, sizeof values[0], compare_doubles);
        (void) printf("  %-62s %8.2f %s (%.2f..%.2f)\n", what, values[ROUNDS / 2], unit, values[0],
                      values[ROUNDS - 1]);
}

static void check(int r, const char *what)
{
        if (r < 0)
                errx(1, "%s: %s", what, strerror(-r));
}

static double ms_since(uint64_t begin_ns)
{
        return (double) (clock_ns(CLOCK_MONOTONIC) - begin_ns) / (double) NS_PER_MS;
}

/* ---- samples ---- */

static RingRecord make_record(uint64_t n)
{
        RingRecord record = { .device = "nvme0n1",
                              .snapshot = { .mono_ns = n * NS_PER_S,
                                            .boot_ns = n * NS_PER_S,
                                            .real_ns = (int64_t) (1796044445 + n) * (int64_t) NS_PER_S,
                                            .major = 259,
                                            .counters = { .n_fields = 17,
                                                          .w_ios = 1000 * n,
                                                          .w_sectors = 1000000 * n,
                                                          .w_ms = (uint32_t) (900 * n),
                                                          .io_ms = (uint32_t) (800 * n) } } };

        return record;
}

/* The file is as large as that of a month; what is older than a day is a hole. */
static void bench_ring(void)
{
        double append_us[ROUNDS], open_ms[ROUNDS];
        Ring *ring = NULL;

        check(ring_open(&ring, dir_fd, "month.ring", MONTH, NULL), "ring_open");
        for (int round = 0; round < ROUNDS; round++) {
                uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);

                for (uint64_t n = 0; n < 10000; n++) {
                        RingRecord record = make_record((uint64_t) round * 10000 + n);
                        check(ring_append(ring, &record), "ring_append");
                }
                append_us[round] = ms_since(begin_ns) * 1000 / 10000;
        }
        ring_free(ring);
        for (int round = 0; round < ROUNDS; round++) {
                uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);

                check(ring_open(&ring, dir_fd, "month.ring", MONTH, NULL), "ring_open");
                open_ms[round] = ms_since(begin_ns);
                ring_free(ring);
        }
        report("append a sample", append_us, "us");
        report("open a ring of a month", open_ms, "ms");
}

/* ---- runs ---- */

/* A run as the procedure leaves it: 17 samples at 600 MB/s. */
static void make_runs(void)
{
        RunRecord *record = NULL;
        RunStore *store = NULL;
        size_t size = 0;

        check(run_store_open(&store, dir_fd, "runs"), "run_store_open");
        check(run_record_new(&record), "run_record_new");
        record->state = RUN_FINISHED;
        record->judgement.verdict = VERDICT_PASS;
        record->path = strdup("/db2/cache");
        record->bytes_written = UINT64_C(10485760000);
        record->n_samples = 18;
        record->samples = calloc(record->n_samples, sizeof *record->samples);
        record->device = calloc(1, sizeof *record->device);
        record->device->mount_point = strdup("/db2");
        record->device->nodes = calloc(3, sizeof *record->device->nodes);
        record->device->n_nodes = 3;
        (void) strcpy(record->target, "cache");
        (void) strcpy(record->profile.name, "procedure");
        for (size_t i = 0; i < record->n_samples; i++)
                record->samples[i].row = make_record(i).snapshot;
        for (int64_t i = 0; i < RUNS; i++) {
                record->queued_real_ns = (1700000000 + i * 86400) * (int64_t) NS_PER_S;
                run_id_make(record->id, record->queued_real_ns);
                json_auto_t *document = json_run(record, true);
                _cleanup_free_ char *text = json_document(document, &size);
                check(run_store_put(store, record->id, text, size), "run_store_put");
                if (run_store_waiting(store) == 100 || i + 1 == RUNS)
                        check(-(int) run_store_finish(store, 60000), "run_store_finish");
        }
        (void) printf("  %d documents of %.1f kB\n", RUNS, (double) size / 1000);
        run_record_free(record);
        run_store_free(store);
}

static void on_interrupted(const PastRun *run, void *userdata)
{
        (void) run;
        (void) userdata;
}

static double open_past(const PastSubject *subjects, size_t n, Past **ret)
{
        const HistoryRules rules = { .keep_runs = RUNS, .keep_for_ns = 3650 * NS_PER_DAY };
        uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);

        check(past_new(ret, dir_fd, &rules, &(PastEvents){ .interrupted = on_interrupted }), "past_new");
        past_follow(*ret, subjects, n, &rules);
        return ms_since(begin_ns);
}

static void bench_runs(void)
{
        static const PastSubject subjects[] = { { "cache", "/db2/cache", "procedure" },
                                                { "other", "/db2/other", "procedure" } };
        double usual_ms[ROUNDS], never_ms[ROUNDS], all_ms[ROUNDS], worst_ms[ROUNDS];
        Past *past = NULL;

        for (int round = 0; round < ROUNDS; round++) {
                char before[RUN_ID_SIZE];

                usual_ms[round] = open_past(subjects, 1, &past);
                past_free(past);
                never_ms[round] = open_past(subjects, 2, &past);
                uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
                worst_ms[round] = 0;
                for (const char *id = past_older(past, NULL); id; id = past_older(past, before)) {
                        _cleanup_(past_run_freep) PastRun *run = NULL;
                        uint64_t one_ns = clock_ns(CLOCK_MONOTONIC);

                        (void) snprintf(before, sizeof before, "%s", id);
                        check(past_read(past, before, &run, NULL, NULL), "past_read");
                        double ms = ms_since(one_ns);
                        worst_ms[round] = ms > worst_ms[round] ? ms : worst_ms[round];
                }
                all_ms[round] = ms_since(begin_ns);
                past_free(past);
        }
        report("find the last run among a thousand", usual_ms, "ms");
        report("the same beside a target that never ran", never_ms, "ms");
        report("serve all thousand", all_ms, "ms");
        report("the slowest of them", worst_ms, "ms");
}

int main(void)
{
        char command[64];

        if (!mkdtemp(folder))
                err(1, "%s", folder);
        dir_fd = open(folder, O_DIRECTORY | O_CLOEXEC);
        if (dir_fd < 0)
                err(1, "%s", folder);
        bench_ring();
        make_runs();
        bench_runs();
        (void) snprintf(command, sizeof command, "rm -rf '%s'", folder);
        return system(command); /* NOLINT(concurrency-mt-unsafe,cert-env33-c): its own folder */
}
