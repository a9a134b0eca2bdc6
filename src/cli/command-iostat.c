/* SPDX-License-Identifier: Apache-2.0 */
/* `tierprobe iostat`: the extended table of this machine's devices, or of recorded snapshots. Writes stdout;
 * catches SIGINT and SIGTERM while it runs. */

#include "tierprobe/cli.h"

#include "iostat-live.h"
#include "iostat-report.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/log.h"
#include "tierprobe/signals.h"
#include "tierprobe/units.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>

#define INTERVAL_MIN_NS (10 * NS_PER_MS)
#define INTERVAL_MAX_NS (86400 * NS_PER_S)

static const char help[] =
        "tierprobe iostat [PATH|DEVICE...] [INTERVAL [COUNT]] [--json]\n"
        "tierprobe iostat [DEVICE...] --replay DIR...\n"
        "\n"
        "Prints the extended statistics of block devices as `iostat -dxy` does (columns, order and widths "
        "of\n"
        "sysstat 12.3 and later), taken with the sampler that tierprobe judges with.\n"
        "\n"
        "  DEVICE            a kernel name (nvme0n1, dm-3, cciss/c0d0) or a node (/dev/sdb, /dev/mapper/x)\n"
        "  PATH              has a slash in it: the device or devices under the file system that holds it\n"
        "                    Without any: all whole disks that ever did I/O, in the order of their names.\n"
        "  INTERVAL          seconds, or with a unit as in 500ms; from 10ms to 1d. Without it: one report "
        "over 1 s.\n"
        "                    (There is no report since boot.)\n"
        "  COUNT             how many reports; without it until interrupted\n"
        "\n"
        "  --replay DIR...   reports over recorded snapshots instead: each DIR holds copies of "
        "/proc/diskstats and\n"
        "                    /proc/uptime, oldest first; one report for each DIR but the first. All rows are "
        "shown,\n"
        "                    or the DEVICEs named before --replay.\n"
        "  --json            the document of `iostat -dxy -o JSON`\n"
        "  --procfs DIR      where /proc is mounted\n"
        "  --sysfs DIR       where /sys is mounted\n"
        "  --help, --version\n"
        "\n"
        "A mean of no requests is printed as 0.00, as iostat does. When an interval gives no figures for a "
        "device (a\n"
        "counter went back, the device was replaced or away, the machine was suspended, time stood still), "
        "iostat\n"
        "prints numbers that mean nothing; here the text has no row for it, the JSON has a row whose numbers "
        "are null,\n"
        "and a line on stderr says why. A device that is not there has no row in either, and a new one gets "
        "its first\n"
        "figures after its second reading.\n"
        "\n"
        "Exit status: 0, also after Ctrl-C; 3 when something kept it from reporting.\n";

typedef struct Arguments {
        const char *procfs, *sysfs;
        ReportStyle style;
        bool replay;
        uint64_t interval_ns, count; /* count 0: until interrupted */
        bool has_interval, has_count;
        char **devices; /* as typed; borrowed strings */
        bool *found;    /* of devices: whether a record had it */
        size_t n_devices;
        char **dirs;
        size_t n_dirs;
} Arguments;

/* ---- output ---- */

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
        (void) number;
        interrupted = 1;
}

/* Everything for one report goes out at once; a reader that has gone (EPIPE) ends the program quietly. After
 * an interrupt a reader that does not read gets a second to take the rest: so that it is waited for in poll()
 * and never in write(), where an interrupt that came a moment before would not be noticed, no more is written
 * than a pipe takes that can be written. */
static int write_out(const char *text, size_t size)
{
        while (size > 0) {
                struct pollfd writable = { .fd = STDOUT_FILENO, .events = POLLOUT };
                int ready = poll(&writable, 1, 1000);
                if (ready == 0 && interrupted)
                        return -EPIPE;
                if (ready <= 0)
                        continue;
                ssize_t n = write(STDOUT_FILENO, text, size < PIPE_BUF ? size : PIPE_BUF);
                if (n < 0 && errno != EINTR && errno != EAGAIN)
                        return -errno;
                if (n > 0) {
                        text += n;
                        size -= (size_t) n;
                }
        }
        return 0;
}

typedef struct Output {
        ReportStyle style;
        FILE *stream; /* gathers in memory */
        char *text;
        size_t size;
        uint64_t n_reports;
        bool broken; /* nothing more can be written */
} Output;

static int output_flush(Output *output)
{
        if (fflush(output->stream) != 0)
                return -ENOMEM;
        int r = write_out(output->text, (size_t) ftello(output->stream));
        rewind(output->stream);
        if (r < 0)
                output->broken = true;
        if (r < 0 && r != -EPIPE)
                log_error("iostat: cannot write: %s", strerror(-r));
        return r;
}

static int output_begin(Output *output, const ReportStyle *style)
{
        output->style = *style;
        output->stream = open_memstream(&output->text, &output->size);
        if (!output->stream)
                return -ENOMEM;
        iostat_report_begin(style, output->stream);
        return output_flush(output);
}

static int output_report(Output *output, const SnapshotTable *previous, const SnapshotTable *now)
{
        iostat_report_print(&output->style, previous, now, output->n_reports == 0, output->stream);
        output->n_reports++;
        return output_flush(output);
}

/* Closes the document, also after an error in between: whoever reads JSON gets JSON. */
static int output_end(Output *output, int error)
{
        int r = error;

        if (output->stream && !output->broken) {
                iostat_report_end(&output->style, output->stream);
                int flushed = output_flush(output);
                if (r >= 0)
                        r = flushed;
        }
        if (output->stream)
                (void) fclose(output->stream);
        free(output->text);
        if (r == -EPIPE)
                return 0; /* the reader has seen enough */
        return r;
}

/* Reports over what READ_NEXT fills in, from one reading to the next. It returns 1; 0 when there is no more;
 * or a negative errno after having said what is wrong. */
static int report_all(const ReportStyle *style, int (*read_next)(void *source, SnapshotTable *table),
                      void *source)
{
        _cleanup_(snapshot_table_done) SnapshotTable previous = { 0 }, now = { 0 };
        Output output = { 0 };

        int r = read_next(source, &previous);
        if (r <= 0)
                return r;
        r = output_begin(&output, style);
        while (r >= 0 && (r = read_next(source, &now)) > 0) {
                r = output_report(&output, &previous, &now);
                SnapshotTable swapped = previous;
                previous = now;
                now = swapped;
        }
        return output_end(&output, r);
}

/* ---- replay ---- */

typedef struct Replay {
        const Arguments *arguments;
        size_t n_read;
} Replay;

/* Keeps the named devices, in the order in which they were named. */
static int pick_devices(const Arguments *arguments, SnapshotTable *table)
{
        SnapshotTable picked = { 0 };

        for (size_t i = 0; i < arguments->n_devices; i++) {
                const char *bare = arguments->devices[i];
                char name[DEVICE_NAME_SIZE];

                bare = strncmp(bare, "/dev/", 5) == 0 ? bare + 5 : bare;
                if (strlen(bare) >= sizeof name)
                        continue;
                (void) snprintf(name, sizeof name, "%s", bare);
                name_to_diskstats(name);
                const NamedSnapshot *row = snapshot_table_find(table, name, 0);
                if (!row)
                        continue;
                arguments->found[i] = true;
                int r = snapshot_table_add(&picked, row->name, &row->snapshot);
                if (r < 0) {
                        snapshot_table_done(&picked);
                        return r;
                }
        }
        snapshot_table_done(table);
        *table = picked;
        return 0;
}

static int read_record(void *source, SnapshotTable *table)
{
        Replay *replay = source;
        const Arguments *arguments = replay->arguments;

        if (replay->n_read == arguments->n_dirs || interrupted)
                return 0;
        const char *dir = arguments->dirs[replay->n_read++], *file = NULL;
        snapshot_table_clear(table);
        int r = snapshot_table_read_record(table, dir, &file);
        if (r == -EINVAL)
                log_error(strcmp(file, "uptime") == 0 ? "iostat: %s/uptime does not begin with a number of "
                                                        "seconds, as /proc/uptime does"
                                                      : "iostat: %s/diskstats has no row of block "
                                                        "statistics, as /proc/diskstats has",
                          dir);
        else if (r < 0)
                log_error("iostat: cannot read %s/%s: %s", dir, file, strerror(-r));
        if (r >= 0 && arguments->n_devices > 0)
                r = pick_devices(arguments, table);
        return r < 0 ? r : 1;
}

static int replay(const Arguments *arguments)
{
        int r = report_all(&arguments->style, read_record, &(Replay){ .arguments = arguments });

        for (size_t i = 0; i < arguments->n_devices && r >= 0; i++)
                if (!arguments->found[i]) {
                        log_error("iostat: no record has a row of %s", arguments->devices[i]);
                        r = -ENODEV;
                }
        return r;
}

/* ---- live ---- */

/* Waits until UNTIL_NS of CLOCK_MONOTONIC; false when interrupted. Signals are let in only while it waits, so
 * that none is lost between looking and waiting. */
static bool wait_until(uint64_t until_ns)
{
        sigset_t blocked, before;
        bool reached = false;

        (void) sigemptyset(&blocked);
        (void) sigaddset(&blocked, SIGINT);
        (void) sigaddset(&blocked, SIGTERM);
        (void) sigprocmask(SIG_BLOCK, &blocked, &before);
        while (!interrupted && !reached) {
                uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
                uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
                struct timespec left = { .tv_sec = (time_t) (left_ns / NS_PER_S),
                                         .tv_nsec = (long) (left_ns % NS_PER_S) };
                if (left_ns == 0)
                        reached = true;
                else
                        (void) ppoll(NULL, 0, &left, &before);
        }
        (void) sigprocmask(SIG_SETMASK, &before, NULL);
        return reached && !interrupted;
}

typedef struct Watch {
        const Arguments *arguments;
        LiveDevices *devices;
        uint64_t n_read, due_ns;
} Watch;

static int read_live(void *source, SnapshotTable *table)
{
        Watch *watch = source;
        uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

        if (watch->n_read++ == 0) {
                watch->due_ns = now_ns;
        } else {
                if (watch->arguments->count > 0 && watch->n_read > watch->arguments->count + 1)
                        return 0;
                watch->due_ns = tick_after(watch->due_ns, watch->arguments->interval_ns, now_ns, NULL);
                if (!wait_until(watch->due_ns))
                        return 0;
        }
        int r = live_devices_read(watch->devices, table);
        if (r < 0)
                log_error("iostat: cannot read the block statistics: %s", strerror(-r));
        return r < 0 ? r : 1;
}

static int live(const Arguments *arguments)
{
        char **names = NULL;
        size_t n_names = 0;
        int r = 0;

        for (size_t i = 0; i < arguments->n_devices && r >= 0; i++)
                r = live_resolve(arguments->procfs, arguments->sysfs, arguments->devices[i], &names,
                                 &n_names);
        if (r >= 0) {
                _cleanup_(live_devices_freep) LiveDevices *devices = NULL;
                r = live_devices_new(&devices, arguments->procfs, arguments->sysfs, names, n_names);
                if (r >= 0)
                        r = report_all(&arguments->style, read_live,
                                       &(Watch){ .arguments = arguments, .devices = devices });
        }
        for (size_t i = 0; i < n_names; i++)
                free(names[i]);
        free(names);
        return r;
}

/* ---- arguments ---- */

/* "1", "0.5", "500ms" */
static int parse_interval(const char *text, uint64_t *ret_ns)
{
        double seconds = 0;
        uint64_t ns = 0;

        if (parse_double(text, &seconds) == 0) {
                if (!(seconds >= 0 && seconds <= 1e6))
                        return -ERANGE;
                ns = (uint64_t) (seconds * 1e9 + 0.5);
        } else if (parse_duration(text, &ns) < 0) {
                return -EINVAL;
        }
        if (ns < INTERVAL_MIN_NS || ns > INTERVAL_MAX_NS)
                return -ERANGE;
        *ret_ns = ns;
        return 0;
}

static int usage_error(const char *what, const char *argument)
{
        log_error("iostat: %s: %s (see tierprobe iostat --help)", argument, what);
        return -EINVAL;
}

static int take_argument(Arguments *arguments, char *text)
{
        if (arguments->replay) {
                arguments->dirs[arguments->n_dirs++] = text;
                return 0;
        }
        if (text[0] == '\0')
                return usage_error("an empty argument names nothing", "\"\"");
        /* No device's name begins with a digit. */
        if ((text[0] < '0' || text[0] > '9') && text[0] != '.') {
                arguments->devices[arguments->n_devices++] = text;
                return 0;
        }
        if (text[0] == '.' && (text[1] < '0' || text[1] > '9')) { /* ".", "./x", "../x" */
                arguments->devices[arguments->n_devices++] = text;
                return 0;
        }
        if (!arguments->has_interval) {
                if (parse_interval(text, &arguments->interval_ns) < 0)
                        return usage_error("an interval is seconds, or has a unit as in 500ms; 10ms to 1d",
                                           text);
                arguments->has_interval = true;
                return 0;
        }
        if (arguments->has_count)
                return usage_error("there is an interval and a count already", text);
        if (parse_u64(text, &arguments->count) < 0 || arguments->count == 0)
                return usage_error("a count is a whole number from 1 on", text);
        arguments->has_count = true;
        return 0;
}

/* 1: go on; 0: all is said and done. */
static int parse_arguments(int argc, char *argv[], Arguments *arguments)
{
        enum { OPTION_REPLAY = 256, OPTION_JSON, OPTION_PROCFS, OPTION_SYSFS, OPTION_VERSION };
        static const struct option options[] = {
                { "replay", no_argument, NULL, OPTION_REPLAY },
                { "json", no_argument, NULL, OPTION_JSON },
                { "procfs", required_argument, NULL, OPTION_PROCFS },
                { "sysfs", required_argument, NULL, OPTION_SYSFS },
                { "help", no_argument, NULL, 'h' },
                { "version", no_argument, NULL, OPTION_VERSION },
                { 0 },
        };
        int option, r = 0;

        optind = 0; /* a fresh start, whoever parsed before */
        /* "-": arguments come in their order, since what they mean depends on a --replay before them. */
        while (r >= 0 && (option = getopt_long(argc, argv, "-h", options, NULL)) >= 0) {
                switch (option) {
                case 1:
                        r = take_argument(arguments, optarg);
                        break;
                case OPTION_REPLAY:
                        arguments->replay = true;
                        break;
                case OPTION_JSON:
                        arguments->style.json = true;
                        break;
                case OPTION_PROCFS:
                        arguments->procfs = optarg;
                        break;
                case OPTION_SYSFS:
                        arguments->sysfs = optarg;
                        break;
                case 'h':
                        return write_out(help, sizeof help - 1) < 0 ? -EIO : 0;
                case OPTION_VERSION:
                        return write_out("tierprobe " TIERPROBE_VERSION "\n",
                                         sizeof "tierprobe " TIERPROBE_VERSION) < 0
                                       ? -EIO
                                       : 0;
                default:
                        return -EINVAL; /* getopt_long() has said why */
                }
        }
        for (int i = optind; i < argc && r >= 0; i++) /* after "--" */
                r = take_argument(arguments, argv[i]);
        if (r < 0)
                return r;
        if (arguments->replay && arguments->n_dirs < 2)
                return usage_error("needs at least two directories: an interval has two ends", "--replay");
        if (arguments->replay && arguments->has_interval)
                return usage_error("has its intervals from the records; none can be given", "--replay");
        if (!arguments->has_interval) {
                arguments->interval_ns = NS_PER_S;
                arguments->count = 1;
        }
        return 1;
}

static void catch_signals(void)
{
        /* Without SA_RESTART: a write to a reader that does not read must end too. */
        struct sigaction catch = { .sa_handler = on_signal };

        interrupted = 0;
        if (!signal_is_ignored(SIGINT))
                (void) sigaction(SIGINT, &catch, NULL);
        if (!signal_is_ignored(SIGTERM))
                (void) sigaction(SIGTERM, &catch, NULL);
}

int cli_iostat(int argc, char *argv[])
{
        size_t n = (size_t) argc;
        Arguments arguments = {
                .procfs = "/proc",
                .sysfs = "/sys",
                .devices = calloc(n, sizeof(char *)),
                .dirs = calloc(n, sizeof(char *)),
                .found = calloc(n, sizeof(bool)),
        };
        int r = -ENOMEM;

        catch_signals();
        if (arguments.devices && arguments.dirs && arguments.found)
                r = parse_arguments(argc, argv, &arguments);
        if (r > 0) {
                arguments.style.hide_unused = !arguments.replay && arguments.n_devices == 0;
                r = arguments.replay ? replay(&arguments) : live(&arguments);
        }
        if (r == -ENOMEM)
                log_error("iostat: out of memory");
        free(arguments.devices);
        free(arguments.dirs);
        free(arguments.found);
        return r < 0 ? CLI_UNKNOWN : CLI_PASS;
}
