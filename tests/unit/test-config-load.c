/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration files: what is read, what is refused and how it is said, and printing back. */

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/config.h"
#include "tierprobe/file.h"

#include "../../src/config/config-internal.h" /* the table of sections */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "folder.h"

static char folder[64];
static char file[128];

static int make_folder(void **state)
{
        (void) state;
        if (test_folder_make("config", folder, sizeof folder) < 0)
                return -1;
        (void) snprintf(file, sizeof file, "%s/t.conf", folder);
        return 0;
}

static int remove_folder(void **state)
{
        (void) state;
        return test_folder_remove(folder);
}

static void write_bytes(const char *name, const void *data, size_t size)
{
        _cleanup_fclose_ FILE *out = fopen(name, "w");

        assert_non_null(out);
        assert_int_equal(fwrite(data, 1, size, out), size);
}

static void write_drop_in(const char *name, const char *text)
{
        char path[256];

        (void) snprintf(path, sizeof path, "%s.d", file);
        (void) mkdir(path, 0700);
        (void) snprintf(path, sizeof path, "%s.d/%s", file, name);
        write_bytes(path, text, strlen(text));
}

/* Loads TEXT, which must be right. */
static Config *load_right(const char *text)
{
        _cleanup_free_ char *error = NULL;
        Config *config = NULL;

        write_bytes(file, text, strlen(text));
        int r = config_load(&(ConfigOptions){ .file = file }, &config, &error);
        if (r < 0)
                fail_msg("refused: %s", error);
        assert_null(error);
        return config;
}

/* Loads TEXT, which must be refused with WANTED in the message. "@" in WANTED stands for the file's name. */
static void assert_refused_bytes(const char *text, size_t size, const char *wanted)
{
        _cleanup_free_ char *error = NULL;
        char expanded[512];
        Config *config = NULL;

        write_bytes(file, text, size);
        int r = config_load(&(ConfigOptions){ .file = file }, &config, &error);
        assert_null(config);
        if (r != -EINVAL)
                fail_msg("%d for: %.200s", r, text);
        assert_non_null(error);
        (void) snprintf(expanded, sizeof expanded, "%s%s", wanted[0] == '@' ? file : "",
                        wanted[0] == '@' ? wanted + 1 : wanted);
        if (!strstr(error, expanded))
                fail_msg("\"%s\" lacks \"%s\"", error, expanded);
}

static void assert_refused(const char *text, const char *wanted)
{
        assert_refused_bytes(text, strlen(text), wanted);
}

/* Bit for bit: nothing is computed on the way. */
static void assert_number(double a, double b)
{
        assert_memory_equal(&a, &b, sizeof a);
}

#define T "[target cache]\npath = /db2/cache\n"

static void assert_address(const Address *address, const char *text)
{
        char is[ADDRESS_TEXT_SIZE];

        address_format(address, is);
        assert_string_equal(is, text);
}

static void test_defaults(void **state)
{
        (void) state;
        _cleanup_(config_freep) Config *config = load_right(T);
        assert_string_equal(config->targets[0].profile, "procedure");
        assert_int_equal(config->n_listen, 1);
        assert_address(&config->listen[0], "127.0.0.1:7620");
        assert_int_equal(config->sample_interval_ns, NS_PER_S);
        assert_int_equal(config->history_ns, 86400 * NS_PER_S);
        assert_int_equal(config_ring_capacity(config), 86400);
        assert_number(config->limits.value[CRITERION_WRITE_THROUGHPUT], 600);
        assert_number(config->limits.value[CRITERION_WRITE_LATENCY], 20);
        assert_number(config->limits.pass_ratio, 0.90);
        assert_int_equal(config->schedule.interval_ns, 86400 * NS_PER_S);
        assert_int_equal(config->schedule.jitter_ns, 3600 * NS_PER_S);
        assert_true(config->schedule.catch_up);
        assert_false(config->schedule.window.set);
        assert_int_equal(config->guard.cooldown_ns, 0);
        assert_int_equal(config->guard.max_duration_ns, 600 * NS_PER_S);
        assert_number(config->guard.min_free.ratio, 0.01);
        assert_int_equal(config->n_profiles, 5);
        assert_string_equal(config->profiles[0].name, "procedure");
        assert_true(profile_is_procedure(&config->profiles[0]));
        assert_int_equal(profile_bytes(&config->profiles[0]), UINT64_C(10485760000));
        assert_int_equal(config_find_profile(config, "quick")->count, 1000);
        assert_false(profile_is_procedure(config_find_profile(config, "quick")));
        assert_int_equal(config_find_profile(config, "random")->pattern, PATTERN_RANDOM);
        assert_int_equal(config_find_profile(config, "sustained")->duration_ns, 600 * NS_PER_S);
        const Profile *ramp = config_find_profile(config, "ramp");
        assert_int_equal(profile_bytes(ramp), 7 * UINT64_C(10485760000)); /* 1, 2, 4, 8, 16, 32, 64 */
        assert_int_equal(profile_space_bytes(ramp), UINT64_C(10485760000));
        assert_int_equal(profile_space_bytes(config_find_profile(config, "sustained")),
                         UINT64_C(20971520000));
        assert_int_equal(profile_space_bytes(&config->profiles[0]), UINT64_C(10485760000));
        assert_true(config_find_profile(config, "ramp")->ramp);
        assert_int_equal(config_find_profile(config, "ramp")->streams, 64);
        assert_false(profile_is_procedure(config_find_profile(config, "ramp")));
        assert_null(config_find_profile(config, "slow"));
        assert_int_equal(config->n_targets, 1);
        assert_string_equal(config_find_target(config, "cache")->path, "/db2/cache");
        assert_string_equal(config->targets[0].device, "auto");
        assert_non_null(strstr(config->targets[0].origin, "t.conf:2"));
}

static void test_every_key(void **state)
{
        (void) state;
        _cleanup_(config_freep) Config *config =
                load_right("\xef\xbb\xbf# a comment\r\n"
                           "[http]\r\n"
                           "listen = localhost:7620, [0:0::1]:7621\r\n"
                           "  listen = unix:/run//tierprobe/./socket ; another\r\n"
                           "token_file = /etc/token\n"
                           "allowed_hosts = Host.Example, 10.0.0.1 [::1]\n"
                           "tls_cert = /etc/cert.pem\ntls_key = /etc/key.pem\n"
                           "[sampling]\ninterval = 100ms\nhistory = 1h\n"
                           "[limits]\nwrite_mb_per_s = 1.5\nw_await_ms=5\npass_ratio=1\n"
                           "[schedule]\ninterval: 7d\njitter = 30m\nwindow = 22:30-04:00\ncatch_up = no\n"
                           "[guard]\ncooldown = 10m\ndaily_write_budget = 100G\nmin_free = 5%\n"
                           "max_foreign_mb_per_s = 50\nmax_duration = 1h\n"
                           "[profile big]\nblock_size=4M\ncount=7\nstreams=16\npattern=random\nduration=1h\n"
                           "[profile same]\n"
                           "\t[ target   db-1.x_Y ] # c\n\tpath = /mnt//a b/./c/\n\tdevice = nvme0n1p1\n"
                           "[target other]\npath=/\n");
        assert_int_equal(config->n_listen, 3);
        assert_address(&config->listen[0], "127.0.0.1:7620");
        assert_address(&config->listen[1], "[::1]:7621");
        assert_address(&config->listen[2], "unix:/run/tierprobe/socket");
        assert_string_equal(config->token_file, "/etc/token");
        assert_string_equal(config->allowed_hosts, "host.example 10.0.0.1 [::1]");
        assert_string_equal(config->tls_cert, "/etc/cert.pem");
        assert_string_equal(config->tls_key, "/etc/key.pem");
        assert_int_equal(config_ring_capacity(config), 36000);
        assert_number(config->limits.value[CRITERION_WRITE_THROUGHPUT], 1.5);
        assert_int_equal(config->schedule.interval_ns, 7 * 86400 * NS_PER_S);
        assert_true(config->schedule.window.set);
        assert_int_equal(config->schedule.window.start_min, 22 * 60 + 30);
        assert_int_equal(config->schedule.window.end_min, 240);
        assert_false(config->schedule.catch_up);
        assert_int_equal(config->guard.cooldown_ns, 600 * NS_PER_S);
        assert_int_equal(config->guard.daily_write_budget_bytes, UINT64_C(100) << 30);
        assert_number(config->guard.min_free.ratio, 0.05);
        assert_number(config->guard.max_foreign_mb_per_s, 50);
        const Profile *big = config_find_profile(config, "big");
        assert_int_equal(big->block_size, 4 << 20);
        assert_int_equal(big->streams, 16);
        assert_int_equal(big->duration_ns, 3600 * NS_PER_S);
        assert_false(profile_is_procedure(big));
        assert_true(profile_is_procedure(config_find_profile(config, "same")));
        assert_string_equal(config_find_target(config, "db-1.x_Y")->path, "/mnt/a b/c");
        assert_string_equal(config_find_target(config, "db-1.x_Y")->device, "nvme0n1p1");
        assert_string_equal(config_find_target(config, "other")->path, "/");
}

static void test_unset_words(void **state)
{
        (void) state;
        _cleanup_(config_freep) Config *config =
                load_right("[http]\ntoken_file = none\nallowed_hosts = none\n[schedule]\ninterval = "
                           "never\nwindow = none\n"
                           "[guard]\ncooldown=none\ndaily_write_budget=none\nmin_free = "
                           "2G\nmax_foreign_mb_per_s=none\n" T);
        assert_null(config->token_file);
        assert_null(config->allowed_hosts);
        assert_int_equal(config->schedule.interval_ns, 0);
        assert_int_equal(config->guard.daily_write_budget_bytes, 0);
        assert_int_equal(config->guard.min_free.bytes, UINT64_C(2) << 30);
        assert_number(config->guard.min_free.ratio, 0);
}

static void test_changed_procedure_is_not_certifying(void **state)
{
        (void) state;
        _cleanup_(config_freep) Config *config = load_right("[profile procedure]\ncount = 9999\n" T);
        assert_false(profile_is_procedure(&config->profiles[0]));
        _cleanup_(config_freep) Config *same =
                load_right("[profile procedure]\nblock_size = 1024K\ncount = 10000\n" T);
        assert_true(profile_is_procedure(&same->profiles[0]));
}

/* A short schedule is not blurred by the default jitter; one that is set counts. */
static void test_jitter(void **state)
{
        (void) state;
        _cleanup_(config_freep) Config *config = load_right("[schedule]\ninterval = 30s\n" T);
        assert_int_equal(config->schedule.jitter_ns, 3 * NS_PER_S);
        _cleanup_(config_freep) Config *set = load_right("[schedule]\ninterval = 30s\njitter = 1h\n" T);
        assert_int_equal(set->schedule.jitter_ns, 3600 * NS_PER_S);
}

static void test_faults(void **state)
{
        static const struct {
                const char *text, *wanted;
        } cases[] = {
                /* keys and sections */
                { "[sampling]\nintervall = 1s\n" T, "@:2: unknown key \"intervall\" in [sampling]; did you "
                                                    "mean \"interval\"? known keys: interval, "
                                                    "history" },
                { "[sampling]\ncolour = 1s\n" T, "@:2: unknown key \"colour\" in [sampling]; known keys:" },
                { "[samplin]\ninterval = 1s\n" T,
                  "@:1: unknown section [samplin]; did you mean [sampling]?" },
                { "[Http]\n" T, "@:1: unknown section [Http]; did you mean [http]?" },
                { "[]\n" T, "@:1: unknown section []" },
                { "path = /x\n" T, "@:1: a key before the first section" },
                { "[http\nlisten = 1\n" T, "@:1: \"[http\" is not a section's header" },
                { "[http] x\n" T, "@:1: \"[http] x\" is not a section's header" },
                { "[http main]\n" T, "@:1: [http] takes no name" },
                { "[sampling]\ninterval\n" T, "@:2: not of the form KEY = VALUE" },
                { "[sampling]\ninterval = 1s\ninterval = 1s\n" T, "@:3: \"interval\" is set twice" },
                { "[sampling]\ninterval = 1s\n[http]\n[sampling]\ninterval = 1s\n" T,
                  "@:5: \"interval\" is set twice" },
                { T "path = /other\n", "@:3: \"path\" is set twice" },
                { "[sampling]\ninterval = 1s # often\n" T, "begins with \";\"" },
                /* values */
                { "[sampling]\ninterval = 99ms\n" T,
                  "@:2: interval = \"99ms\" is not right: out of range; write a "
                  "duration from 100ms to 1m" },
                { "[sampling]\ninterval = 61s\n" T, "out of range" },
                { "[sampling]\ninterval = 1\n" T, "@:2: interval = \"1\" is not right; write a duration" },
                { "[sampling]\ninterval =\n" T, "@:2: interval = \"\" is not right" },
                { "[sampling]\nhistory = 59s\n" T, "from 1m to 31d" },
                { "[sampling]\nhistory = 32d\n" T, "from 1m to 31d" },
                { "[sampling]\ninterval = 100ms\nhistory = 31d\n" T, "@:3: history and interval" },
                { "[limits]\nwrite_mb_per_s = 0\n" T, "@:2: write_mb_per_s" },
                { "[limits]\nwrite_mb_per_s = nan\n" T, "@:2: write_mb_per_s" },
                { "[limits]\nw_await_ms = -1\n" T, "@:2: w_await_ms" },
                { "[limits]\npass_ratio = 1.01\n" T, "@:2: pass_ratio" },
                { "[limits]\npass_ratio = 90%\n" T, "@:2: pass_ratio" },
                { "[schedule]\ninterval = 500ms\n" T, "@:2: interval" },
                { "[schedule]\nwindow = 1:00-5:00\n" T, "HH:MM-HH:MM" },
                { "[schedule]\nwindow = 01:00-25:00\n" T, "HH:MM-HH:MM" },
                { "[schedule]\nwindow = 01:00-05:0\n" T, "HH:MM-HH:MM" },
                { "[schedule]\nwindow = 01:00-05:000\n" T, "HH:MM-HH:MM" },
                { "[schedule]\nwindow = 05:00-05:00\n" T, "starts when it ends" },
                { "[schedule]\nwindow = 00:00-24:00\n" T, "starts when it ends" },
                { "[schedule]\ncatch_up = maybe\n" T, "yes or no" },
                { "[guard]\nmin_free = 100%\n" T, "out of range" },
                { "[guard]\nmin_free = %\n" T, "@:2: min_free" },
                { "[guard]\ndaily_write_budget = lots\n" T, "@:2: daily_write_budget" },
                { "[guard]\nmax_duration = 0s\n" T, "@:2: max_duration" },
                { "[profile a]\nblock_size = 2K\n" T, "from 4K to 64M" },
                { "[profile a]\nblock_size = 6000\n" T, "multiple of 4096" },
                { "[profile a]\nstreams = 129\n" T, "from 1 to 128" },
                { "[profile a]\ncount = 0\n" T, "@:2: count" },
                { "[profile a]\npattern = ones\n" T, "zero or random" },
                { "[profile a]\nduration = 11m\n" T, "@:1: the duration of [profile a] is longer" },
                { "[profile]\n" T, "@:1: [profile] has no name" },
                { "[profile a]\n[profile a]\n" T, "@:2: [profile a] is there twice" },
                { "[http]\nlisten = 7620\n" T, "has no port" },
                { "[http]\nlisten = *:7620\n" T, "has no numeric IPv4 address" },
                { "[http]\nlisten = 127.0.0.1:0\n" T, "has no port from 1" },
                { "[http]\nlisten = 127.0.0.1:65536\n" T, "has no port from 1" },
                { "[http]\nlisten = [::1:7620\n" T, "[ADDR]:PORT" },
                { "[http]\nlisten = [::g]:7620\n" T, "no IPv6 address" },
                { "[http]\nlisten = unix:run/socket\n" T, "not absolute" },
                { "[http]\nlisten = 127.0.0.1:1, 127.0.0.1:1\n" T, "is given twice" },
                { "[http]\nlisten = ,\n" T, "@:2: listen" },
                { "[http]\nallowed_hosts = a:80\n" T, "is not a host name" },
                { "[http]\nallowed_hosts = *\n" T, "is not a host name" },
                { "[http]\ntoken_file = token\n" T, "not absolute" },
                { "[http]\ntls_cert = /c\n" T, "@:2: tls_cert is set but tls_key is not" },
                { "[http]\ntls_key = /c\n" T, "@:2: tls_key is set but tls_cert is not" },
                /* targets */
                { "", "@: no target; add a section [target cache]" },
                { "[target cache]\n", "@:1: [target cache] has no path" },
                { "[target cache]\npath =\n", "@:2: path" },
                { "[target cache]\npath = db2\n", "@:2: path = \"db2\" is not right: it is not absolute" },
                { "[target .x]\npath = /a\n", "@:1: \".x\" is not a target's name" },
                { "[target a/b]\npath = /a\n", "is not a target's name" },
                { "[target a b]\npath = /a\n", "is not a target's name" },
                { T "[target cache]\npath = /b\n", "@:3: two targets of the name \"cache\", the first at" },
                { T "[target b]\npath = /db2//cache/.\n", "@:4: [target b] and [target cache]" },
                { "[target a]\npath = /a\ndevice = sd b\n", "@:3: device" },
                { "[target a]\npath = /a\ndevice = /sys/x\n", "begins with /dev/" },
                { "[target a]\npath = /a\nprofile = quik\n",
                  "@:3: profile = quik of [target a] names no profile; did you mean quick?" },
                { "[target a]\npath = /a\n[guard]\ndaily_write_budget = 9G\n",
                  "@:4: a test of [target a], profile procedure, writes up to 10000M, which "
                  "daily_write_budget of" },
                { "[target a]\npath = /a\nprofile = huge\n[profile huge]\ncount = 1000000\n",
                  "@:3: a test of [target a], profile huge, writes up to" },
                { "[target a]\nprofile = big\npath = /a\n[profile bigger]\n", "@:2: profile = big of" },
                { "[target a]\npath = /a\nprofile = .x\n", "@:3: profile = \".x\" is not right" },
                /* bytes */
                { "[target a]\npath = /a\xff\n", "@:2: bytes that are not UTF-8" },
                { "[target a]\npath = /a\x01\n", "@:2: a control character" },
                { "[target a\x01]\npath = /a\n", "@:1: a control character" },
        };

        (void) state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                assert_refused(cases[i].text, cases[i].wanted);
        assert_refused_bytes("[http]\n\0\n", 9, "@:2: a NUL byte");
}

static void test_every_fault_is_told_up_to_a_bound(void **state)
{
        _cleanup_free_ char *error = NULL, *many_error = NULL;
        Config *config = NULL;
        char many[4096] = "[http]\n";
        unsigned lines = 0;

        (void) state;
        const char *text = "[sampling]\na = 1\ninterval = 1\n[oops]\nx = 1\n[target t]\n";
        write_bytes(file, text, strlen(text));
        assert_int_equal(config_load(&(ConfigOptions){ .file = file }, &config, &error), -EINVAL);
        for (const char *p = error; (p = strstr(p, file)); p++)
                lines++;
        assert_int_equal(lines, 4);

        for (int i = 0; i < 100; i++)
                (void) strncat(many, "x = 1\n", sizeof many - strlen(many) - 1);
        write_bytes(file, many, strlen(many));
        assert_int_equal(config_load(&(ConfigOptions){ .file = file }, &config, &many_error), -EINVAL);
        assert_non_null(strstr(many_error, ":21: unknown key"));
        assert_null(strstr(many_error, ":22: unknown key"));
        assert_non_null(strstr(many_error, "and 80 faults more"));
}

static void test_long_lines(void **state)
{
        static char text[20000];
        char *p = text;

        (void) state;
        /* The longest path there can be is read whole... */
        p += sprintf(p, "[target a]\npath = ");
        char *path = p;
        for (int i = 0; i < 15; i++) {
                *p++ = '/';
                memset(p, 'a', 254);
                p += 254;
        }
        *p = '\0';
        _cleanup_(config_freep) Config *config = load_right(text);
        assert_string_equal(config->targets[0].path, path);

        /* ... one byte too many is told, and a line beyond all limits is not cut. */
        for (int i = 0; i < 2; i++) {
                *p++ = '/';
                memset(p, 'a', 254);
                p += 254;
        }
        *p = '\0';
        assert_refused(text, "longer than 4095 bytes");
        memset(p, 'a', 8000);
        p[8000] = '\0';
        assert_refused(text, "@:2: a line of ");
}

static void test_file_bounds(void **state)
{
        _cleanup_free_ char *error = NULL, *big = malloc(CONFIG_MAX_FILE_BYTES + 1);
        Config *config = NULL;

        (void) state;
        memset(big, '\n', CONFIG_MAX_FILE_BYTES + 1);
        (void) snprintf(big, sizeof T, "%s", T);
        big[strlen(T)] = '\n';
        write_bytes(file, big, CONFIG_MAX_FILE_BYTES);
        assert_int_equal(config_load(&(ConfigOptions){ .file = file }, &config, &error), 0);
        config = config_free(config);
        write_bytes(file, big, CONFIG_MAX_FILE_BYTES + 1);
        assert_int_equal(config_load(&(ConfigOptions){ .file = file }, &config, &error), -EFBIG);
        assert_non_null(strstr(error, "at most 1 MiB"));
}

static void test_missing_file(void **state)
{
        _cleanup_free_ char *error = NULL, *directory_error = NULL;
        Config *config = NULL;

        (void) state;
        assert_int_equal(
                config_load(&(ConfigOptions){ .file = "/nonexistent/x.conf", .path = "/a" }, &config, &error),
                -ENOENT);
        assert_non_null(strstr(error, "/nonexistent/x.conf: cannot be read: No such file"));
        assert_int_equal(config_load(&(ConfigOptions){ .file = folder }, &config, &directory_error), -EISDIR);
        assert_null(config);
}

static void test_too_many(void **state)
{
        static char text[65536];
        char *p = text;

        (void) state;
        for (int i = 0; i < CONFIG_MAX_TARGETS; i++)
                p += sprintf(p, "[target t%d]\npath = /t/%d\n", i, i);
        _cleanup_(config_freep) Config *config = load_right(text);
        assert_int_equal(config->n_targets, CONFIG_MAX_TARGETS);
        (void) sprintf(p, "[target more]\npath = /more\n");
        assert_refused(text, "@:129: more than 64 targets");
        p = text + sprintf(text, T);
        for (int i = 0; i < CONFIG_MAX_PROFILES; i++)
                p += sprintf(p, "[profile p%d]\n", i);
        assert_refused(text, "more than 32 profiles");
}

static void test_drop_ins(void **state)
{
        _cleanup_free_ char *error = NULL;
        Config *config = NULL;

        (void) state;
        write_drop_in("20-b.conf", "[sampling]\ninterval = 3s\n[target cache]\ndevice = sdb\n");
        write_drop_in("10-a.conf", "[sampling]\ninterval = 2s\nhistory = 2h\n[http]\nlisten = 127.0.0.1:1\n"
                                   "[target more]\npath = /more\n");
        write_drop_in("30-c.conf.off", "rubbish\n");
        write_drop_in(".hidden.conf", "rubbish\n");
        config = load_right(
                "[sampling]\ninterval = 1s\n[http]\nlisten = 127.0.0.1:2\nlisten = 127.0.0.1:3\n" T);
        assert_int_equal(config->sample_interval_ns, 3 * NS_PER_S);
        assert_int_equal(config->history_ns, 7200 * NS_PER_S);
        assert_int_equal(config->n_listen, 1);
        assert_address(&config->listen[0], "127.0.0.1:1");
        assert_int_equal(config->n_targets, 2);
        assert_string_equal(config->targets[0].device, "sdb");
        assert_string_equal(config->targets[0].path, "/db2/cache");
        config = config_free(config);

        write_drop_in("20-b.conf", "[sampling]\n\nfoo = 3s\n");
        assert_int_equal(config_load(&(ConfigOptions){ .file = file }, &config, &error), -EINVAL);
        assert_non_null(strstr(error, "t.conf.d/20-b.conf:3: unknown key \"foo\""));
}

static void test_options(void **state)
{
        _cleanup_free_ char *error = NULL, *cwd = getcwd(NULL, 0);
        char wanted[PATH_MAX];
        Config *config = NULL;

        (void) state;
        write_bytes(file, T, strlen(T));
        ConfigOptions options = { .file = file, .path = "x/./y/", .listen = "0.0.0.0:80,[::]:80" };
        assert_int_equal(config_load(&options, &config, &error), 0);
        (void) snprintf(wanted, sizeof wanted, "%s/x/y", strcmp(cwd, "/") == 0 ? "" : cwd);
        assert_int_equal(config->n_targets, 1);
        assert_string_equal(config->targets[0].name, "cache");
        assert_string_equal(config->targets[0].path, wanted);
        assert_string_equal(config->targets[0].origin, "--path");
        assert_int_equal(config->n_listen, 2);
        assert_address(&config->listen[1], "[::]:80");
        config = config_free(config);

        assert_int_equal(chdir("/usr/share"), 0);
        static const struct {
                const char *given, *wanted;
        } paths[] = { { "..", "/usr" },     { "../..", "/" },       { "../../../../..", "/" },
                      { "../x", "/usr/x" }, { ".././y", "/usr/y" }, { "/a/../b", "/a/../b" } };
        for (size_t i = 0; i < ELEMENTSOF(paths); i++) {
                options.path = paths[i].given;
                assert_int_equal(config_load(&options, &config, &error), 0);
                assert_string_equal(config->targets[0].path, paths[i].wanted);
                config = config_free(config);
        }
        assert_int_equal(chdir(cwd), 0);

        static const char *const bad_paths[] = { "", "/a\nb", "/a\x80", "/a ;b", "/a " };
        for (size_t i = 0; i < ELEMENTSOF(bad_paths); i++) {
                _cleanup_free_ char *path_error = NULL;

                options.path = bad_paths[i];
                assert_int_equal(config_load(&options, &config, &path_error), -EINVAL);
                assert_non_null(strstr(path_error, "--path: "));
        }
        options.path = "/a";
        options.listen = "everywhere";
        assert_int_equal(config_load(&options, &config, &error), -EINVAL);
        assert_non_null(strstr(error, "--listen: \"everywhere\" is not right"));
}

static void test_without_targets(void **state)
{
        _cleanup_free_ char *error = NULL;
        Config *config = NULL;

        (void) state;
        write_bytes(file, "[limits]\nw_await_ms = 5\n[target x]\n", 35);
        assert_int_equal(config_load_without_targets(&(ConfigOptions){ .file = file }, &config, &error), 0);
        assert_number(config->limits.value[CRITERION_WRITE_LATENCY], 5);
        config = config_free(config);
}

/* ---- the example that is installed ---- */

static const char *example_file(char buf[PATH_MAX])
{
        const char *root = getenv("TIERPROBE_SOURCE_ROOT"); /* NOLINT(concurrency-mt-unsafe): one thread */

        (void) snprintf(buf, PATH_MAX, "%s/etc/tierprobed.conf", root ? root : ".");
        return buf;
}

static void test_example(void **state)
{
        _cleanup_free_ char *error = NULL;
        char path[PATH_MAX];
        Config *config = NULL;

        (void) state;
        int r = config_load(&(ConfigOptions){ .file = example_file(path) }, &config, &error);
        if (r < 0)
                fail_msg("%s", error);
        assert_int_equal(config->guard.cooldown_ns, 600 * NS_PER_S);
        assert_int_equal(config->schedule.interval_ns, 86400 * NS_PER_S);
        assert_string_equal(config->targets[0].path, "/db2/cache");
        assert_true(profile_is_procedure(&config->profiles[0]));
        config = config_free(config);
}

/* With every line in force it is still right, and every key there is stands in it. */
static void test_example_in_full(void **state)
{
        _cleanup_free_ char *text = NULL, *full = NULL;
        char path[PATH_MAX];
        size_t size = 0;
        bool seen[_SECTION_MAX][SECTION_MAX_PARAMETERS] = { 0 };
        Section section = 0;

        (void) state;
        assert_int_equal(read_file_at(AT_FDCWD, example_file(path), 100000, &text, NULL), 0);
        FILE *out = open_memstream(&full, &size);
        char *rest = text;
        for (const char *line = NULL; (line = strsep(&rest, "\n"));) {
                char name[32] = "";

                if (line[0] == '#' && line[1] != ' ')
                        line++;
                if (line[0] == '[')
                        for (section = 0; strncmp(line + 1, config_sections[section].name,
                                                  strlen(config_sections[section].name)) != 0;)
                                section++;
                else if (sscanf(line, "%31[a-z_] =", name) == 1)
                        seen[section][section_find(section, name)] = true;
                (void) fprintf(out, "%s\n", line);
        }
        (void) fclose(out);
        for (section = 0; section < _SECTION_MAX; section++)
                for (size_t i = 0; config_sections[section].parameter(i); i++)
                        if (!seen[section][i])
                                fail_msg("[%s] %s is not in the example", config_sections[section].name,
                                         config_sections[section].parameter(i)->name);
        _cleanup_(config_freep) Config *config = load_right(full);
        assert_true(config->schedule.window.set);
}

/* ---- printing ---- */

static void assert_same(const Config *a, const Config *b)
{
        assert_int_equal(a->n_listen, b->n_listen);
        for (size_t i = 0; i < a->n_listen; i++)
                assert_true(address_equal(&a->listen[i], &b->listen[i]));
        const char *const texts[][2] = { { a->allowed_hosts, b->allowed_hosts },
                                         { a->token_file, b->token_file },
                                         { a->tls_cert, b->tls_cert },
                                         { a->tls_key, b->tls_key } };
        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                assert_int_equal(!texts[i][0], !texts[i][1]);
                if (texts[i][0])
                        assert_string_equal(texts[i][0], texts[i][1]);
        }
        assert_int_equal(a->sample_interval_ns, b->sample_interval_ns);
        assert_int_equal(a->history_ns, b->history_ns);
        assert_memory_equal(&a->limits, &b->limits, sizeof a->limits);
        assert_int_equal(a->schedule.interval_ns, b->schedule.interval_ns);
        assert_int_equal(a->schedule.jitter_ns, b->schedule.jitter_ns);
        assert_int_equal(a->schedule.catch_up, b->schedule.catch_up);
        assert_int_equal(a->schedule.window.set, b->schedule.window.set);
        if (a->schedule.window.set) {
                assert_int_equal(a->schedule.window.start_min, b->schedule.window.start_min);
                assert_int_equal(a->schedule.window.end_min, b->schedule.window.end_min);
        }
        assert_memory_equal(&a->guard, &b->guard, sizeof a->guard);
        assert_int_equal(a->n_profiles, b->n_profiles);
        for (size_t i = 0; i < a->n_profiles; i++) {
                const Profile *p = &a->profiles[i], *q = &b->profiles[i];

                assert_string_equal(p->name, q->name);
                assert_true(p->block_size == q->block_size && p->count == q->count &&
                            p->streams == q->streams && p->pattern == q->pattern &&
                            p->duration_ns == q->duration_ns);
        }
        assert_int_equal(a->n_targets, b->n_targets);
        for (size_t i = 0; i < a->n_targets; i++) {
                assert_string_equal(a->targets[i].name, b->targets[i].name);
                assert_string_equal(a->targets[i].path, b->targets[i].path);
                assert_string_equal(a->targets[i].device, b->targets[i].device);
                assert_string_equal(a->targets[i].profile, b->targets[i].profile);
        }
}

static uint64_t random_u64(void)
{
        return (uint64_t) random() << 33 ^ (uint64_t) random() << 11 ^ (uint64_t) random();
}

/* Writes a random configuration that is right. */
static void random_config(FILE *out)
{
        static const char *const parts[] = { "a", "db2", "é", "x y", "..", "_-", "=", "#", "[b]", ":" };

        if (random() % 2)
                fprintf(out, "[http]\nlisten = 10.%ld.0.1:%ld [::%lx]:%ld\n", random() % 256,
                        1 + random() % 65535, random() % 65536, 1 + random() % 65535);
        if (random() % 2)
                fprintf(out, "[sampling]\ninterval = %" PRIu64 "ns\nhistory = %" PRIu64 "ns\n",
                        NS_PER_S + random_u64() % (59 * NS_PER_S),
                        60 * NS_PER_S + random_u64() % (86400 * NS_PER_S));
        if (random() % 2)
                fprintf(out, "[limits]\nwrite_mb_per_s = %.17g\nw_await_ms = %ld.%ld\npass_ratio = 0.%ld\n",
                        0.001 + (double) random() / 3e4, 1 + random() % 100, random(), random());
        if (random() % 2)
                fprintf(out,
                        "[schedule]\ninterval = %" PRIu64 "ns\njitter = %" PRIu64 "us\ncatch_up = %ld\n"
                        "together = %ld\nwindow = %02ld:%02ld-%02ld:%02ld\n",
                        NS_PER_S + random_u64() % (86400 * NS_PER_S), random_u64() % 1000000, random() % 2,
                        random() % 2, random() % 12, random() % 60, 12 + random() % 12, random() % 60);
        if (random() % 2)
                fprintf(out,
                        "[guard]\ncooldown = %ldms\ndaily_write_budget = %" PRIu64 "\n"
                        "max_foreign_mb_per_s = %.9g\nabort_io_pressure = %ld\n",
                        random() % 100000, (UINT64_C(1) << 37) + (random_u64() >> (1 + random() % 39)),
                        (double) random() / 3e3, random() % 101);
        if (random() % 2)
                fprintf(out, random() % 2 ? "[guard]\nmin_free = %.6f%%\n" : "[guard]\nmin_free = %.2fM\n",
                        (double) (random() % 98000000) / 1e6);
        for (long i = random() % 5; i > 0; i--)
                fprintf(out,
                        "[profile p%ld]\nblock_size = %ldK\ncount = %ld\nstreams = %ld\npattern = %s\n%s", i,
                        4 * (1 + random() % 1000), 1 + random() % 100000, 1 + random() % 128,
                        random() % 2 ? "zero" : "random", random() % 2 ? "duration = 59s\n" : "");
        for (long i = random() % 4; i >= 0; i--) {
                fprintf(out, "[target t%ld]\npath = /%ld", i, i);
                for (long n = random() % 6; n > 0; n--)
                        fprintf(out, "/%s", parts[(size_t) random() % ELEMENTSOF(parts)]);
                fprintf(out, random() % 2 ? "\nprofile = ramp\n" : "\n");
        }
}

static void test_print_round_trip(void **state)
{
        (void) state;
        srandom(20261130);
        for (int i = 0; i < 2000; i++) {
                _cleanup_free_ char *text = NULL, *printed = NULL;
                size_t size = 0;

                FILE *out = open_memstream(&text, &size);
                random_config(out);
                (void) fclose(out);
                _cleanup_(config_freep) Config *config = load_right(text);
                out = open_memstream(&printed, &size);
                config_print(config, out);
                (void) fclose(out);
                assert_null(strstr(printed, "max_foreign_mb_per_s = 0\n")); /* none says it better */
                _cleanup_(config_freep) Config *again = load_right(printed);
                assert_same(config, again);
        }
}

/* Whatever the bytes are, the answer is a configuration or a fault with its place. */
static void test_garbage(void **state)
{
        static const char *const pieces[] = {
                "[http]", "[target ", "cache",    "]",          "\n",      "=",    "path",  " ",
                "/a",     ";",        "#",        "listen",     ":",       ",",    "unix:", "[",
                "%",      "9",        "window",   "min_free",   "-",       "\xc3", "\xa9",  "\r",
                "\t",     "1s",       "interval", "[schedule]", "[guard]", "\x7f"
        };

        (void) state;
        srandom(7);
        for (int i = 0; i < 6000; i++) {
                _cleanup_(config_freep) Config *config = NULL;
                _cleanup_free_ char *error = NULL;
                char text[512] = "";

                for (long n = random() % 40; n > 0; n--)
                        (void) strncat(text, pieces[(size_t) random() % ELEMENTSOF(pieces)],
                                       sizeof text - strlen(text) - 1);
                write_bytes(file, text, strlen(text));
                int r = config_load(&(ConfigOptions){ .file = file }, &config, &error);
                assert_true((r == 0 && config && !error) || (r == -EINVAL && !config && error));
                if (error)
                        assert_int_equal(strncmp(error, file, strlen(file)), 0);
        }
}

#define test_case(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int main(void)
{
        const struct CMUnitTest tests[] = {
                test_case(test_defaults),
                test_case(test_every_key),
                test_case(test_unset_words),
                test_case(test_changed_procedure_is_not_certifying),
                test_case(test_jitter),
                test_case(test_faults),
                test_case(test_every_fault_is_told_up_to_a_bound),
                test_case(test_long_lines),
                test_case(test_file_bounds),
                test_case(test_missing_file),
                test_case(test_too_many),
                test_case(test_drop_ins),
                test_case(test_options),
                test_case(test_without_targets),
                test_case(test_example),
                test_case(test_example_in_full),
                test_case(test_print_round_trip),
                test_case(test_garbage),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
