/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one ProbePlan from the command line and prints what it cost, as JSON: for benchmarks and for tests
 * that need a writer without the daemon.
 *
 *     probe-run [--block=SIZE] [--count=N] [--streams=N] [--random] [--wrap=SIZE] [--min-free=SIZE]
 *               [--as-dd] [--hold] [--bare] DIRECTORY
 *
 * --hold   waits for a line on stdin before the files are released
 * --as-dd  reads /dev/zero for each block, as dd does
 * --bare   one stream's write calls alone, in this process: neither histogram nor progress nor children */

#include "../../src/probe/probe-internal.h"
#include "../../src/probe/test-file.h"
#include "tierprobe/child.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/probe.h"
#include "tierprobe/units.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static const char *const outcomes[_PROBE_OUTCOME_MAX] = {
        [PROBE_OK] = "ok",
        [PROBE_STOPPED] = "stopped",
        [PROBE_KILLED] = "killed",
        [PROBE_PATH_MISSING] = "path_missing",
        [PROBE_SYMLINK] = "symlink",
        [PROBE_NOT_WRITABLE] = "not_writable",
        [PROBE_DIRECT_REFUSED] = "direct_refused",
        [PROBE_NO_SPACE] = "no_space",
        [PROBE_WRITE_ERROR] = "write_error",
        [PROBE_INTERNAL] = "internal",
};

static double cpu_seconds(int who)
{
        struct rusage usage;

        (void) getrusage(who, &usage);
        return (double) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
               (double) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static int run_bare(const ProbePlan *plan)
{
        int dir_fd, fd, error = 0;
        dev_t dev;
        void *block =
                mmap(NULL, plan->block_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (block == MAP_FAILED || test_file_open(plan->path, &dir_fd, &dev, &error) != PROBE_OK ||
            test_file_create(dir_fd, &fd, NULL, &error) != PROBE_OK) {
                (void) fprintf(stderr, "%s: %s\n", plan->path, strerror(error));
                return EXIT_FAILURE;
        }
        memset(block, 0, plan->block_size);
        double cpu = -cpu_seconds(RUSAGE_SELF);
        uint64_t start_ns = clock_ns(CLOCK_MONOTONIC);
        for (uint64_t n = 0; n < plan->count; n++)
                if (write(fd, block, plan->block_size) != (ssize_t) plan->block_size) {
                        (void) fprintf(stderr, "write: %s\n", strerror(errno));
                        return EXIT_FAILURE;
                }
        uint64_t end_ns = clock_ns(CLOCK_MONOTONIC);
        cpu += cpu_seconds(RUSAGE_SELF);
        (void) printf(
                "{\"outcome\": \"ok\", \"seconds\": %.6f, \"bytes\": %ju, \"writing_cpu_seconds\": %.6f}\n",
                (double) (end_ns - start_ns) / 1e9, (uintmax_t) (plan->block_size * plan->count), cpu);
        return EXIT_SUCCESS;
}

/* Follows the probe until it is in state WANTED or a later one. */
static ProbeState follow(Probe *probe, ProbeState wanted)
{
        ProbeState state;

        while ((state = probe_process(probe)) < wanted) {
                struct pollfd poll_fd = { .fd = probe_get_fd(probe), .events = POLLIN };
                (void) poll(&poll_fd, 1, -1);
        }
        return state;
}

/* What the writers alone have used so far: neither this process nor fork and exit. */
static double writers_cpu_seconds(const Probe *probe)
{
        double seconds = 0;

        for (unsigned i = 0; i < probe->plan.streams; i++) {
                const Child *child = probe->streams[i].child;
                struct timespec used;
                clockid_t clock;

                if (child && clock_getcpuclockid(child->pid, &clock) == 0 && clock_gettime(clock, &used) == 0)
                        seconds += (double) used.tv_sec + (double) used.tv_nsec / 1e9;
        }
        return seconds;
}

static void print_result(const Probe *probe, uint64_t ns, double writing_cpu_seconds)
{
        static const double fractions[] = { 0.5, 0.9, 0.99, 0.999, 1 };
        ProbeProgress progress;
        Histogram latency;

        probe_progress(probe, &progress);
        probe_latency(probe, &latency);
        (void) printf("{\"outcome\": \"%s\", \"error\": \"%s\", \"stream\": %u, \"failed_offset\": %ju, "
                      "\"writing_failed\": %s, \"seconds\": %.6f, \"bytes\": %ju, \"blocks\": %ju, "
                      "\"free\": %ju, \"needed\": %ju, \"cpu_seconds\": %.6f, \"writing_cpu_seconds\": %.6f, "
                      "\"latency_ms\": {",
                      outcomes[progress.outcome], progress.error ? strerrorname_np(progress.error) : "",
                      progress.failed_stream, (uintmax_t) progress.failed_offset_bytes,
                      progress.writing_failed ? "true" : "false", (double) ns / 1e9,
                      (uintmax_t) progress.bytes_written, (uintmax_t) progress.blocks_written,
                      (uintmax_t) progress.free_bytes, (uintmax_t) progress.needed_bytes,
                      cpu_seconds(RUSAGE_CHILDREN), writing_cpu_seconds);
        for (size_t i = 0; i < ELEMENTSOF(fractions); i++)
                (void) printf("%s\"%g\": %.4f", i ? ", " : "", fractions[i],
                              (double) histogram_quantile_ns(&latency, fractions[i]) / 1e6);
        (void) printf("}}\n");
}

static int run_probe(const ProbePlan *plan, bool hold)
{
        _cleanup_(probe_freep) Probe *probe = NULL;

        int r = probe_new(plan, &probe);
        if (r < 0) {
                (void) fprintf(stderr, "probe_new: %s\n", strerror(-r));
                return EXIT_FAILURE;
        }
        (void) follow(probe, PROBE_READY);
        double cpu = -writers_cpu_seconds(probe);
        uint64_t start_ns = clock_ns(CLOCK_MONOTONIC);
        probe_go(probe);
        (void) follow(probe, PROBE_DONE);
        uint64_t end_ns = clock_ns(CLOCK_MONOTONIC);
        cpu += writers_cpu_seconds(probe);
        if (hold) {
                (void) puts("held");
                (void) fflush(stdout);
                (void) getchar();
        }
        probe_release(probe);
        (void) follow(probe, PROBE_GONE);
        print_result(probe, end_ns - start_ns, cpu);
        return EXIT_SUCCESS;
}

enum { OPTION_BLOCK = 256, OPTION_COUNT, OPTION_STREAMS, OPTION_WRAP, OPTION_MIN_FREE };

int main(int argc, char **argv)
{
        int random = 0, as_dd = 0, hold = 0, bare = 0, option;
        const struct option options[] = {
                { "block", required_argument, NULL, OPTION_BLOCK },
                { "count", required_argument, NULL, OPTION_COUNT },
                { "streams", required_argument, NULL, OPTION_STREAMS },
                { "wrap", required_argument, NULL, OPTION_WRAP },
                { "min-free", required_argument, NULL, OPTION_MIN_FREE },
                { "random", no_argument, &random, 1 },
                { "as-dd", no_argument, &as_dd, 1 },
                { "hold", no_argument, &hold, 1 },
                { "bare", no_argument, &bare, 1 },
                { 0 },
        };
        ProbePlan plan = { .block_size = 1 << 20, .count = 100, .streams = 1 };
        uint64_t value;

        while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
                if (option == 0)
                        continue;
                if (option == '?' || parse_size(optarg, &value) < 0)
                        return 2;
                if (option == OPTION_BLOCK)
                        plan.block_size = value;
                else if (option == OPTION_COUNT)
                        plan.count = value;
                else if (option == OPTION_STREAMS)
                        plan.streams = (unsigned) value;
                else if (option == OPTION_WRAP)
                        plan.wrap_bytes = value;
                else
                        plan.min_free_bytes = value;
        }
        if (optind != argc - 1)
                return 2;
        plan.path = argv[optind];
        plan.as_dd = as_dd;
        plan.pattern = random ? PATTERN_RANDOM : PATTERN_ZERO;
        return bare ? run_bare(&plan) : run_probe(&plan, hold);
}
