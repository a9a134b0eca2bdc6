/* SPDX-License-Identifier: Apache-2.0 */
/* What production shows: sums by parts of an hour and of a day. Touches nothing.
 *
 * Each span is a ring of parts. A part holds sums of its own samples only, so that a part that has become too
 * old is dropped with all it holds; what goes on over the border between two parts is put together when it is
 * asked for. */

#include "tierprobe/observed.h"

#include "tierprobe/clock.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SECTORS_PER_KB 2.0

/* Bins of w_await: 8 to each power of two from 2^-10 ms on, so that the middle of a bin is within 5 % of all
 * in it. */
#define BINS_PER_POWER 8
#define LOWEST_POWER (-10)
#define N_BINS ((17 - LOWEST_POWER) * BINS_PER_POWER) /* to 131 s */

#define MAX_PARTS 61
#define MAX_HELD 128 /* samples of at least 100 ms in ten seconds, and one more */

#define MAX_BACK_NS (60 * (int64_t) NS_PER_S)

typedef struct SpanRule {
        const char *name;
        int64_t part_ns;
        unsigned n_parts; /* whole ones; the one under way comes to these */
} SpanRule;

static const SpanRule rules[_OBSERVED_SPAN_MAX] = {
        [OBSERVED_HOUR] = { "hour", 60 * (int64_t) NS_PER_S, 60 },
        [OBSERVED_DAY] = { "day", 1800 * (int64_t) NS_PER_S, 48 },
};

/* A time above the limit. */
typedef struct Streak {
        int64_t begin_ns, length_ns;
} Streak;

typedef struct Part {
        int64_t number; /* real_ns / part_ns; 0: empty */
        uint64_t samples, with_writes, over;
        double max_ms;
        uint64_t weight;
        uint32_t bins[N_BINS];
        double held_kb_s, held_ms; /* NAN: none */
        int64_t held_begin_ns;
        Streak head;        /* how a streak of the part before goes on here; no length: it does not */
        bool head_is_whole; /* it goes on through all of this part */
        Streak tail;        /* the one under way at the end; the head's if that is whole */
        Streak best;        /* the longest that began here */
} Part;

typedef struct Span {
        Part parts[MAX_PARTS];
} Span;

/* What the last ten seconds hold. */
typedef struct Held {
        ObservedSample samples[MAX_HELD];
        size_t first, n;
        int64_t length_ns;
        uint64_t writes, write_ms, sectors;
} Held;

struct Observed {
        double limit_ms;
        int64_t newest_ns; /* of the last sample; 0: none */
        bool in_streak;
        Held held;
        Span spans[_OBSERVED_SPAN_MAX];
};

const char *observed_span_to_string(ObservedSpan span)
{
        return rules[span].name;
}

int64_t observed_begin_real_ns(ObservedSpan span, int64_t now_real_ns)
{
        return (now_real_ns / rules[span].part_ns - rules[span].n_parts + 1) * rules[span].part_ns;
}

/* ---- one part ---- */

static size_t bin_of(double await_ms)
{
        double place = await_ms > 0 ? floor((log2(await_ms) - LOWEST_POWER) * BINS_PER_POWER) : 0;

        return place < 0 ? 0 : place >= N_BINS ? N_BINS - 1 : (size_t) place;
}

/* The middle of a bin, in the sense that both borders are as many times away. */
static double bin_ms(size_t bin)
{
        return exp2(((double) bin + 0.5) / BINS_PER_POWER + LOWEST_POWER);
}

static void add_weight(uint32_t *bin, uint64_t weight)
{
        *bin = weight > UINT32_MAX - *bin ? UINT32_MAX : *bin + (uint32_t) weight;
}

static Part *part_at(Span *span, const SpanRule *rule, int64_t real_ns)
{
        int64_t number = real_ns / rule->part_ns;
        Part *part = &span->parts[number % (rule->n_parts + 1)];

        if (part->number != number)
                *part = (Part){ .number = number, .held_kb_s = NAN, .held_ms = NAN };
        return part;
}

static void lengthen(Part *part, Streak *streak, int64_t by_ns)
{
        streak->length_ns += by_ns;
        if (streak->length_ns > part->best.length_ns)
                part->best = *streak;
}

/* One more interval above the limit, which follows on such a one. */
static void go_on(Part *part, const ObservedSample *sample)
{
        int64_t length_ns = (int64_t) sample->interval_ns;

        if (part->samples == 0) { /* it came over from the part before */
                part->head_is_whole = true;
                part->head = (Streak){ sample->real_ns - length_ns, length_ns };
        } else if (part->head_is_whole)
                part->head.length_ns += length_ns;
        else
                lengthen(part, &part->tail, length_ns);
}

static void begin_streak(Part *part, const ObservedSample *sample)
{
        part->tail = (Streak){ .begin_ns = sample->real_ns - (int64_t) sample->interval_ns };
        lengthen(part, &part->tail, (int64_t) sample->interval_ns);
}

static void add_to_part(Part *part, const ObservedSample *sample, double await_ms, bool is_over,
                        bool was_over)
{
        if (is_over && was_over)
                go_on(part, sample);
        else {
                part->head_is_whole = false;
                part->tail = (Streak){ 0 };
                if (is_over)
                        begin_streak(part, sample);
        }
        part->samples++;
        if (sample->writes == 0)
                return;
        part->with_writes++;
        part->over += is_over;
        part->max_ms = fmax(part->max_ms, await_ms);
        part->weight += sample->writes;
        add_weight(&part->bins[bin_of(await_ms)], sample->writes);
}

/* ---- ten seconds on end ---- */

static void hold(Held *held, const ObservedSample *sample)
{
        const ObservedSample *oldest = &held->samples[held->first];

        held->length_ns += (int64_t) sample->interval_ns;
        held->writes += sample->writes;
        held->write_ms += sample->write_ms;
        held->sectors += sample->sectors;
        while (held->n > 0 &&
               (held->n == MAX_HELD || held->length_ns - (int64_t) oldest->interval_ns >= OBSERVED_HELD_NS)) {
                held->length_ns -= (int64_t) oldest->interval_ns;
                held->writes -= oldest->writes;
                held->write_ms -= oldest->write_ms;
                held->sectors -= oldest->sectors;
                held->first = (held->first + 1) % MAX_HELD;
                held->n--;
                oldest = &held->samples[held->first];
        }
        held->samples[(held->first + held->n++) % MAX_HELD] = *sample;
}

static void take_held(Part *part, const Held *held, int64_t end_ns)
{
        double kb_s = (double) held->sectors / SECTORS_PER_KB / ((double) held->length_ns / 1e9);

        if (held->length_ns < OBSERVED_HELD_NS || held->writes == 0 || part->held_kb_s >= kb_s)
                return;
        part->held_kb_s = kb_s;
        part->held_ms = (double) held->write_ms / (double) held->writes;
        part->held_begin_ns = end_ns - held->length_ns;
}

/* ---- samples ---- */

void observed_break(Observed *observed)
{
        observed->in_streak = false;
        observed->held = (Held){ 0 };
}

void observed_add(Observed *observed, const ObservedSample *sample)
{
        ObservedSample one = *sample;

        if (one.real_ns < observed->newest_ns - MAX_BACK_NS) {
                memset(observed->spans, 0, sizeof observed->spans);
                observed_break(observed);
        } else if (one.real_ns < observed->newest_ns)
                one.real_ns = observed->newest_ns; /* parts are filled in their order */
        observed->newest_ns = one.real_ns;

        double await_ms = one.writes > 0 ? (double) one.write_ms / (double) one.writes : NAN;
        bool is_over = one.writes > 0 && await_ms >= observed->limit_ms;
        hold(&observed->held, &one);
        for (ObservedSpan span = 0; span < _OBSERVED_SPAN_MAX; span++) {
                Part *part = part_at(&observed->spans[span], &rules[span], one.real_ns);

                add_to_part(part, &one, await_ms, is_over, observed->in_streak);
                take_held(part, &observed->held, one.real_ns);
        }
        observed->in_streak = is_over;
}

/* ---- figures ---- */

static double quantile_ms(const uint64_t bins[N_BINS], uint64_t total, double fraction, double max_ms)
{
        double wanted = fraction * (double) total, seen = 0;

        for (size_t bin = 0; bin < N_BINS; bin++) {
                seen += (double) bins[bin];
                if (bins[bin] > 0 && seen >= wanted)
                        return fmin(bin_ms(bin), max_ms);
        }
        return max_ms;
}

static void take_longest(ObservedFigures *figures, const Streak *streak)
{
        double length_s = (double) streak->length_ns / 1e9;

        if (streak->length_ns <= 0 || figures->longest_over_s >= length_s)
                return;
        figures->longest_over_s = length_s;
        figures->longest_begin_real_ns = streak->begin_ns;
}

/* Adds the part to what is known of those before it. CARRIED is the streak that was under way at their end.
 */
static void add_part(ObservedFigures *figures, const Part *part, Streak *carried)
{
        figures->samples += part->samples;
        figures->samples_with_writes += part->with_writes;
        figures->samples_over_limit += part->over;
        figures->max_ms = fmax(figures->max_ms, part->max_ms);
        if (!isnan(part->held_kb_s) && !(figures->held_wkb_s >= part->held_kb_s)) {
                figures->held_wkb_s = part->held_kb_s;
                figures->held_w_await_ms = part->held_ms;
                figures->held_begin_real_ns = part->held_begin_ns;
        }
        if (part->head.length_ns > 0) {
                if (carried->length_ns == 0)
                        carried->begin_ns = part->head.begin_ns;
                carried->length_ns += part->head.length_ns;
                take_longest(figures, carried);
        }
        take_longest(figures, &part->best);
        if (!part->head_is_whole)
                *carried = part->tail;
}

void observed_figures(const Observed *observed, ObservedSpan span, int64_t now_real_ns, ObservedFigures *ret)
{
        const SpanRule *rule = &rules[span];
        int64_t now = now_real_ns / rule->part_ns;
        uint64_t bins[N_BINS] = { 0 }, total = 0;
        Streak carried = { 0 };

        *ret = (ObservedFigures){ .held_wkb_s = NAN, .held_w_await_ms = NAN };
        for (int64_t number = now - rule->n_parts + 1; number <= now; number++) {
                const Part *part =
                        number > 0 ? &observed->spans[span].parts[number % (rule->n_parts + 1)] : NULL;

                if (!part || part->number != number)
                        continue;
                add_part(ret, part, &carried);
                for (size_t bin = 0; bin < N_BINS; bin++)
                        bins[bin] += part->bins[bin];
        }
        for (size_t bin = 0; bin < N_BINS; bin++)
                total += bins[bin];
        if (ret->samples_with_writes == 0)
                ret->max_ms = NAN;
        ret->p50_ms = total ? quantile_ms(bins, total, 0.50, ret->max_ms) : NAN;
        ret->p95_ms = total ? quantile_ms(bins, total, 0.95, ret->max_ms) : NAN;
        ret->p99_ms = total ? quantile_ms(bins, total, 0.99, ret->max_ms) : NAN;
}

/* ---- life ---- */

int observed_new(Observed **ret, double limit_ms)
{
        Observed *observed = calloc(1, sizeof *observed);

        if (!observed)
                return -ENOMEM;
        observed->limit_ms = limit_ms;
        *ret = observed;
        return 0;
}

Observed *observed_free(Observed *observed)
{
        free(observed);
        return NULL;
}

void observed_freep(Observed **observed)
{
        (void) observed_free(*observed);
}
