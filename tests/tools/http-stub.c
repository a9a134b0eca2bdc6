/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server over a made-up daemon, for tests: two targets, rings, runs, all set by the environment and
 * by commands on stdin. Never installed.
 *
 *   STUB_LISTEN    addresses, separated by blanks           STUB_DIR       where rings and runs are kept
 *   STUB_TARGETS   names, default "cache logs"              STUB_RECORDS   samples in each ring, default 50
 *   STUB_CAPACITY  of each ring, default 100                STUB_HOSTS     allowed_hosts
 *   STUB_REQUEST_TIMEOUT_MS, STUB_IDLE_TIMEOUT_S            STUB_VERDICT   of the targets, default pass
 *   STUB_TOKENS, STUB_CERT, STUB_KEY, STUB_CREDENTIALS: token_file, tls_cert, tls_key, credentials_directory
 *   STUB_START     what becomes of a request to run: accept, busy, cooldown, budget, refuse, mixed
 *
 * Commands, each answered with one line: "loops" (iterations of the event loop so far), "counts" (requests by
 * method and status), "change" (the generation goes up), "append N" (N more samples), "drop" (the last target
 * goes), "renew" (tokens and certificate are read again), "finish" (runs end). End of input ends the program.
 */

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/http.h"
#include "tierprobe/json.h"
#include "tierprobe/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>

#define MAX_TARGETS 64
#define MAX_RUNS 64

typedef struct Stub {
        char names[MAX_TARGETS][NAME_SIZE];
        Ring *rings[MAX_TARGETS];
        size_t n_targets;
        RunRecord *runs[MAX_RUNS]; /* newest last; those that have ended are in the store */
        size_t n_runs;
        RunStore *store;
        PastRun *last_runs[MAX_TARGETS];
        Config config;
        Verdict verdict;
        const char *start;
        uint64_t generation, records;
        sd_event *event;
        HttpOptions options;
        HttpServer *server;
} Stub;

static Stub stub;

static const char *env(const char *name, const char *fallback)
{
        const char *value = getenv(name);
        return value ? value : fallback;
}

static void die(const char *what, int error)
{
        (void) fprintf(stderr, "http-stub: %s: %s\n", what, strerror(error < 0 ? -error : error));
        exit(1);
}

/* ---- the service ---- */

static void stub_get(void *userdata, ServiceView *ret)
{
        (void) userdata;
        *ret = (ServiceView){ .started_real_ns = INT64_C(1793366045) * (int64_t) NS_PER_S,
                              .uptime_ns = clock_ns(CLOCK_MONOTONIC),
                              .pid = 4711,
                              .verdict = stub.verdict,
                              .ready = stub.verdict == VERDICT_PASS,
                              .config = &stub.config,
                              .certificate_expiry_real_ns =
                                      stub.server ? http_server_certificate_expiry_real_ns(stub.server) : 0,
                              .n_targets = stub.n_targets };
}

static const RunRecord *current_of(const char *target)
{
        for (size_t i = stub.n_runs; i > 0; i--) {
                const RunRecord *run = stub.runs[i - 1];
                if (strcmp(run->target, target) == 0 && !run_state_ended(run->state))
                        return run;
        }
        return NULL;
}

static bool stub_get_target(void *userdata, size_t index, TargetView *ret)
{
        (void) userdata;
        if (index >= stub.n_targets)
                return false;
        const RunRecord *current = current_of(stub.names[index]);
        *ret = (TargetView){ .name = stub.names[index],
                             .path = "/db2/c\xff\x63he",
                             .state = current ? current->state : RUN_FINISHED,
                             .verdict = stub.verdict,
                             .age_s = NAN,
                             .next_run_real_ns = SCHEDULE_NEVER,
                             .last_run = stub.last_runs[index],
                             .current_run = current,
                             .ring = stub.rings[index] };
        return true;
}

static uint64_t stub_generation(void *userdata)
{
        (void) userdata;
        return stub.generation;
}

static RunRecord *add_run(const char *target, const char *profile, RunState state)
{
        RunRecord *run = NULL;

        if (stub.n_runs == MAX_RUNS || run_record_new(&run) < 0)
                return NULL;
        (void) snprintf(run->id, sizeof run->id, "20261130T131405-%06zu", stub.n_runs);
        (void) snprintf(run->target, sizeof run->target, "%s", target);
        (void) snprintf(run->profile.name, sizeof run->profile.name, "%s", profile ? profile : "procedure");
        run->state = state;
        run->limits = limits_default();
        if (run_state_ended(state))
                run->judgement.verdict = VERDICT_PASS;
        stub.runs[stub.n_runs++] = run;
        stub.generation++;
        return run;
}

static void answer_start(const char *how, StartAnswer *answer)
{
        if (strcmp(how, "busy") == 0) {
                answer->result = START_BUSY;
                (void) snprintf(answer->run_id, sizeof answer->run_id, "20261130T131405-busy00");
                (void) snprintf(answer->detail, sizeof answer->detail, "a run is under way");
        } else if (strcmp(how, "cooldown") == 0) {
                answer->result = START_COOLDOWN;
                answer->retry_after_s = 90;
                (void) snprintf(answer->detail, sizeof answer->detail, "the last run has just ended");
        } else if (strcmp(how, "budget") == 0) {
                answer->result = START_OVER_BUDGET;
                answer->retry_after_s = 3600;
                (void) snprintf(answer->detail, sizeof answer->detail, "enough for today");
        } else {
                answer->result = START_REFUSED;
                answer->reason = REASON_NO_SPACE;
                (void) snprintf(answer->detail, sizeof answer->detail, "1 GiB is free, 10 GiB are needed");
        }
}

static int stub_start(void *userdata, const StartOrder *order, StartAnswer *ret)
{
        const char *how = stub.start, *target = order->target, *profile = order->profile;
        size_t i = 0;

        (void) userdata;
        while (i < stub.n_targets && strcmp(stub.names[i], target) != 0)
                i++;
        *ret = (StartAnswer){ .result = START_NO_TARGET };
        if (i == stub.n_targets)
                return 0;
        ret->result = START_NO_PROFILE;
        if (profile && strcmp(profile, "procedure") != 0)
                return 0;
        if (strcmp(how, "mixed") == 0)
                how = i == 0 ? "accept" : "cooldown";
        if (strcmp(how, "accept") == 0 && current_of(target))
                how = "busy";
        *ret = (StartAnswer){ .target = stub.names[i] };
        if (strcmp(how, "accept") == 0) {
                RunRecord *run = add_run(target, profile, RUN_QUEUED);
                if (!run)
                        return -ENOMEM;
                memcpy(ret->run_id, run->id, sizeof ret->run_id);
                (void) fprintf(stderr, "start %s by %s\n", target, order->who);
        } else {
                answer_start(how, ret);
        }
        return 0;
}

static const RunRecord *stub_current_run(void *userdata, size_t index)
{
        (void) userdata;
        for (size_t i = stub.n_runs; i > 0; i--)
                if (!run_state_ended(stub.runs[i - 1]->state) && index-- == 0)
                        return stub.runs[i - 1];
        return NULL;
}

static const RunRecord *stub_find_current(void *userdata, const char *id)
{
        (void) userdata;
        for (size_t i = 0; i < stub.n_runs; i++)
                if (strcmp(stub.runs[i]->id, id) == 0 && !run_state_ended(stub.runs[i]->state))
                        return stub.runs[i];
        return NULL;
}

static const char *stub_older_run(void *userdata, const char *before)
{
        (void) userdata;
        return run_store_older(stub.store, before);
}

static int stub_read_run(void *userdata, const char *id, PastRun **ret, char **ret_text, size_t *ret_size)
{
        _cleanup_free_ char *text = NULL;
        char error[128];
        size_t size = 0;

        (void) userdata;
        int r = run_store_get(stub.store, id, &text, &size);
        if (r >= 0 && ret)
                r = past_run_read(ret, text, size, id, error, sizeof error);
        if (r >= 0 && ret_text) {
                *ret_text = TAKE_PTR(text);
                *ret_size = size;
        }
        return r;
}

/* Puts RUN into the store with a member that only the kept document has. */
static void keep_run(const RunRecord *run)
{
        size_t size = 0, i = 0;
        json_auto_t *document = json_run(run, true);
        int r = document ? json_object_set_new(document, "kept", json_true()) : -1;
        _cleanup_free_ char *text = r < 0 ? NULL : json_document(document, &size);

        r = text ? run_store_put(stub.store, run->id, text, size) : -ENOMEM;
        if (r < 0)
                die("run_store_put", r);
        while (strcmp(stub.names[i], run->target) != 0)
                i++;
        past_run_free(stub.last_runs[i]);
        stub.last_runs[i] = NULL;
        (void) stub_read_run(NULL, run->id, &stub.last_runs[i], NULL, NULL);
}

static void changed(void)
{
        stub.generation++;
        http_server_follow(stub.server);
}

static AbortResult stub_abort(void *userdata, const char *id, const char *who)
{
        (void) userdata;
        (void) who;
        for (size_t i = 0; i < stub.n_runs; i++)
                if (strcmp(stub.runs[i]->id, id) == 0) {
                        if (run_state_ended(stub.runs[i]->state))
                                return ABORT_ENDED;
                        stub.runs[i]->state = RUN_ABORTED;
                        stub.runs[i]->judgement.verdict = VERDICT_INCONCLUSIVE;
                        keep_run(stub.runs[i]);
                        changed();
                        return ABORT_ACCEPTED;
                }
        return ABORT_NO_RUN;
}

/* ---- data ---- */

/* One a second, 100 writes of 64 KiB each; the 10th is of an absent device; 20 to 29 belong to a run. */
static void append_records(uint64_t n)
{
        for (; n > 0; n--) {
                uint64_t i = ++stub.records;

                for (size_t t = 0; t < stub.n_targets; t++) {
                        RingRecord record = { .device = "sdz" };

                        record.snapshot =
                                (Snapshot){ .mono_ns = i * NS_PER_S,
                                            .boot_ns = i * NS_PER_S,
                                            .real_ns = (int64_t) (1793366045 + i) * (int64_t) NS_PER_S,
                                            .major = 8,
                                            .gap = i == 10 ? GAP_ABSENT : GAP_NONE,
                                            .counters = { .n_fields = 17,
                                                          .w_ios = 100 * i,
                                                          .w_sectors = 12800 * i,
                                                          .w_ms = (uint32_t) (500 * i) } };
                        if (i >= 20 && i < 30)
                                (void) strcpy(record.run_id, "20261130T131405-000000");
                        int r = ring_append(stub.rings[t], &record);
                        if (r < 0)
                                die("ring_append", r);
                }
        }
}

static void make_data(void)
{
        char *names = strdup(env("STUB_TARGETS", "cache logs"));
        char *saved = NULL;

        _cleanup_close_ int dir = open(env("STUB_DIR", "."), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dir < 0)
                die("STUB_DIR", errno);
        for (char *name = strtok_r(names, " ", &saved); name; name = strtok_r(NULL, " ", &saved)) {
                char file[NAME_SIZE + 8];

                (void) snprintf(stub.names[stub.n_targets], NAME_SIZE, "%s", name);
                (void) snprintf(file, sizeof file, "%s.ring", name);
                int r = ring_open(&stub.rings[stub.n_targets], dir, file,
                                  strtoull(env("STUB_CAPACITY", "100"), NULL, 10), NULL);
                if (r < 0)
                        die("ring_open", r);
                stub.n_targets++;
        }
        free(names);
        append_records(strtoull(env("STUB_RECORDS", "50"), NULL, 10));
        int r = run_store_open(&stub.store, dir, "runs");
        if (r < 0)
                die("run_store_open", r);
        if (stub.n_targets > 0) {
                keep_run(add_run(stub.names[0], NULL, RUN_FINISHED));
        }
}

/* ---- commands ---- */

static void command(const char *line)
{
        if (strcmp(line, "loops") == 0) {
                uint64_t n = 0;

                (void) sd_event_get_iteration(stub.event, &n);
                (void) printf("%" PRIu64 "\n", n);
        } else if (strcmp(line, "counts") == 0) {
                const char *method = NULL;
                unsigned status = 0;
                uint64_t count = 0;

                for (size_t i = 0; http_server_request_count(stub.server, i, &method, &status, &count) == 0;
                     i++)
                        (void) printf("%s:%u:%" PRIu64 " ", method, status, count);
                (void) printf("\n");
        } else if (strcmp(line, "change") == 0) {
                changed();
                (void) printf("ok\n");
        } else if (strcmp(line, "finish") == 0) {
                for (size_t i = 0; i < stub.n_runs; i++)
                        if (!run_state_ended(stub.runs[i]->state)) {
                                stub.runs[i]->state = RUN_FINISHED;
                                stub.runs[i]->judgement.verdict = VERDICT_PASS;
                                keep_run(stub.runs[i]);
                        }
                changed();
                (void) printf("ok\n");
        } else if (strcmp(line, "renew") == 0) {
                _cleanup_free_ char *error = NULL;
                HttpAccess *access = NULL;

                if (http_access_load(&access, &stub.options, &error) == 0)
                        http_server_set_access(stub.server, access);
                (void) printf("%s\n", error ? error : "ok");
        } else if (strncmp(line, "append ", 7) == 0) {
                append_records(strtoull(line + 7, NULL, 10));
                (void) printf("ok\n");
        } else if (strcmp(line, "drop") == 0 && stub.n_targets > 0) {
                stub.n_targets--;
                stub.rings[stub.n_targets] = ring_free(stub.rings[stub.n_targets]);
                (void) printf("ok\n");
        } else {
                (void) printf("unknown\n");
        }
        (void) fflush(stdout);
}

static int on_stdin(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        static char buffer[256];
        static size_t size;
        char *newline = NULL;

        (void) source;
        (void) events;
        (void) userdata;
        ssize_t n = read(fd, buffer + size, sizeof buffer - 1 - size);
        if (n <= 0)
                return sd_event_exit(stub.event, 0);
        size += (size_t) n;
        buffer[size] = '\0';
        while ((newline = strchr(buffer, '\n'))) {
                *newline = '\0';
                command(buffer);
                size -= (size_t) (newline + 1 - buffer);
                memmove(buffer, newline + 1, size + 1);
        }
        return 0;
}

int main(void)
{
        static const Service service = { .get = stub_get,
                                         .get_target = stub_get_target,
                                         .generation = stub_generation,
                                         .start_run = stub_start,
                                         .abort_run = stub_abort,
                                         .current_run = stub_current_run,
                                         .find_current = stub_find_current,
                                         .older_run = stub_older_run,
                                         .read_run = stub_read_run };
        Address listen[16];
        size_t n_listen = 0;
        char addresses[1024];
        char *saved = NULL;
        _cleanup_free_ char *error = NULL;

        (void) snprintf(addresses, sizeof addresses, "%s", env("STUB_LISTEN", "127.0.0.1:0"));
        if (getenv("STUB_DEBUG"))
                log_set_max_level(LOG_DEBUG);
        for (char *a = strtok_r(addresses, " ", &saved); a && n_listen < ELEMENTSOF(listen);
             a = strtok_r(NULL, " ", &saved))
                if (address_parse(a, &listen[n_listen++], NULL) < 0)
                        die("STUB_LISTEN", EINVAL);
        if (verdict_from_string(env("STUB_VERDICT", "pass"), &stub.verdict) < 0)
                die("STUB_VERDICT", EINVAL);
        stub.start = env("STUB_START", "accept");
        stub.config.limits = limits_default();
        stub.config.sample_interval_ns = NS_PER_S;
        make_data();

        int r = sd_event_default(&stub.event);
        if (r < 0)
                die("sd_event_default", r);
        stub.options = (HttpOptions){
                .listen = listen,
                .n_listen = n_listen,
                .allowed_hosts = getenv("STUB_HOSTS"),
                .token_file = getenv("STUB_TOKENS"),
                .credentials_directory = getenv("STUB_CREDENTIALS"),
                .tls_cert = getenv("STUB_CERT"),
                .tls_key = getenv("STUB_KEY"),
                .service = &service,
                .idle_timeout_s = (unsigned) strtoul(env("STUB_IDLE_TIMEOUT_S", "0"), NULL, 10),
                .request_timeout_ns = strtoull(env("STUB_REQUEST_TIMEOUT_MS", "0"), NULL, 10) * NS_PER_MS
        };
        r = http_server_new(&stub.server, stub.event, &stub.options, &error);
        if (r < 0) {
                (void) fprintf(stderr, "%s\n", error ? error : strerror(-r));
                return 1;
        }
        for (size_t i = 0; http_server_address(stub.server, i); i++)
                (void) printf("listening %s\n", http_server_address(stub.server, i));
        (void) printf("ready\n");
        (void) fflush(stdout);
        r = sd_event_add_io(stub.event, NULL, STDIN_FILENO, EPOLLIN, on_stdin, NULL);
        if (r < 0)
                die("stdin", r);
        r = sd_event_loop(stub.event);

        stub.server = http_server_free(stub.server);
        for (size_t i = 0; i < stub.n_targets; i++)
                ring_free(stub.rings[i]);
        for (size_t i = 0; i < stub.n_runs; i++)
                run_record_free(stub.runs[i]);
        for (size_t i = 0; i < MAX_TARGETS; i++)
                past_run_free(stub.last_runs[i]);
        run_store_free(stub.store);
        sd_event_unref(stub.event);
        return r < 0;
}
