/* SPDX-License-Identifier: Apache-2.0 */
/* What people read at the end of a run or a judged capture. Touches only the stream it is given. */

#include "tierprobe/cli.h"

#include "tierprobe/text.h"
#include "tierprobe/units.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#define COLUMN 13 /* the longest word is INCONCLUSIVE */

static const char *word(Verdict verdict)
{
        switch (verdict) {
        case VERDICT_PASS:
                return "PASS";
        case VERDICT_FAIL:
                return "FAIL";
        case VERDICT_NEVER_RUN:
        case VERDICT_INCONCLUSIVE:
        case _VERDICT_MAX:
                break;
        }
        return "INCONCLUSIVE";
}

/* Text from outside: a path, a device's name. No second line and no escape sequence leaves here. */
static void put_text(FILE *out, const char *text)
{
        for (; *text; text++)
                (void) fputc(text_is_control(*text) ? '?' : *text, out);
}

static void report_criterion(FILE *out, const Judgement *judgement, CriterionName name)
{
        const Criterion *criterion = &judgement->criteria[name];
        const CriterionRule *rule = &criterion_rules[name];
        const char *relation = criterion_relation(name);

        if (!isfinite(criterion->value)) {
                (void) fprintf(out, "%-*s%-18s not measured (limit: %s %g %s, column %s)\n", COLUMN,
                               "INCONCLUSIVE", rule->title, relation, criterion->limit, rule->unit,
                               rule->column);
                return;
        }
        /* Two decimals, as iostat has them, unless they would show a miss as met. */
        double rounded = round(criterion->value * 100) / 100;
        bool hidden = !criterion->pass &&
                      (rule->at_least ? rounded >= criterion->limit : rounded < criterion->limit);
        (void) fprintf(out, "%-*s%-18s %.*f %s (limit: %s %g %s, column %s)\n", COLUMN,
                       criterion->pass ? "PASS" : "FAIL", rule->title, hidden ? 6 : 2, criterion->value,
                       rule->unit, relation, criterion->limit, rule->unit, rule->column);
}

void report_judgement(FILE *out, const Judgement *judgement)
{
        for (CriterionName name = 0; name < N_CRITERIA; name++)
                report_criterion(out, judgement, name);
        (void) fprintf(out, "%-*s%-18s %u of %u sample intervals meet both\n", COLUMN,
                       word(judgement->verdict), "verdict", judgement->samples_passing,
                       judgement->samples_total);
        for (size_t i = 0; i < judgement->reasons.n; i++) {
                (void) fprintf(out, "  %s: ", reason_to_string(judgement->reasons.items[i].code));
                put_text(out, judgement->reasons.items[i].detail);
                (void) fputc('\n', out);
        }
}

/* The curve of a ramp, and where it ends. */
static void report_ramp(FILE *out, const RunRecord *record)
{
        const RampStep *best = run_record_headroom(record);

        (void) fprintf(out, "\n%8s %12s %9s %8s %8s %10s\n", "streams", "wkB/s", "w/s", "w_await", "aqu-sz",
                       "p99 call");
        for (size_t i = 0; i < record->n_steps; i++) {
                const RampStep *step = &record->steps[i];

                (void) fprintf(out, "%8u %12.2f %9.2f %8.2f %8.2f %7.2f ms%s\n", step->streams,
                               step->measured.wkb_s, step->measured.w_s, step->measured.w_await,
                               step->measured.aqu_sz, step->latency.p99,
                               step == best ? "  <- most that meets the latency" : "");
        }
}

void report_run(FILE *out, const RunRecord *record)
{
        const Device *device = record->device;
        char size[FORMAT_SIZE], duration[FORMAT_SIZE];

        (void) fprintf(out, "tierprobe run %s\n", record->id);
        (void) fputs("path         ", out);
        put_text(out, record->path);
        if (record->place) {
                (void) fputs(" -> ", out);
                put_text(out, record->place);
        }
        if (device && device->mount_point) {
                (void) fprintf(out, " (%s on ", device->filesystem ? device->filesystem : "?");
                put_text(out, device->mount_point);
                (void) fputc(')', out);
        }
        (void) fprintf(out, "\ndevice       %s", device && device->name[0] ? device->name : "none");
        if (device && device->n_rows > 0 && device->nodes[device->rows[0]].model[0]) {
                (void) fputs(" (", out);
                put_text(out, device->nodes[device->rows[0]].model);
                (void) fputc(')', out);
        }
        if (device && device->detail) {
                (void) fputs("; ", out);
                put_text(out, device->detail);
        }
        if (record->swept)
                (void) fprintf(out, "\nremoved      %u empty file%s of a test that was killed", record->swept,
                               record->swept == 1 ? "" : "s");
        (void) fputs("\ntest         ", out);
        if (record->profile.ramp)
                (void) fprintf(out, "ramp of 1 to %u streams, %s a step, ", record->profile.streams,
                               format_duration(duration, record->profile.duration_ns));
        else if (record->profile.duration_ns > 0)
                (void) fprintf(out, "%s of writing, %u stream%s, ",
                               format_duration(duration, record->profile.duration_ns),
                               record->profile.streams, record->profile.streams == 1 ? "" : "s");
        else
                (void) fprintf(out, "%" PRIu64 " blocks, %u stream%s, ", record->profile.count,
                               record->profile.streams, record->profile.streams == 1 ? "" : "s");
        (void) fprintf(out, "block size %s, pattern %s, profile %s%s\n",
                       format_size(size, record->profile.block_size),
                       probe_pattern_to_string(record->profile.pattern), record->profile.name,
                       record->certifying
                               ? ""
                               : " (indicative: not the documented procedure with its limits, in full)");
        (void) fprintf(out, "written      %.0f MiB in %.2f s", (double) record->bytes_written / 1048576,
                       (double) record->elapsed_ns / 1e9);
        if (isfinite(record->judgement.app_write_mb_per_s))
                (void) fprintf(out, ", %.1f MB/s as the writer saw it",
                               record->judgement.app_write_mb_per_s * 1e6 / 1024e3); /* in the judge's MB/s */
        if (record->has_latency)
                (void) fprintf(out, "\nwrite calls  mean %.2f ms, p50 %.2f, p99 %.2f, p99.9 %.2f, max %.2f",
                               record->latency.mean, record->latency.p50, record->latency.p99,
                               record->latency.p99_9, record->latency.max);
        (void) fputs("\n", out);
        if (record->profile.ramp)
                report_ramp(out, record);
        (void) fputs("\n", out);
        report_judgement(out, &record->judgement);
}
