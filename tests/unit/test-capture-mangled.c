/* SPDX-License-Identifier: Apache-2.0 */
/* Captures whose verdict is clear, and what becomes of them on their way into a mail, an issue or a log:
 * quoted, stamped, tagged, commented, folded, recoded, cut, and hit by a stray byte. What can still be read
 * has the same verdict; what cannot is inconclusive with a reason. No mangling turns a pass into a fail or
 * the other way round, and none makes a device or a figure that was not there. */

#include "tierprobe/capture.h"
#include "tierprobe/cleanup.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "seeds.h"

#define MAX_DEVICES 3
#define MAX_REPORTS 20
#ifndef SEEDS
#define SEEDS 500
#endif
/* for each way of mangling */

static uint64_t rng;

static uint64_t any(uint64_t below)
{
        rng = rng * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (rng >> 33) % below;
}

static bool once_in(uint64_t n)
{
        return any(n) == 0;
}

/* ---- captures ---- */

typedef enum Layout { LAYOUT_H2, LAYOUT_H3, LAYOUT_H4, LAYOUT_H5, LAYOUT_JSON, N_LAYOUTS } Layout;

/* Hundredths, as iostat prints them. */
typedef struct Cell {
        uint64_t w_s, kb, w_await, size;
} Cell;

/* The first device was tested, the others were written a little, or are another layer with the same bytes. */
typedef struct Capture {
        Layout layout;
        bool mb, cpu, banner;
        unsigned n_devices, n_reports;
        const char *names[MAX_DEVICES];
        Cell cells[MAX_REPORTS][MAX_DEVICES];
} Capture;

static void fill(Capture *c, unsigned min_reports)
{
        static const char *const names[] = { "nvme0n1",    "sda",       "dm-5",
                                             "cciss/c0d0", "mmcblk0p1", "360a98000324669436c2b45666c567868" };
        bool slow = once_in(2), late = once_in(slow ? 3 : 2);
        unsigned first = (unsigned) any(ELEMENTSOF(names));

        *c = (Capture){ .layout = (Layout) any(N_LAYOUTS),
                        .mb = once_in(3),
                        .cpu = once_in(2),
                        .banner = !once_in(3),
                        .n_devices = 1 + (unsigned) any(MAX_DEVICES),
                        .n_reports = min_reports + (unsigned) any(MAX_REPORTS - min_reports + 1) };
        for (unsigned d = 0; d < c->n_devices; d++) {
                bool layer = once_in(3);

                c->names[d] = names[(first + d) % ELEMENTSOF(names)];
                for (unsigned r = 0; r < c->n_reports; r++) {
                        Cell *cell = &c->cells[r][d], *tested = &c->cells[r][0];

                        /* Far from the limits: what is lost of it, or half of a figure, changes nothing. */
                        cell->size = 100 * (64 + any(960));
                        cell->kb = 100 * (slow ? 20000 + any(180000) : 1300000 + any(1000000));
                        cell->w_await = late ? 5000 + any(8000) : 30 + any(600);
                        if (d > 0 && layer)
                                *cell = *tested;
                        else if (d > 0)
                                cell->kb = tested->kb / (100 + any(1000));
                        cell->w_s = (100 * cell->kb + cell->size / 2) / cell->size;
                        cell->kb = cell->w_s * cell->size / 100;
                }
        }
}

static void put_number(FILE *out, int width, uint64_t hundredths)
{
        (void) fprintf(out, " %*" PRIu64 ".%02" PRIu64, width - 3, hundredths / 100, hundredths % 100);
}

/* What each layout has in front of and behind the writes, as a format of zeros. */
static void put_zeros(FILE *out, unsigned n)
{
        while (n-- > 0)
                put_number(out, 8, 0);
}

static uint64_t shown_throughput(const Capture *c, const Cell *cell)
{
        return c->mb ? (cell->kb + 512) / 1024 : cell->kb;
}

static void put_text_row(FILE *out, const Capture *c, unsigned d, const Cell *cell)
{
        uint64_t throughput = shown_throughput(c, cell), queue = cell->w_s * cell->w_await / 100000;

        (void) fprintf(out, "%-10s", c->names[d]);
        switch (c->layout) {
        case LAYOUT_H2: /* rrqm wrqm r w rkB wkB avgrq-sz avgqu-sz await r_await w_await svctm %util */
                put_zeros(out, 3);
                put_number(out, 8, cell->w_s);
                put_zeros(out, 1);
                put_number(out, 10, throughput);
                put_number(out, 8, 2 * cell->size);
                put_number(out, 8, queue);
                put_number(out, 7, cell->w_await);
                put_zeros(out, 1);
                put_number(out, 7, cell->w_await);
                put_zeros(out, 1);
                break;
        case LAYOUT_H3: /* r w rkB wkB rrqm wrqm %rrqm %wrqm r_await w_await aqu-sz rareq-sz wareq-sz svctm */
                put_zeros(out, 1);
                put_number(out, 8, cell->w_s);
                put_zeros(out, 1);
                put_number(out, 10, throughput);
                put_zeros(out, 5);
                put_number(out, 7, cell->w_await);
                put_number(out, 7, queue);
                put_zeros(out, 1);
                put_number(out, 8, cell->size);
                put_zeros(out, 1);
                break;
        case LAYOUT_H4:
        case LAYOUT_H5: /* six of reads, w wkB wrqm %wrqm w_await wareq-sz, six of discards, (f f_await)
                           aqu-sz */
                put_zeros(out, 6);
                put_number(out, 8, cell->w_s);
                put_number(out, 10, throughput);
                put_zeros(out, 2);
                put_number(out, 7, cell->w_await);
                put_number(out, 8, cell->size);
                put_zeros(out, c->layout == LAYOUT_H5 ? 8 : 6);
                put_number(out, 7, queue);
                break;
        case LAYOUT_JSON:
        case N_LAYOUTS:
                break;
        }
        put_number(out, 6, 9900);
        (void) fputc('\n', out);
}

static void put_text(FILE *out, const Capture *c)
{
        static const char *const headers[] = {
                [LAYOUT_H2] = "Device:         rrqm/s   wrqm/s     r/s     w/s    r%s/s    w%s/s avgrq-sz "
                              "avgqu-sz   "
                              "await r_await w_await  svctm  %%util\n",
                [LAYOUT_H3] =
                        "Device            r/s     w/s     r%s/s     w%s/s   rrqm/s   wrqm/s  %%rrqm  %%wrqm "
                        "r_await w_await aqu-sz rareq-sz wareq-sz  svctm  %%util\n",
                [LAYOUT_H4] = "Device            r/s     r%s/s   rrqm/s  %%rrqm r_await rareq-sz     w/s     "
                              "w%s/s   "
                              "wrqm/s  %%wrqm w_await wareq-sz     d/s     dkB/s   drqm/s  %%drqm d_await "
                              "dareq-sz  "
                              "aqu-sz  %%util\n",
                [LAYOUT_H5] = "Device            r/s     r%s/s   rrqm/s  %%rrqm r_await rareq-sz     w/s     "
                              "w%s/s   "
                              "wrqm/s  %%wrqm w_await wareq-sz     d/s     dkB/s   drqm/s  %%drqm d_await "
                              "dareq-sz     "
                              "f/s f_await  aqu-sz  %%util\n",
        };
        const char *unit = c->mb ? "MB" : "kB";

        if (c->banner)
                (void) fputs("Linux 6.1.0-28-amd64 (db2-node1) \t11/30/2026 \t_x86_64_\t(2 CPU)\n\n", out);
        for (unsigned r = 0; r < c->n_reports; r++) {
                if (c->cpu)
                        (void) fputs("avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n"
                                     "           0.49    0.00   20.59   30.39    0.00   48.53\n\n",
                                     out);
                        /* The formats are the literals above. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
                (void) fprintf(out, headers[c->layout], unit, unit);
#pragma GCC diagnostic pop
                for (unsigned d = 0; d < c->n_devices; d++)
                        put_text_row(out, c, d, &c->cells[r][d]);
                (void) fputc('\n', out);
        }
}

static void put_json(FILE *out, const Capture *c)
{
        const char *unit = c->mb ? "MB" : "kB";

        (void) fputs("{\"sysstat\": {\n\t\"hosts\": [\n\t\t{\n\t\t\t\"nodename\": \"db2-node1\",\n"
                     "\t\t\t\"sysname\": \"Linux\",\n\t\t\t\"number-of-cpus\": 2,\n\t\t\t\"statistics\": [\n",
                     out);
        for (unsigned r = 0; r < c->n_reports; r++) {
                (void) fputs("\t\t\t\t{\n", out);
                if (c->cpu)
                        (void) fputs("\t\t\t\t\t\"avg-cpu\":  {\"user\": 0.49, \"idle\": 48.53},\n", out);
                (void) fputs("\t\t\t\t\t\"disk\": [\n", out);
                for (unsigned d = 0; d < c->n_devices; d++) {
                        const Cell *cell = &c->cells[r][d];
                        (void) fprintf(out,
                                       "\t\t\t\t\t\t{\"disk_device\": \"%s\", \"r/s\": 0.00, \"w/s\": %.2f, "
                                       "\"r%s/s\": "
                                       "0.00, \"w%s/s\": %.2f, \"wrqm\": 0.00, \"w_await\": %.2f, "
                                       "\"wareq-sz\": %.2f, "
                                       "\"aqu-sz\": 1.00, \"util\": 99.00}%s\n",
                                       c->names[d], (double) cell->w_s / 100, unit, unit,
                                       (double) shown_throughput(c, cell) / 100, (double) cell->w_await / 100,
                                       (double) cell->size / 100, d + 1 < c->n_devices ? "," : "");
                }
                (void) fprintf(out, "\t\t\t\t\t]\n\t\t\t\t}%s\n", r + 1 < c->n_reports ? "," : "");
        }
        (void) fputs("\t\t\t]\n\t\t}\n\t]\n}}\n", out);
}

typedef struct Text {
        char *bytes;
        size_t size;
} Text;

static void text_done(Text *text)
{
        free(text->bytes);
}

static Text render(const Capture *c)
{
        Text text = { 0 };

        FILE *out = open_memstream(&text.bytes, &text.size);
        assert_non_null(out);
        (c->layout == LAYOUT_JSON ? put_json : put_text)(out, c);
        assert_int_equal(fclose(out), 0);
        return text;
}

/* ---- what is put in front of lines ---- */

typedef void (*Mangler)(FILE *out, const Text *text, const Capture *c);

typedef void (*LineWriter)(FILE *out, const char *line, size_t size, unsigned n, unsigned kind);

static void each_line(FILE *out, const Text *text, LineWriter write, unsigned kind)
{
        unsigned n = 0;

        for (const char *p = text->bytes, *end = p + text->size; p < end; n++) {
                const char *newline = memchr(p, '\n', (size_t) (end - p));
                size_t size = (size_t) (newline - p);
                write(out, p, size, n, kind);
                p = newline + 1;
        }
}

static void write_led(FILE *out, const char *line, size_t size, unsigned n, unsigned kind)
{
        switch (kind) {
        case 0:
                (void) fputs("> ", out);
                break;
        case 1:
                (void) fputs(">> ", out);
                break;
        case 2:
                (void) fputs("# ", out);
                break;
        case 3:
                (void) fputs("// ", out);
                break;
        case 4:
                (void) fprintf(out, "[18:%02u:%02u]", n / 60, n % 60);
                break;
        case 5:
                (void) fprintf(out, "[18:%02u:%02u] ", n / 60, n % 60);
                break;
        case 6:
                (void) fprintf(out, "2026-11-30T10:%02u:%02u+00:00 ", n / 60, n % 60);
                break;
        case 7:
                (void) fprintf(out, "2026-11-30 10:%02u:%02u,123 ", n / 60, n % 60);
                break;
        case 8:
                (void) fprintf(out, "%s 30 10:%02u:%02u host iostat[123]: ", n < 40 ? "Nov" : "Dec", n / 60,
                               n % 60);
                break;
        case 9:
                (void) fprintf(out, "10:%02u:%02u %s ", n / 60, n % 60, n < 40 ? "AM" : "PM");
                break;
        case 10:
                (void) fprintf(out, "17645%05u ", n);
                break;
        case 11:
                (void) fputs("iostat_1  | ", out);
                break;
        case 12:
                (void) fputs("node1: ", out);
                break;
        case 13:
                (void) fprintf(out, "%u:", n + 1);
                break;
        case 14:
                (void) fprintf(out, "%6u\t", n + 1);
                break;
        case 15:
                (void) fputs("    ", out);
                break;
        case 16:
                (void) fprintf(out, "[%5u.%06u] ", n / 7, n * 977 % 1000000);
                break;
        case 17:
                (void) fprintf(out, "%u.11.2026 10:%02u:%02u ", 1 + n / 40, n / 60, n % 60);
                break;
        case 18:
                (void) fputs("2026-11-30T10:00:01.123456789Z stdout F ", out);
                break;
        case 19:
                (void) fputs("cap1.txt:", out);
                break;
        default:
                break;
        }
        (void) fprintf(out, "%.*s\n", (int) size, line);
}

#define N_LEADS 20

static void lead(FILE *out, const Text *text, const Capture *c)
{
        /* What is glued to a line that has its own brackets cannot be told from them; to JSON it does
         * nothing. */
        (void) c;
        each_line(out, text, write_led, (unsigned) any(N_LEADS));
}

/* A time before the rows only; a mark before the header only, as pcp prints it. */
static void write_led_partly(FILE *out, const char *line, size_t size, unsigned n, unsigned kind)
{
        bool header = memmem(line, size, "Device", 6), blank = size == 0 || line[0] == ' ';

        if (kind == 0 && header)
                (void) fputs("# ", out);
        if (kind == 1 && !header && !blank)
                (void) fprintf(out, "10:%02u:%02u ", n / 60, n % 60);
        if (kind == 2 && header)
                (void) fputs("Datetime          ", out);
        if (kind == 2 && !header && !blank)
                (void) fprintf(out, "09/29/25 15:%02u:%02u ", n / 60, n % 60);
        (void) fprintf(out, "%.*s\n", (int) size, line);
}

static void lead_partly(FILE *out, const Text *text, const Capture *c)
{
        if (c->layout == LAYOUT_JSON)
                lead(out, text, c);
        else
                each_line(out, text, write_led_partly, (unsigned) any(3));
}

/* ---- what is between the tokens and around the text ---- */

static void write_recoded(FILE *out, const char *line, size_t size, unsigned n, unsigned kind)
{
        bool row = size > 0 && line[0] != ' ' && memchr(line, '.', size) && !memmem(line, size, "Linux", 5);

        for (size_t i = 0; i < size; i++) {
                bool first = line[i] == ' ' && (i == 0 || line[i - 1] != ' ');
                if (kind == 0 && line[i] == ' ')
                        (void) fputs(first ? "\t" : "", out);
                else if (kind == 1 && line[i] == ' ')
                        (void) fputs("\xc2\xa0", out);
                else if (kind == 2 && line[i] == ' ')
                        (void) fputs(first ? "," : "", out);
                else if (kind == 3 && line[i] == ' ')
                        (void) fputs(first ? " | " : "", out);
                else if (kind == 4 && line[i] == ' ')
                        (void) fputs("&nbsp;", out);
                else if (kind == 5 && line[i] == ' ')
                        (void) fputs(first ? ";" : "", out);
                else if (kind == 6 && first && row)
                        (void) fputs("\033[0m \033[34;1m", out);
                else if (kind == 10 && row && line[i] == '.')
                        (void) fputc(',', out);
                else
                        (void) fputc(line[i], out);
        }
        if (kind == 7)
                (void) fputs("\r", out);
        if (kind == 8)
                (void) fputs("   ", out);
        if (kind == 9 && row && n % 3 == 0)
                (void) fputs("  <-- look", out);
        (void) fputs(kind == 11 ? "\n\n" : "\n", out);
}

#define N_RECODINGS 12

static void recode(FILE *out, const Text *text, const Capture *c)
{
        if (c->layout == LAYOUT_JSON)
                each_line(out, text, write_recoded, once_in(2) ? 7 : 11);
        else
                each_line(out, text, write_recoded, (unsigned) any(N_RECODINGS));
}

static void surround(FILE *out, const Text *text, const Capture *c)
{
        static const char *const before[] = {
                "\xef\xbb\xbf",
                "root@db2-node1:~# iostat -xyz 1\n",
                "Hello,\n\nthis is what we see:\n\n```\n",
                "10000+0 records in\n10485760000 bytes (10 GB, 9.8 GiB) copied, 5.1 s, 2.1 GB/s\n",
                "METADATA START {\"pods\":1,\"options\":{\"human\":\"false\"}}\n",
                "<pre>\n",
        };

        (void) c;
        (void) fputs(before[any(ELEMENTSOF(before))], out);
        (void) fwrite(text->bytes, 1, text->size, out);
        (void) fputs(once_in(2) ? "```\n\n-- \nMany thanks {and \"greetings\"}\n" : "^C\nroot@db2-node1:~# ",
                     out);
}

/* JSON as jq and other tools lay it out, and what loses brackets. */
static void relay_json(FILE *out, const Text *text, const Capture *c)
{
        unsigned kind = (unsigned) any(6);
        size_t from = 0, to = text->size;

        if (c->layout != LAYOUT_JSON) {
                recode(out, text, c);
                return;
        }
        if (kind == 0) /* the head is lost */
                from = (size_t) ((const char *) memmem(text->bytes, text->size, "\"statistics\"", 12) -
                                 text->bytes);
        if (kind == 1) /* it was killed */
                to -= 20;
        for (size_t i = from; i < to; i++) {
                char b = text->bytes[i];
                if (kind == 2 && (b == '\n' || b == '\t')) /* jq -c */
                        continue;
                if (kind == 3 && b == ',' && text->bytes[i + 1] == ' ') /* jq */
                        (void) fputs(",\n   ", out);
                else if (kind == 4 && b == '}' && once_in(8))
                        (void) fputs("}}", out);
                else if (kind == 5 && b == ',' && text->bytes[i + 1] == '\n')
                        (void) fputs("\n,", out);
                else
                        (void) fputc(b, out);
        }
}

/* ---- what cannot be read any more, or not always ---- */

static void fold(FILE *out, const Text *text, const Capture *c)
{
        size_t width = 20 + any(170), column = 0;
        bool at_words = once_in(2), encoded = once_in(3);

        (void) c;
        for (size_t i = 0; i < text->size; i++) {
                char b = text->bytes[i];

                if (b == '\n')
                        column = 0;
                else if (column >= width && (!at_words || encoded || b == ' ')) {
                        (void) fputs(encoded ? "=\n" : "\n", out);
                        column = 0;
                } else
                        column++;
                (void) fputc(b, out);
        }
}

/* What a terminal or a program cut off at the right. */
static void cut(FILE *out, const Text *text, const Capture *c)
{
        size_t width = 20 + any(170), column = 0;
        bool dots = once_in(3);

        (void) c;
        for (size_t i = 0; i < text->size; i++, column++) {
                if (text->bytes[i] == '\n')
                        column = (size_t) -1;
                if (column == width && dots)
                        (void) fputs("...", out);
                if (column < width || column == (size_t) -1)
                        (void) fputc(text->bytes[i], out);
        }
}

/* 1234567.00 as 1,234,567.00, and without its decimals when there are thousands: ambiguous. */
static void group(FILE *out, const Text *text, const Capture *c)
{
        bool ambiguous = once_in(2), comma = once_in(2);

        (void) c;
        for (size_t i = 0; i < text->size;) {
                size_t end = i;

                while (end < text->size && text->bytes[end] >= '0' && text->bytes[end] <= '9')
                        end++;
                bool number = end > i && i > 0 && text->bytes[i - 1] == ' ' && end + 3 < text->size &&
                              text->bytes[end] == '.';
                if (!number) {
                        (void) fputc(text->bytes[i++], out);
                        continue;
                }
                for (size_t k = i; k < end; k++) {
                        (void) fputc(text->bytes[k], out);
                        if ((end - k - 1) % 3 == 0 && k + 1 < end)
                                (void) fputc(comma ? ',' : '.', out);
                }
                if (!ambiguous || end - i <= 3)
                        (void) fprintf(out, "%c%.2s", comma ? '.' : ',', text->bytes + end + 1);
                i = end + 3;
        }
}

/* One byte in some 12 rows is lost, doubled or another one, or a piece of the file is. */
static void damage(FILE *out, const Text *text, const Capture *c)
{
        static const char stray[] = " \n\t.,0123456789-+:;|\"{}[]kM%#>a\0\x80\xff\033\r";
        size_t at = any(text->size), end = at;

        (void) c;
        (void) fwrite(text->bytes, 1, at, out);
        switch (any(5)) {
        case 0: /* a byte is lost */
                end = at + 1;
                break;
        case 1: /* it is another one */
                (void) fputc(stray[any(sizeof stray - 1)], out);
                end = at + 1;
                break;
        case 2: /* there is one more */
                (void) fputc(stray[any(sizeof stray - 1)], out);
                break;
        case 3: /* two lines become one, or what was between them is lost */
                end = at + any(200);
                break;
        default: /* somebody else writes into the same file */
                (void) fputs("dd: 12345.00 67 bytes copied\n", out);
                break;
        }
        if (end < text->size)
                (void) fwrite(text->bytes + end, 1, text->size - end, out);
}

/* ---- the property ---- */

static CaptureJudge *judge(const Text *text)
{
        CaptureJudge *judge = NULL;
        const Limits limits = limits_default();

        assert_int_equal(capture_judge_new(&limits, NULL, &judge), 0);
        assert_int_equal(capture_judge_feed(judge, text->bytes, text->size), 0);
        assert_int_equal(capture_judge_finish(judge), 0);
        return judge;
}

static void fail_on(const char *how, unsigned seed, const Text *text, const CaptureJudge *mangled,
                    const char *what)
{
        const Judgement *j = capture_judge_overall(mangled);

        (void) fwrite(text->bytes, 1, text->size, stderr);
        for (size_t i = 0; i < j->reasons.n; i++)
                (void) fprintf(stderr, "%s: %s\n", reason_to_string(j->reasons.items[i].code),
                               j->reasons.items[i].detail);
        fail_msg("%s, seed %u: %s: %s", how, seed, verdict_to_string(j->verdict), what);
}

static bool is_between(double value, double low, double high)
{
        return isnan(value) || (value >= low * (1 - 1e-6) && value <= high * (1 + 1e-6));
}

/* No figure of the tested device lies outside of those that it had: STRAY tells that one byte may have moved
 * one of them. */
static bool has_own_figures(const Capture *c, const CaptureDevice *device)
{
        double low_kb = INFINITY, high_kb = 0, low_ms = INFINITY, high_ms = 0, step = c->mb ? 1024 : 1;

        for (unsigned r = 0; r < c->n_reports; r++) {
                const Cell *cell = &c->cells[r][0];
                double kb = (double) shown_throughput(c, cell) / 100 * step;
                low_kb = fmin(low_kb, kb);
                high_kb = fmax(high_kb, kb);
                low_ms = fmin(low_ms, (double) cell->w_await / 100);
                high_ms = fmax(high_ms, (double) cell->w_await / 100);
        }
        return is_between(device->judgement.measured.wkb_s, low_kb, high_kb) &&
               is_between(device->judgement.measured.w_await, low_ms, high_ms);
}

static void leave(FILE *out, const Text *text, const Capture *c)
{
        (void) c;
        (void) fwrite(text->bytes, 1, text->size, out);
}

typedef enum Promise {
        SAME,     /* the verdict and every figure */
        NO_OTHER, /* these, or inconclusive */
        NO_FLIP,  /* the verdict or inconclusive: one figure may be another */
} Promise;

static Text mangle_once(Mangler mangle, const Text *text, const Capture *c)
{
        Text mangled = { 0 };

        FILE *out = open_memstream(&mangled.bytes, &mangled.size);
        assert_non_null(out);
        mangle(out, text, c);
        assert_int_equal(fclose(out), 0);
        return mangled;
}

/* One way after the other; SECOND: NULL when there is only one. */
static void check(Mangler first, Mangler second, const char *how, Promise promise, unsigned min_reports)
{
        unsigned read = 0;

        for (unsigned seed = 0; seed < seeds_of(SEEDS); seed++) {
                Capture c;

                rng = seed * UINT64_C(2654435761) + 1;
                fill(&c, min_reports);
                _cleanup_(text_done) Text clean = render(&c);
                _cleanup_(text_done) Text half = mangle_once(first, &clean, &c);
                _cleanup_(text_done) Text mangled = mangle_once(second ? second : leave, &half, &c);

                _cleanup_(capture_judge_freep) CaptureJudge *before = judge(&clean), *after = judge(&mangled);
                const Judgement *a = capture_judge_overall(before), *b = capture_judge_overall(after);
                const CaptureDevice *decider = capture_judge_decider(after);
                if (!capture_judge_decider(before) || a->verdict == VERDICT_INCONCLUSIVE)
                        fail_on(how, seed, &clean, before, "the clean one");
                if (b->verdict == VERDICT_INCONCLUSIVE) {
                        if (b->reasons.n == 0 || promise == SAME)
                                fail_on(how, seed, &mangled, after, "it can be read");
                        continue;
                }
                read++;
                if (b->verdict != a->verdict)
                        fail_on(how, seed, &mangled, after, "another verdict");
                if (promise == SAME && (b->samples_total != a->samples_total || decider->rows != c.n_reports))
                        fail_on(how, seed, &mangled, after, "rows are missing");
                if (promise != NO_FLIP && !has_own_figures(&c, decider))
                        fail_on(how, seed, &mangled, after, "other figures");
        }
        if (read < seeds_of(SEEDS) / 20)
                fail_msg("%s: only %u of %u can be read", how, read, seeds_of(SEEDS));
}

static void test_lead(void **state)
{
        (void) state;
        check(lead, NULL, "lead", SAME, 1);
        check(lead_partly, NULL, "lead partly", SAME, 1);
}

static void test_around(void **state)
{
        (void) state;
        check(recode, NULL, "recode", SAME, 1);
        check(surround, NULL, "surround", SAME, 1);
        check(relay_json, NULL, "relay", SAME, 1);
}

static void test_locale(void **state)
{
        (void) state;
        check(group, NULL, "group", NO_OTHER, 1);
}

static void test_fold(void **state)
{
        (void) state;
        check(fold, NULL, "fold", NO_OTHER, 1);
        check(cut, NULL, "cut", NO_OTHER, 1);
}

static void test_damage(void **state)
{
        (void) state;
        check(damage, NULL, "damage", NO_FLIP, 16);
}

static void test_both(void **state)
{
        (void) state;
        check(lead, surround, "lead, surround", SAME, 1);
        check(recode, lead, "recode, lead", NO_OTHER, 1);
        check(lead, fold, "lead, fold", NO_OTHER, 1);
        check(lead, cut, "lead, cut", NO_OTHER, 1);
        check(group, lead, "group, lead", NO_OTHER, 1);
        check(lead, damage, "lead, damage", NO_FLIP, 16);
        check(recode, damage, "recode, damage", NO_FLIP, 16);
        check(relay_json, damage, "relay, damage", NO_FLIP, 16);
        check(lead_partly, damage, "lead partly, damage", NO_FLIP, 16);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_lead), cmocka_unit_test(test_around), cmocka_unit_test(test_locale),
                cmocka_unit_test(test_fold), cmocka_unit_test(test_damage), cmocka_unit_test(test_both),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
