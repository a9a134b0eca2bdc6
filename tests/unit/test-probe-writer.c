/* SPDX-License-Identifier: Apache-2.0 */
/* The write test on whatever file system is here: how it goes, ends, fails, and what it leaves: nothing. */

#include "probe-fixture.h"

#include "tierprobe/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define KIB 1024
#define MIB (1024 * KIB)

/* Writes until told otherwise, in the space of a few files. */
static ProbePlan endless(const Fixture *fixture, unsigned streams)
{
        return (ProbePlan){
                .path = fixture->directory,
                .block_size = 64 * KIB,
                .count = UINT32_MAX,
                .streams = streams,
                .wrap_bytes = 1 * MIB,
        };
}

static ProbePlan short_plan(const Fixture *fixture, unsigned streams)
{
        return (ProbePlan){
                .path = fixture->directory, .block_size = 64 * KIB, .count = 24, .streams = streams
        };
}

static ProbeState follow(Probe *probe, ProbeState wanted)
{
        ProbeState state;

        while ((state = probe_process(probe)) < wanted) {
                struct pollfd poll_fd = { .fd = probe_get_fd(probe), .events = POLLIN };
                (void) poll(&poll_fd, 1, -1);
        }
        return state;
}

static ProbeProgress progress_of(const Probe *probe)
{
        ProbeProgress progress;

        probe_progress(probe, &progress);
        return progress;
}

/* Starts and comes to READY; skips the test where direct writing is refused. */
static Probe *start(const ProbePlan *plan)
{
        Probe *probe = NULL;

        assert_int_equal(probe_new(plan, &probe), 0);
        if (follow(probe, PROBE_READY) != PROBE_READY) {
                ProbeProgress progress = progress_of(probe);

                probe_release(probe);
                (void) follow(probe, PROBE_GONE);
                (void) probe_free(probe);
                if (progress.outcome == PROBE_DIRECT_REFUSED)
                        skip();
                fail_msg("outcome %d, %s", (int) progress.outcome, strerror(progress.error));
        }
        return probe;
}

static void finish(Probe *probe)
{
        probe_release(probe);
        assert_int_equal(follow(probe, PROBE_GONE), PROBE_GONE);
        assert_null(probe_free(probe));
        expect_no_children();
}

static void await_blocks(Probe *probe, uint64_t blocks)
{
        while (progress_of(probe).blocks_written < blocks)
                assert_int_equal(probe_process(probe), PROBE_WRITING);
}

static void check_writes(const Probe *probe, const ProbePlan *plan, uint64_t blocks)
{
        static Histogram latency;
        ProbeSlowWrite slowest[PROBE_N_SLOWEST];

        probe_latency(probe, &latency);
        assert_int_equal(latency.count, blocks);
        size_t n = probe_slowest(probe, slowest);
        assert_int_equal(n, blocks < PROBE_N_SLOWEST ? blocks : PROBE_N_SLOWEST);
        assert_int_equal(slowest[0].latency_ns, latency.max_ns);
        for (size_t i = 0; i < n; i++) {
                assert_true(slowest[i].latency_ns > 0);
                assert_true(i == 0 || slowest[i].latency_ns <= slowest[i - 1].latency_ns);
                assert_true(slowest[i].stream < plan->streams);
                assert_int_equal(slowest[i].offset_bytes % plan->block_size, 0);
                assert_true(slowest[i].start_ns < UINT64_C(1) << 40);
        }
}

static void run_whole(const Fixture *fixture, const ProbePlan *plan)
{
        uint64_t blocks = plan->count * plan->streams;
        struct stat st;

        Probe *probe = start(plan);
        ProbeProgress progress = progress_of(probe);
        assert_int_equal(stat(plan->path, &st), 0);
        assert_true(progress.path_dev == st.st_dev);
        assert_true(progress.free_bytes >= progress.needed_bytes && progress.needed_bytes > 0);
        assert_int_equal(progress.bytes_written, 0);
        assert_int_equal(progress.oldest_write_ns, 0);
        assert_int_equal(fixture_entries(fixture), 0);

        probe_go(probe);
        assert_int_equal(follow(probe, PROBE_DONE), PROBE_DONE);
        progress = progress_of(probe);
        assert_int_equal(progress.outcome, PROBE_OK);
        assert_int_equal(progress.error, 0);
        assert_int_equal(progress.blocks_written, blocks);
        assert_int_equal(progress.bytes_written, blocks * plan->block_size);
        assert_int_equal(progress.oldest_write_ns, 0);
        assert_int_equal(progress.streams_done, plan->streams);
        assert_int_equal(progress.streams_writing, 0);
        check_writes(probe, plan, blocks);
        assert_int_equal(fixture_entries(fixture), 0);

        /* What does not fit the state does nothing. */
        probe_go(probe);
        probe_stop(probe);
        assert_int_equal(probe_process(probe), PROBE_DONE);
        finish(probe);
}

static void test_whole(void **state)
{
        ProbePlan plan = short_plan(*state, 1);

        run_whole(*state, &plan);
        plan.block_size = PROBE_BLOCK_MIN;
        plan.count = 3;
        run_whole(*state, &plan);
}

static void test_streams(void **state)
{
        ProbePlan plan = short_plan(*state, 5);

        plan.pattern = PATTERN_RANDOM;
        run_whole(*state, &plan);
}

static void test_wrap(void **state)
{
        ProbePlan plan = short_plan(*state, 2);
        ProbeSlowWrite slowest[PROBE_N_SLOWEST];

        plan.wrap_bytes = 3 * plan.block_size + 4096; /* three blocks fit */
        Probe *probe = start(&plan);
        assert_int_equal(progress_of(probe).needed_bytes, 2 * 2 * plan.wrap_bytes);
        probe_go(probe);
        (void) follow(probe, PROBE_DONE);
        assert_int_equal(progress_of(probe).blocks_written, 48);
        size_t n = probe_slowest(probe, slowest);
        for (size_t i = 0; i < n; i++)
                assert_true(slowest[i].offset_bytes <= 2 * plan.block_size);
        finish(probe);
}

static void test_stop(void **state)
{
        ProbePlan plan = endless(*state, 3);
        Probe *probe = start(&plan);

        probe_go(probe);
        await_blocks(probe, 40);
        assert_int_equal(progress_of(probe).streams_writing, 3);
        probe_stop(probe);
        assert_int_equal(follow(probe, PROBE_DONE), PROBE_DONE);
        ProbeProgress progress = progress_of(probe);
        assert_int_equal(progress.outcome, PROBE_STOPPED);
        assert_int_equal(progress.bytes_written, progress.blocks_written * plan.block_size);
        check_writes(probe, &plan, progress.blocks_written);
        finish(probe);
}

static void test_stop_before_go(void **state)
{
        ProbePlan plan = endless(*state, 3);
        Probe *probe = start(&plan);

        probe_stop(probe);
        assert_int_equal(follow(probe, PROBE_DONE), PROBE_DONE);
        assert_int_equal(progress_of(probe).outcome, PROBE_STOPPED);
        assert_int_equal(progress_of(probe).bytes_written, 0);
        finish(probe);

        assert_int_equal(probe_new(&plan, &probe), 0);
        probe_stop(probe); /* while they prepare */
        assert_int_equal(follow(probe, PROBE_DONE), PROBE_DONE);
        assert_int_equal(progress_of(probe).outcome, PROBE_STOPPED);
        assert_int_equal(progress_of(probe).bytes_written, 0);
        finish(probe);
}

static void test_kill(void **state)
{
        ProbePlan plan = endless(*state, 3);
        Probe *probe = start(&plan);

        probe_go(probe);
        await_blocks(probe, 10);
        probe_kill(probe);
        assert_int_equal(progress_of(probe).outcome, PROBE_KILLED);
        assert_int_equal(follow(probe, PROBE_GONE), PROBE_GONE);
        assert_int_equal(progress_of(probe).outcome, PROBE_KILLED);
        assert_int_equal(progress_of(probe).oldest_write_ns, 0);
        assert_null(probe_free(probe));
        expect_no_children();
}

/* One child is killed by somebody else: it is named, and the others end in order. */
static void test_kill_one(void **state)
{
        ProbePlan plan = endless(*state, 3);
        pid_t pids[4];

        Probe *probe = start(&plan);
        assert_int_equal(find_children("tierprobe-write", pids, 4), 3);
        probe_go(probe);
        await_blocks(probe, 10);
        assert_int_equal(kill(pids[1], SIGKILL), 0);
        assert_int_equal(follow(probe, PROBE_DONE), PROBE_DONE);
        ProbeProgress progress = progress_of(probe);
        assert_int_equal(progress.outcome, PROBE_KILLED);
        assert_true(progress.writing_failed);
        assert_int_equal(progress.streams_done, 3);
        /* pids need not rise with the streams, but do unless they have just wrapped */
        if (pids[2] - pids[0] == 2)
                assert_int_equal(progress.failed_stream, 1);
        finish(probe);
}

/* A killed child that had finished has finished. */
static void test_kill_finished(void **state)
{
        ProbePlan plan = short_plan(*state, 1);
        pid_t pid;

        Probe *probe = start(&plan);
        assert_int_equal(find_children("tierprobe-write", &pid, 1), 1);
        probe_go(probe);
        (void) follow(probe, PROBE_DONE);
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(follow(probe, PROBE_GONE), PROBE_GONE);
        assert_int_equal(progress_of(probe).outcome, PROBE_OK);
        finish(probe);
}

static void test_free_at_any_time(void **state)
{
        ProbePlan plan = endless(*state, 2);
        Probe *probe = NULL;

        assert_null(probe_free(NULL));
        assert_int_equal(probe_new(&plan, &probe), 0);
        assert_null(probe_free(probe));
        probe = start(&plan);
        assert_null(probe_free(probe));
        probe = start(&plan);
        probe_go(probe);
        await_blocks(probe, 3);
        assert_null(probe_free(probe));
        expect_no_children();
}

/* The writers' only inherited descriptor is stderr: when nobody holds that pipe any more, all are dead. */
static void test_parent_killed(void **state)
{
        ProbePlan plan = endless(*state, 3);
        int pipe_fds[2];
        char text[256];

        (void) probe_free(start(&plan)); /* or skip here, not in a child */
        expect_no_children();
        assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                Probe *probe = NULL;

                (void) dup2(pipe_fds[1], STDERR_FILENO);
                (void) close(pipe_fds[1]);
                if (probe_new(&plan, &probe) < 0 || follow(probe, PROBE_READY) != PROBE_READY)
                        _exit(1);
                probe_go(probe);
                while (progress_of(probe).blocks_written < 10)
                        ;
                (void) !write(STDERR_FILENO, "!", 1);
                for (;;)
                        (void) pause();
        }
        (void) close(pipe_fds[1]);
        assert_int_equal(read(pipe_fds[0], text, sizeof text), 1);
        assert_int_equal(text[0], '!');
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        assert_int_equal(read(pipe_fds[0], text, sizeof text), 0);
        (void) close(pipe_fds[0]);
}

/* ---- what a writer has of its parent: next to nothing ---- */

static void read_status(pid_t pid, const char *key, char *ret, size_t size)
{
        char path[64], line[256];

        (void) snprintf(path, sizeof path, "/proc/%d/status", pid);
        _cleanup_fclose_ FILE *f = fopen(path, "re");
        assert_non_null(f);
        while (fgets(line, sizeof line, f))
                if (strncmp(line, key, strlen(key)) == 0) {
                        (void) snprintf(ret, size, "%s", line + strlen(key) + 1);
                        return;
                }
        fail_msg("no %s", key);
}

static void ignore_signal(int signal)
{
        (void) signal;
}

static void test_isolation(void **state)
{
        ProbePlan plan = endless(*state, 1);
        char path[64], target[256], mask[64];
        sigset_t blocked, saved;
        pid_t pid;

        /* Things to inherit. */
        (void) sigemptyset(&blocked);
        (void) sigaddset(&blocked, SIGCHLD);
        (void) sigaddset(&blocked, SIGTERM);
        assert_int_equal(sigprocmask(SIG_BLOCK, &blocked, &saved), 0);
        assert_true(signal(SIGUSR1, ignore_signal) != SIG_ERR);
        assert_true(signal(SIGHUP, SIG_IGN) != SIG_ERR);
        int fd = open("/dev/null", O_RDONLY);

        Probe *probe = start(&plan);
        assert_int_equal(find_children("tierprobe-write", &pid, 1), 1);
        read_status(pid, "SigBlk", mask, sizeof mask);
        assert_int_equal(strtoull(mask, NULL, 16), 0);
        read_status(pid, "SigCgt", mask, sizeof mask);
        assert_int_equal(strtoull(mask, NULL, 16) & (1U << (SIGUSR1 - 1)), 0);
        read_status(pid, "SigIgn", mask, sizeof mask);
        assert_int_equal(strtoull(mask, NULL, 16) & 0x7fffffff, 1U << (SIGPIPE - 1) | 1U << (SIGXFSZ - 1));
        assert_int_equal(getsid(pid), pid);

        (void) snprintf(path, sizeof path, "/proc/%d/cwd", pid);
        ssize_t n = readlink(path, target, sizeof target);
        assert_int_equal(n, 1);
        (void) snprintf(path, sizeof path, "/proc/%d/fd", pid);
        _cleanup_closedir_ DIR *dir = opendir(path);
        const struct dirent *entry;
        size_t n_fds = 0;
        assert_non_null(dir);
        while ((entry = readdir(dir)))
                n_fds += entry->d_name[0] != '.';
        assert_int_equal(n_fds, 6); /* 0, 1, stderr, socket, the directory, the file */

        (void) close(fd);
        (void) signal(SIGUSR1, SIG_DFL);
        (void) signal(SIGHUP, SIG_DFL);
        assert_int_equal(sigprocmask(SIG_SETMASK, &saved, NULL), 0);
        assert_null(probe_free(probe));
        expect_no_children();
}

/* ---- failures ---- */

static void expect_failure(const ProbePlan *plan, ProbeOutcome outcome, int error)
{
        Probe *probe = NULL;

        assert_int_equal(probe_new(plan, &probe), 0);
        assert_int_equal(follow(probe, PROBE_READY), PROBE_DONE);
        ProbeProgress progress = progress_of(probe);
        assert_int_equal(progress.outcome, outcome);
        assert_int_equal(progress.error, error);
        assert_int_equal(progress.bytes_written, 0);
        assert_false(progress.writing_failed);
        finish(probe);
}

static void test_paths(void **state)
{
        Fixture *fixture = *state;
        ProbePlan plan = short_plan(fixture, 3);
        static const char *const links[] = { "link", "link/", "link/.", "link/./" };

        plan.path = fixture_path(fixture, "none");
        expect_failure(&plan, PROBE_PATH_MISSING, ENOENT);
        plan.path = "/proc/version";
        expect_failure(&plan, PROBE_PATH_MISSING, ENOTDIR);

        assert_int_equal(symlink(fixture->directory, fixture_path(fixture, "link")), 0);
        for (size_t i = 0; i < ELEMENTSOF(links); i++) {
                plan.path = fixture_path(fixture, links[i]);
                expect_failure(&plan, PROBE_SYMLINK, ELOOP);
        }
        assert_int_equal(unlink(fixture_path(fixture, "link")), 0);
}

static void test_no_space(void **state)
{
        ProbePlan plan = short_plan(*state, 2);
        Probe *probe = NULL;

        plan.min_free_bytes = UINT64_MAX;
        expect_failure(&plan, PROBE_NO_SPACE, ENOSPC);
        plan.min_free_bytes = 0;
        plan.min_free_ratio = 1;
        expect_failure(&plan, PROBE_NO_SPACE, ENOSPC);
        plan.min_free_ratio = 0;
        plan.count = INT64_MAX / plan.block_size;
        expect_failure(&plan, PROBE_NO_SPACE, ENOSPC);

        plan.count = 7;
        plan.min_free_bytes = 12345;
        assert_int_equal(probe_new(&plan, &probe), 0);
        (void) follow(probe, PROBE_READY);
        assert_int_equal(progress_of(probe).needed_bytes, 2 * 7 * plan.block_size + 12345);
        assert_null(probe_free(probe));
        expect_no_children();
}

static void test_not_writable(void **state)
{
        Fixture *fixture = *state;
        ProbePlan plan = short_plan(fixture, 1);

        assert_int_equal(chmod(fixture->directory, 0555), 0);
        if (geteuid() == 0)
                assert_int_equal(seteuid(65534), 0);
        expect_failure(&plan, PROBE_NOT_WRITABLE, EACCES);
        (void) !seteuid(getuid());
        assert_int_equal(chmod(fixture->directory, 0755), 0);
}

/* The limit cuts the 17th write short, then refuses the rest. */
static void test_short_write(void **state)
{
        ProbePlan plan = short_plan(*state, 1);
        struct rlimit saved, limit;

        assert_int_equal(getrlimit(RLIMIT_FSIZE, &saved), 0);
        limit = saved;
        limit.rlim_cur = 16 * plan.block_size + 4096;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        Probe *probe = start(&plan);
        probe_go(probe);
        assert_int_equal(follow(probe, PROBE_DONE), PROBE_DONE);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &saved), 0);

        ProbeProgress progress = progress_of(probe);
        assert_int_equal(progress.outcome, PROBE_NO_SPACE);
        assert_int_equal(progress.error, EFBIG);
        assert_true(progress.writing_failed);
        assert_int_equal(progress.failed_offset_bytes, limit.rlim_cur);
        /* A part of a block counts as bytes, not as a block. */
        assert_int_equal(progress.blocks_written, 16);
        assert_int_equal(progress.bytes_written, limit.rlim_cur);
        check_writes(probe, &plan, progress.blocks_written);
        finish(probe);
}

/* Preparing may hang for good; the parent must not. */
static void test_hanging(void **state)
{
        Fixture *fixture = *state;
        ProbePlan plan = short_plan(fixture, 2);
        Probe *probe = NULL;
        int fd;

        if (!hang_path(fixture->directory, &fd))
                skip();
        assert_int_equal(probe_new(&plan, &probe), 0);
        assert_int_equal(probe_process(probe), PROBE_PREPARING);
        probe_kill(probe);
        assert_int_equal(follow(probe, PROBE_GONE), PROBE_GONE);
        assert_int_equal(progress_of(probe).outcome, PROBE_KILLED);
        assert_false(progress_of(probe).writing_failed);
        assert_null(probe_free(probe));

        assert_int_equal(probe_new(&plan, &probe), 0);
        assert_null(probe_free(probe));
        expect_no_children();
        unhang_path(fixture->directory, fd);
}

static void test_plans(void **state)
{
        const ProbePlan good = short_plan(*state, 1);
        Probe *const untouched = (Probe *) &good;
        Probe *probe = untouched;

#define REFUSED(assignment)                                          \
        do {                                                         \
                ProbePlan plan = good;                               \
                plan.assignment;                                     \
                assert_int_equal(probe_new(&plan, &probe), -EINVAL); \
                assert_ptr_equal(probe, untouched);                  \
        } while (0)
        REFUSED(path = NULL);
        REFUSED(path = "");
        REFUSED(path = "relative/path");
        REFUSED(block_size = 0);
        REFUSED(block_size = 4095);
        REFUSED(block_size = 4096 + 512);
        REFUSED(block_size = PROBE_BLOCK_MAX + 4096);
        REFUSED(count = 0);
        REFUSED(count = UINT64_MAX);
        REFUSED(count = INT64_MAX / good.block_size + 1);
        REFUSED(streams = 0);
        REFUSED(streams = PROBE_MAX_STREAMS + 1);
        REFUSED(pattern = _PATTERN_MAX);
        REFUSED(min_free_ratio = -0.1);
        REFUSED(min_free_ratio = 1.1);
        REFUSED(min_free_ratio = (double) NAN);
        REFUSED(wrap_bytes = good.block_size - 1);
#undef REFUSED
        expect_no_children();
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_whole),         TEST(test_streams),        TEST(test_wrap),
                TEST(test_stop),          TEST(test_stop_before_go), TEST(test_kill),
                TEST(test_kill_one),      TEST(test_kill_finished),  TEST(test_free_at_any_time),
                TEST(test_parent_killed), TEST(test_isolation),      TEST(test_paths),
                TEST(test_no_space),      TEST(test_not_writable),   TEST(test_short_write),
                TEST(test_hanging),       TEST(test_plans),
        };

        if (!fixture_possible())
                return EXIT_SUCCESS;
        return cmocka_run_group_tests_name("probe-writer", tests, NULL, NULL);
}
