/* SPDX-License-Identifier: Apache-2.0 */
/* `tierprobe judge`: the verdict on a capture of the manual procedure. Knows capture, verdict, json. */

#include "parameter-options.h"

#include "tierprobe/capture.h"
#include "tierprobe/cleanup.h"
#include "tierprobe/cli.h"
#include "tierprobe/json.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define CHUNK (256 * 1024)

typedef struct JudgeOptions {
        const char *file; /* "-": standard input */
        const char *device;
        Limits limits;
        ParameterOptions parameters;
        bool json;
} JudgeOptions;

static void judge_options_done(JudgeOptions *options)
{
        parameter_options_done(&options->parameters);
}

static void print_help(const JudgeOptions *options)
{
        (void) fputs(
                "tierprobe judge [OPTION...] [FILE|-]\n"
                "Judges a capture of the manual procedure: the output of iostat -xyz 1 taken while\n"
                "dd if=/dev/zero of=PATH/testfile bs=1M count=10000 oflag=direct,dsync ran. Reads text of\n"
                "any sysstat since 9.1.2 or its JSON (-o JSON), from FILE or standard input, and as mails,\n"
                "issues and logs hold it: quoted, commented, behind times and tags, between other lines.\n\n"
                "A requirement that is missed proves a fail; a pass needs both, measured. What cannot be "
                "read\n"
                "is inconclusive, and the reason says why. The device that was written most decides, unless\n"
                "another one that was written at least a tenth of that has another verdict and is no layer "
                "of\n"
                "the same stack (which carries the same bytes): then the result is inconclusive.\n\n"
                "  --device NAME        the device that decides\n",
                stdout);
        parameter_options_help(&options->parameters, limits_parameter, &options->limits, stdout);
        (void) fputs(
                "  --json               print one JSON document on stdout\n"
                "  --help               this text\n"
                "  --version            the version\n\n"
                "Exit status: 0 pass, 2 fail, 3 inconclusive, usage error or anything that kept it from\n"
                "judging. 1, the warning of other commands, does not occur: a capture has no age.\n",
                stdout);
}

enum { OPT_DEVICE = 256, OPT_JSON, OPT_VERSION };

static const struct option own_options[] = {
        { "device", required_argument, NULL, OPT_DEVICE },
        { "json", no_argument, NULL, OPT_JSON },
        { "version", no_argument, NULL, OPT_VERSION },
        { "help", no_argument, NULL, 'h' },
        { 0 },
};

static const ParameterTable tables[] = { limits_parameter, NULL };

/* ---- options ---- */

/* 0: go on, 1: all is done, negative: the usage was wrong (and that was said). */
static int parse_options(int argc, char *argv[], JudgeOptions *options)
{
        int c, r = parameter_options_init(&options->parameters, own_options, tables);

        optind = 0; /* a test may call this more than once */
        while (r >= 0 && (c = getopt_long(argc, argv, "h", options->parameters.long_options, NULL)) >= 0)
                switch (c) {
                case OPT_DEVICE:
                        options->device = optarg;
                        break;
                case OPT_JSON:
                        options->json = true;
                        break;
                case OPT_VERSION:
                        (void) printf("tierprobe %s\n", TIERPROBE_VERSION);
                        return 1;
                case 'h':
                        print_help(options);
                        return 1;
                default: /* else getopt_long() has said what is wrong */
                        r = parameter_options_take(&options->parameters, c, optarg) ? 0 : -EINVAL;
                        break;
                }
        if (r >= 0)
                r = parameter_options_apply(&options->parameters, "tierprobe judge", limits_parameter,
                                            &options->limits);
        if (r >= 0 && argc - optind > 1) {
                (void) fprintf(stderr, "tierprobe judge: give one FILE at most, not also \"%s\"\n",
                               argv[optind + 1]);
                r = -EINVAL;
        }
        if (r >= 0 && options->device && !*options->device) {
                (void) fprintf(stderr, "tierprobe judge: --device needs a name\n");
                r = -EINVAL;
        }
        if (r < 0) {
                (void) fprintf(stderr, "Try 'tierprobe judge --help'.\n");
                return r;
        }
        if (optind < argc)
                options->file = argv[optind];
        return 0;
}

/* ---- the capture ---- */

static int fail_with(const char *file, int error)
{
        (void) fprintf(stderr, "tierprobe judge: cannot read %s: %s\n", file, strerror(-error));
        return error;
}

static int feed_all(CaptureJudge *judge, const char *file, int fd)
{
        _cleanup_free_ char *chunk = malloc(CHUNK);
        if (!chunk)
                return fail_with(file, -ENOMEM);

        for (;;) {
                ssize_t n = read(fd, chunk, CHUNK);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return fail_with(file, -errno);
                int r = n > 0 ? capture_judge_feed(judge, chunk, (size_t) n) : capture_judge_finish(judge);
                if (r < 0) {
                        (void) fprintf(stderr, "tierprobe judge: cannot keep the rows of %s in $TMPDIR: %s\n",
                                       file, strerror(-r));
                        return r;
                }
                if (n == 0)
                        return 0;
        }
}

static int read_capture(CaptureJudge *judge, const char *file)
{
        struct stat st;

        if (strcmp(file, "-") == 0)
                return feed_all(judge, "standard input", STDIN_FILENO);
        _cleanup_close_ int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        if (fd < 0)
                return fail_with(file, -errno);
        if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
                return fail_with(file, -EISDIR);
        return feed_all(judge, file, fd);
}

/* ---- the result ---- */

static void print_figure(double value)
{
        if (isfinite(value))
                (void) printf(" %12.2f", value);
        else
                (void) printf(" %12s", "-");
}

static void print_text(const CaptureJudge *judge)
{
        const CaptureDevice *decider = capture_judge_decider(judge);
        int width = 6;

        for (size_t i = 0; i < capture_judge_n_devices(judge); i++) {
                int length = (int) strlen(capture_judge_device(judge, i)->name);
                width = length > width ? length : width;
        }
        if (capture_judge_n_devices(judge) > 0)
                (void) printf("%-*s %12s %12s %12s %11s  verdict\n", width, "Device", "wkB/s", "w/s",
                              "w_await", "samples");
        for (size_t i = 0; i < capture_judge_n_devices(judge); i++) {
                const CaptureDevice *device = capture_judge_device(judge, i);
                const Judgement *j = &device->judgement;
                char samples[32];

                (void) printf("%-*s", width, device->name);
                print_figure(j->measured.wkb_s);
                print_figure(j->measured.w_s);
                print_figure(j->measured.w_await);
                (void) snprintf(samples, sizeof samples, "%u/%u", j->samples_passing, j->samples_total);
                (void) printf(" %11s  %s%s\n", samples, device->idle ? "idle" : verdict_to_string(j->verdict),
                              device == decider ? " <- decides" : "");
        }
        (void) printf("%s", capture_judge_n_devices(judge) > 0 ? "\n" : "");
        report_judgement(stdout, capture_judge_overall(judge));
}

static json_t *json_notes(const CaptureJudge *judge)
{
        json_t *notes = json_array();
        const char *note = NULL;

        for (size_t i = 0; notes && (note = capture_judge_note(judge, i)); i++)
                json_array_append_new(notes, json_text(note));
        return notes;
}

static json_t *json_device_judgement(const CaptureDevice *device)
{
        const Judgement *j = &device->judgement;

        return json_pack("{s:o, s:s, s:o, s:o, s:{s:i, s:i}, s:{s:o, s:o, s:o}}", "device",
                         json_text(device->name), "verdict", verdict_to_string(j->verdict), "reasons",
                         json_reasons(&j->reasons), "criteria", json_criteria(j), "samples", "total",
                         (int) j->samples_total, "passing", (int) j->samples_passing, "measured", "wkB/s",
                         json_number_or_null(j->measured.wkb_s), "w_await",
                         json_number_or_null(j->measured.w_await), "w/s",
                         json_number_or_null(j->measured.w_s));
}

static json_t *json_judgement(const CaptureJudge *judge, const Limits *limits)
{
        const CaptureDevice *decider = capture_judge_decider(judge);
        const Judgement *overall = capture_judge_overall(judge);

        json_auto_t *devices = json_array();
        for (size_t i = 0; devices && i < capture_judge_n_devices(judge); i++)
                if (json_array_append_new(devices, json_device_judgement(capture_judge_device(judge, i))) < 0)
                        return NULL;
        return json_pack("{s:i, s:s, s:o, s:o, s:o, s:O, s:o}", "schema", JSON_SCHEMA, "verdict",
                         verdict_to_string(overall->verdict), "reasons", json_reasons(&overall->reasons),
                         "device", json_text(decider ? decider->name : NULL), "limits", json_limits(limits),
                         "devices", devices, "notes", json_notes(judge));
}

static int print_json(const CaptureJudge *judge, const Limits *limits)
{
        size_t size = 0;

        json_auto_t *document = json_judgement(judge, limits);
        _cleanup_free_ char *text = document ? json_document(document, &size) : NULL;
        if (!text)
                return -ENOMEM;
        (void) fwrite(text, 1, size, stdout);
        return 0;
}

int cli_judge(int argc, char *argv[])
{
        _cleanup_(judge_options_done) JudgeOptions options = { .file = "-", .limits = limits_default() };
        const char *note = NULL;

        int r = parse_options(argc, argv, &options);
        if (r != 0)
                return r > 0 ? CLI_PASS : CLI_UNKNOWN;

        _cleanup_(capture_judge_freep) CaptureJudge *judge = NULL;
        r = capture_judge_new(&options.limits, options.device, &judge);
        if (r >= 0)
                r = read_capture(judge, options.file);
        if (r < 0)
                return CLI_UNKNOWN;
        for (size_t i = 0; (note = capture_judge_note(judge, i)); i++)
                (void) fprintf(stderr, "tierprobe judge: %s\n", note);
        if (options.json)
                r = print_json(judge, &options.limits);
        else
                print_text(judge);
        if (r < 0 || fflush(stdout) != 0 || ferror(stdout)) {
                (void) fprintf(stderr, "tierprobe judge: cannot write the result: %s\n",
                               strerror(r < 0 ? -r : errno));
                return CLI_UNKNOWN;
        }
        return cli_status(capture_judge_overall(judge)->verdict);
}
