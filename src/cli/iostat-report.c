/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of `tierprobe iostat`: two tables of snapshots to text or JSON as iostat prints them. Writes to the
 * stream it is given, and to the log.
 *
 * Widths, order and blank lines are those of `iostat -dxy` (sysstat 12.3 and later): existing parsers know
 * them. */

#include "iostat-report.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/json.h"
#include "tierprobe/log.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static const char *gap_sentence(Gap gap)
{
        switch (gap) {
        case GAP_NONE:
        case GAP_FIRST:
        case _GAP_MAX:
                return NULL; /* nothing was lost */
        case GAP_ABSENT:
                return "the device is not there";
        case GAP_RETURNED:
                return "the device was away; counting begins anew";
        case GAP_REPLACED:
                return "the name now means another device; counting begins anew";
        case GAP_RESET:
                return "a counter went back; counting begins anew";
        case GAP_SUSPENDED:
                return "the machine was suspended";
        case GAP_CLOCK:
                return "no time passed between the two readings, or it went back";
        case GAP_UNREADABLE:
                return "its statistics could not be read";
        }
        return NULL;
}

/* Gaps of time concern every device: said once a report. */
static void say_gap(const char *name, Gap gap, bool *said_time)
{
        const char *sentence = gap_sentence(gap);

        if (!sentence)
                return;
        if (gap != GAP_SUSPENDED && gap != GAP_CLOCK) {
                log_warning("iostat: %s: no figures for this interval: %s", name, sentence);
        } else if (!*said_time) {
                log_warning("iostat: no figures for this interval: %s", sentence);
                *said_time = true;
        }
}

static void print_json_string(FILE *out, const char *text)
{
        json_auto_t *string = json_text(text);

        if (!string || json_dumpf(string, out, JSON_ENCODE_ANY | JSON_ENSURE_ASCII) < 0)
                (void) fputs("null", out);
}

/* iostat's date in the C locale; S_TIME_FORMAT=ISO is sysstat's own variable. */
static void format_date(char *buf, size_t size)
{
        const char *format = getenv("S_TIME_FORMAT");
        time_t now = time(NULL);
        struct tm tm = { 0 };

        (void) localtime_r(&now, &tm);
        if (strftime(buf, size, format && strcmp(format, "ISO") == 0 ? "%Y-%m-%d" : "%m/%d/%y", &tm) == 0)
                buf[0] = '\0';
}

void iostat_report_begin(const ReportStyle *style, FILE *out)
{
        struct utsname host = { 0 };
        long n_cpus = sysconf(_SC_NPROCESSORS_CONF);
        char date[32];

        (void) uname(&host);
        format_date(date, sizeof date);
        if (!style->json) {
                (void) fprintf(out, "%s %s (%s) \t%s \t_%s_\t(%ld CPU)\n\n\n", host.sysname, host.release,
                               host.nodename, date, host.machine, n_cpus);
                return;
        }
        (void) fputs("{\"sysstat\": {\n\t\"hosts\": [\n\t\t{\n\t\t\t\"nodename\": ", out);
        print_json_string(out, host.nodename);
        (void) fputs(",\n\t\t\t\"sysname\": ", out);
        print_json_string(out, host.sysname);
        (void) fputs(",\n\t\t\t\"release\": ", out);
        print_json_string(out, host.release);
        (void) fputs(",\n\t\t\t\"machine\": ", out);
        print_json_string(out, host.machine);
        (void) fprintf(out, ",\n\t\t\t\"number-of-cpus\": %ld,\n\t\t\t\"date\": ", n_cpus);
        print_json_string(out, date);
        (void) fputs(",\n\t\t\t\"statistics\": [\n", out);
}

void iostat_report_end(const ReportStyle *style, FILE *out)
{
        if (style->json)
                (void) fputs("\n\t\t\t]\n\t\t}\n\t]\n}}\n", out);
}

/* iostat has no word for "unknown": a mean of no requests is 0.00 there, and so it is here. */
static double as_iostat(double value)
{
        return isnan(value) ? 0 : value;
}

static void print_text_row(const char *name, const Metrics *metrics, FILE *out)
{
        const MetricColumn *column = NULL;

        (void) fprintf(out, "%-13s", name);
        for (size_t i = 0; (column = metric_column_in_text(i)); i++)
                (void) fprintf(out, " %*.2f", column->width, as_iostat(metric_value(metrics, column)));
        (void) fputc('\n', out);
}

static void print_json_row(const char *name, const Metrics *metrics, bool first, FILE *out)
{
        (void) fputs(first ? "\t\t\t\t\t\t{\"disk_device\": " : ",\n\t\t\t\t\t\t{\"disk_device\": ", out);
        print_json_string(out, name);
        for (size_t i = 0; i < N_METRIC_COLUMNS; i++) {
                const MetricColumn *column = &metric_columns[i];
                if (metrics)
                        (void) fprintf(out, ", \"%s\": %.2f", column->key,
                                       as_iostat(metric_value(metrics, column)));
                else
                        (void) fprintf(out, ", \"%s\": null", column->key);
        }
        (void) fputc('}', out);
}

static bool ever_used(const Counters *c)
{
        return c->r_ios > 0 || c->w_ios > 0 || c->d_ios > 0 || c->f_ios > 0;
}

static void print_header(const ReportStyle *style, bool first, FILE *out)
{
        const MetricColumn *column = NULL;

        if (style->json) {
                (void) fprintf(out, "%s\n\t\t\t\t{\n\t\t\t\t\t\"disk\": [\n", first ? "" : ",");
                return;
        }
        (void) fputs("Device       ", out);
        for (size_t i = 0; (column = metric_column_in_text(i)); i++)
                (void) fprintf(out, " %*s", column->width, column->header);
        (void) fputc('\n', out);
}

void iostat_report_print(const ReportStyle *style, const SnapshotTable *previous, const SnapshotTable *now,
                         bool first, FILE *out)
{
        bool said_time = false, first_row = true;

        print_header(style, first, out);
        for (size_t i = 0; i < now->n; i++) {
                const NamedSnapshot *row = &now->rows[i];
                const NamedSnapshot *before = snapshot_table_find(previous, row->name, i);
                bool present = row->snapshot.gap != GAP_ABSENT;
                Delta delta;
                Metrics metrics;

                if (present && style->hide_unused && !ever_used(&row->snapshot.counters))
                        continue;
                Gap gap = delta_compute(before ? &before->snapshot : NULL, &row->snapshot, &delta);
                /* A device that stays away is news once. */
                if (present || !before || before->snapshot.gap != GAP_ABSENT)
                        say_gap(row->name, gap, &said_time);
                if (gap == GAP_NONE)
                        metrics_from_delta(&delta, &metrics);
                if (style->json && present) {
                        print_json_row(row->name, gap == GAP_NONE ? &metrics : NULL, first_row, out);
                        first_row = false;
                } else if (gap == GAP_NONE) {
                        print_text_row(row->name, &metrics, out);
                }
        }
        for (size_t i = 0; i < previous->n; i++)
                if (!snapshot_table_find(now, previous->rows[i].name, i))
                        say_gap(previous->rows[i].name, GAP_ABSENT, &said_time);
        (void) fputs(style->json ? "\n\t\t\t\t\t]\n\t\t\t\t}" : "\n\n", out);
}
