/* SPDX-License-Identifier: Apache-2.0 */
/* Random captures in random layouts against a plain second reading of the rule: arrays instead of a stream.
 */

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

#define MAX_DEVICES 4
#define MAX_REPORTS 14

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

typedef enum Unit { UNIT_KB, UNIT_MB, UNIT_SECTORS, UNIT_HUMAN, N_UNITS } Unit;

/* What is printed, in hundredths of the unit (tenths of M for human). */
typedef struct Cell {
        bool shown;
        int64_t throughput, w_s, w_await;
} Cell;

typedef struct Capture {
        unsigned n_devices, n_reports;
        const char *names[MAX_DEVICES];
        Cell cells[MAX_REPORTS][MAX_DEVICES];
        Unit unit;
        bool json, comma, two_lines, name_last, colour, cr, colon, cpu, stamps, split;
        unsigned order[5]; /* of the columns */
        char *text;
        size_t size;
        FILE *out;
} Capture;

static double cell_kb(const Capture *c, const Cell *cell)
{
        static const double units[N_UNITS] = { 0.01, 10.24, 0.005, 102.4 };

        return (double) cell->throughput * units[c->unit];
}

static void fill(Capture *c)
{
        static const char *const names[] = { "sda", "nvme0n1", "dm-5", "360a98000324669436c2b45666c567868" };
        static const double per_kb[N_UNITS] = { 100, 1 / 10.24, 200, 1 / 102.4 };

        c->n_devices = 1 + (unsigned) any(MAX_DEVICES);
        c->n_reports = 1 + (unsigned) any(MAX_REPORTS);
        c->unit = (Unit) any(N_UNITS);
        c->json = once_in(4);
        if (c->json && c->unit == UNIT_HUMAN)
                c->unit = UNIT_MB;
        c->comma = once_in(3);
        c->two_lines = once_in(4);
        c->name_last = !c->two_lines && once_in(3);
        c->split = c->name_last && once_in(2);
        c->colour = once_in(3);
        c->cr = once_in(4);
        c->colon = once_in(2);
        c->cpu = once_in(2);
        c->stamps = once_in(3);
        for (unsigned i = 0; i < 5; i++) {
                unsigned other = (unsigned) any(i + 1);
                c->order[i] = c->order[other];
                c->order[other] = i;
        }
        for (unsigned d = 0; d < c->n_devices; d++) {
                double base = once_in(3) ? 600000 : (double) any(3000000);
                int64_t await = once_in(3) ? 2000 : (int64_t) any(2100);

                c->names[d] = names[d];
                for (unsigned r = 0; r < c->n_reports; r++) {
                        Cell *cell = &c->cells[r][d];
                        double factor = once_in(12) ? (double) any(100) / 100 : once_in(2) ? 1 : 1.1;

                        cell->throughput = llround(base * factor * per_kb[c->unit]);
                        cell->w_s = (int64_t) any(200000);
                        cell->w_await = once_in(9) ? (int64_t) any(4000) : await;
                        if (once_in(16) || (cell->w_s == 0 && cell->throughput == 0))
                                *cell = (Cell){ 0 };
                        cell->shown = cell->throughput || cell->w_s || once_in(2);
                }
        }
}

static void put_number(Capture *c, int64_t hundredths)
{
        if (c->colour)
                (void) fprintf(c->out, "\033[34;1m");
        (void) fprintf(c->out, " %7" PRId64 "%c%02" PRId64, hundredths / 100, c->comma ? ',' : '.',
                       hundredths % 100);
        if (c->colour)
                (void) fprintf(c->out, "\033[0m");
}

static void end_line(const Capture *c)
{
        (void) fputs(c->cr ? "\r\n" : "\n", c->out);
}

static const char *const column_names[N_UNITS] = { "wkB/s", "wMB/s", "wsec/s", "wkB/s" };

static void put_header(Capture *c)
{
        const char *const columns[5] = { "r/s", "w/s", column_names[c->unit], "w_await", "%util" };

        if (!c->name_last)
                (void) fprintf(c->out, "Device%s", c->colon ? ":   " : "    ");
        for (unsigned i = 0; i < 5; i++)
                (void) fprintf(c->out, " %8s", columns[c->order[i]]);
        if (c->name_last)
                (void) fputs(" Device", c->out);
        end_line(c);
}

static void put_row(Capture *c, const char *name, const Cell *cell)
{
        const int64_t values[5] = { 123, cell->w_s, cell->throughput, cell->w_await, 10080 };

        if (!c->name_last)
                (void) fprintf(c->out, c->colour ? "\033[32;22m%-10s\033[0m" : "%-10s", name);
        if (c->two_lines)
                end_line(c);
        for (unsigned i = 0; i < 5; i++) {
                if (c->order[i] == 2 && c->unit == UNIT_HUMAN)
                        (void) fprintf(c->out, " %" PRId64 "%c%" PRId64 "M", cell->throughput / 10,
                                       c->comma ? ',' : '.', cell->throughput % 10);
                else
                        put_number(c, values[c->order[i]]);
        }
        if (c->name_last)
                (void) fprintf(c->out, " %s", name);
        end_line(c);
}

/* The block of reads that --pretty prints before that of writes. */
static void put_reads(Capture *c, unsigned report)
{
        (void) fputs("r/s rkB/s r_await Device", c->out);
        end_line(c);
        for (unsigned d = 0; d < c->n_devices; d++)
                if (c->cells[report][d].shown) {
                        (void) fprintf(c->out, "1.00 2.00 3.00 %s", c->names[d]);
                        end_line(c);
                }
        end_line(c);
}

static void render_text(Capture *c)
{
        (void) fprintf(c->out, "Linux 6.1.0-28-amd64 (db2-node1) \t11/30/2026 \t_x86_64_\t(2 CPU)\n\n");
        for (unsigned r = 0; r < c->n_reports; r++) {
                if (c->stamps)
                        (void) fprintf(c->out, "11/30/2026 01:14:%02u PM\n", r);
                if (c->cpu) {
                        (void) fprintf(c->out,
                                       "avg-cpu:  %%user   %%nice %%system %%iowait  %%steal   %%idle\n");
                        for (unsigned i = 0; i < 6; i++)
                                put_number(c, 1234);
                        (void) fputs("\n\n", c->out);
                }
                if (c->split)
                        put_reads(c, r);
                put_header(c);
                for (unsigned d = 0; d < c->n_devices; d++)
                        if (c->cells[r][d].shown)
                                put_row(c, c->names[d], &c->cells[r][d]);
                end_line(c);
        }
}

static void render_json(Capture *c)
{
        (void) fprintf(c->out, "{\"sysstat\": {\"hosts\": [{\"nodename\": \"a]}\\\"b\", \"statistics\": [\n");
        for (unsigned r = 0; r < c->n_reports; r++) {
                unsigned shown = 0;

                (void) fprintf(c->out, "%s{\"avg-cpu\": {\"user\": 0.00}, \"disk\": [", r ? ", " : "");
                for (unsigned d = 0; d < c->n_devices; d++) {
                        const Cell *cell = &c->cells[r][d];
                        if (cell->shown)
                                (void) fprintf(c->out,
                                               "%s{\"disk_device\": \"%s\", \"w/s\": %.2f, \"f/s\": 0.00, "
                                               "\"rkB/s\": 1.00, "
                                               "\"%s\": %.2f, \"w_await\": %.2f, \"util\": 1.00}",
                                               shown++ ? "," : "", c->names[d], (double) cell->w_s / 100,
                                               column_names[c->unit], (double) cell->throughput / 100,
                                               (double) cell->w_await / 100);
                }
                (void) fputs("]}", c->out);
        }
        (void) fputs("]}]}}\n", c->out);
}

/* ---- the rule, once more ---- */

typedef struct Expected {
        bool written;
        double written_kb; /* over all rows */
        double wkb_s, w_await;
        unsigned total, passing;
        Verdict verdict;
} Expected;

static Expected expect(const Capture *c, unsigned device)
{
        Expected e = { 0 };
        double peak = -1, kb = 0, weights = 0, ms = 0, ms_by_kb = 0;
        int first = -1, last = -1;

        for (unsigned r = 0; r < c->n_reports; r++) {
                const Cell *cell = &c->cells[r][device];
                if ((cell->throughput || cell->w_s) && cell_kb(c, cell) > peak)
                        peak = cell_kb(c, cell);
                e.written_kb += cell_kb(c, cell);
        }
        if (peak < 0)
                return e;
        e.written = true;
        for (int r = 0; r < (int) c->n_reports; r++) {
                const Cell *cell = &c->cells[r][device];
                /* A tenth exactly is in; in whole numbers of the unit there is no rounding to fear. */
                if ((cell->throughput || cell->w_s) && cell_kb(c, cell) * 10 >= peak * (1 - 1e-12)) {
                        first = first < 0 ? r : first;
                        last = r;
                }
        }
        if (last - first + 1 >= 3) {
                first++;
                last--;
        }
        for (int r = first; r <= last; r++) {
                const Cell *cell = &c->cells[r][device];
                double now = cell_kb(c, cell);

                e.total++;
                kb += now;
                weights += (double) cell->w_s;
                ms += (double) cell->w_s * (double) cell->w_await / 100;
                ms_by_kb += now * (double) cell->w_await / 100;
                e.passing += now >= 600000 && cell->w_await < 2000 && (cell->w_s || cell->throughput);
        }
        e.wkb_s = kb / e.total;
        e.w_await = weights > 0 ? ms / weights : ms_by_kb / kb;
        e.verdict = e.wkb_s >= 600000 && e.w_await < 20 && (double) e.passing / e.total >= 0.9 ? VERDICT_PASS
                                                                                               : VERDICT_FAIL;
        return e;
}

static bool near(double a, double b)
{
        return fabs(a - b) <= 1e-9 * (fabs(a) + fabs(b)) + 1e-12;
}

/* A part of a whole that is about the limit says nothing: the reader sums in another order. */
static bool is_near(double part, double limit)
{
        return fabs(part - limit) < 1e-9;
}

static const CaptureDevice *find_device(const CaptureJudge *judge, const char *name)
{
        for (size_t i = 0; i < capture_judge_n_devices(judge); i++)
                if (strcmp(capture_judge_device(judge, i)->name, name) == 0)
                        return capture_judge_device(judge, i);
        return NULL;
}

static void check_device(const Capture *c, const CaptureJudge *judge, unsigned d, double most, unsigned seed)
{
        Expected e = expect(c, d);
        const CaptureDevice *found = find_device(judge, c->names[d]);

        if (!e.written) {
                assert_true(!found || found == capture_judge_decider(judge));
                return;
        }
        if (!found) {
                fail_msg("seed %u: %s is missing in\n%s", seed, c->names[d], c->text);
                return;
        }
        const Judgement *j = &found->judgement;
        bool untimed = reasons_have(&j->reasons, REASON_COUNTERS_UNTIMED) ||
                       (found->idle && isnan(j->measured.w_await));
        bool on_the_edge = near(e.wkb_s, 600000) || near(e.w_await, 20) || is_near(e.written_kb / most, 0.1);
        if (found->idle) {
                e.verdict = VERDICT_INCONCLUSIVE;
                assert_true(e.written_kb / most < 0.1 + 1e-9 && found != capture_judge_decider(judge));
        } else
                assert_true(untimed || found == capture_judge_decider(judge) ||
                            e.written_kb / most > 0.1 - 1e-9 || j->verdict == VERDICT_INCONCLUSIVE);
        if (!near(j->measured.wkb_s, e.wkb_s) ||
            (!untimed && !isnan(e.w_await) && !near(j->measured.w_await, e.w_await)) ||
            j->samples_total != e.total || j->samples_passing != e.passing ||
            (!untimed && !on_the_edge && !isnan(e.w_await) && j->verdict != e.verdict))
                fail_msg("seed %u, %s: %f kB/s %f ms %u/%u %s, but expected %f kB/s %f ms %u/%u %s, in\n%s",
                         seed, c->names[d], j->measured.wkb_s, j->measured.w_await, j->samples_passing,
                         j->samples_total, verdict_to_string(j->verdict), e.wkb_s, e.w_await, e.passing,
                         e.total, verdict_to_string(e.verdict), c->text);
        if (j->verdict != VERDICT_PASS)
                assert_true(j->reasons.n > 0);
}

/* The device that was written most decides, unless another one that was written a tenth of it differs. */
static void check_decider(const CaptureJudge *judge, double most)
{
        const CaptureDevice *decider = capture_judge_decider(judge);
        const Judgement *overall = capture_judge_overall(judge);

        if (decider) {
                assert_true(decider->written_kb >= most * (1 - 1e-9));
                assert_int_equal(decider->judgement.verdict, overall->verdict);
                return;
        }
        bool differs = false;
        for (size_t i = 0; i < capture_judge_n_devices(judge); i++) {
                const CaptureDevice *device = capture_judge_device(judge, i);
                differs = differs ||
                          (device->written_kb >= 0.1 * most * (1 - 1e-9) &&
                           device->judgement.verdict != capture_judge_device(judge, 0)->judgement.verdict);
        }
        assert_true(differs);
        assert_int_equal(overall->verdict, VERDICT_INCONCLUSIVE);
        assert_true(reasons_have(&overall->reasons, REASON_WRONG_DEVICE));
}

static void check(const Capture *c, const CaptureJudge *judge, unsigned seed)
{
        double most = 0;

        for (unsigned d = 0; d < c->n_devices; d++)
                most = fmax(most, expect(c, d).written_kb);
        for (unsigned d = 0; d < c->n_devices; d++)
                check_device(c, judge, d, most, seed);
        if (most > 0)
                check_decider(judge, most);
        else
                assert_int_equal(capture_judge_overall(judge)->verdict, VERDICT_INCONCLUSIVE);
}

static void test_random(void **state)
{
        unsigned seen[_VERDICT_MAX] = { 0 };

        (void) state;
        for (unsigned seed = 0; seed < seeds_of(20000); seed++) {
                Capture c = { 0 };

                rng = seed;
                fill(&c);
                c.out = open_memstream(&c.text, &c.size);
                assert_non_null(c.out);
                (c.json ? render_json : render_text)(&c);
                assert_int_equal(fclose(c.out), 0);

                _cleanup_(capture_judge_freep) CaptureJudge *judge = NULL;
                const Limits limits = limits_default();

                assert_int_equal(capture_judge_new(&limits, NULL, &judge), 0);
                for (size_t at = 0; at < c.size;) {
                        size_t piece = 1 + any(200);
                        if (piece > c.size - at)
                                piece = c.size - at;
                        assert_int_equal(capture_judge_feed(judge, c.text + at, piece), 0);
                        at += piece;
                }
                assert_int_equal(capture_judge_finish(judge), 0);
                check(&c, judge, seed);
                seen[capture_judge_overall(judge)->verdict]++;
                free(c.text);
        }
        assert_true(seen[VERDICT_PASS] > seeds_of(500) && seen[VERDICT_FAIL] > seeds_of(500) &&
                    seen[VERDICT_INCONCLUSIVE] > 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_random),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
