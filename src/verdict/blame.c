/* SPDX-License-Identifier: Apache-2.0 */
/* Whose fault a miss is, and what mends it. Pure. */

#include "blame.h"

#include "tierprobe/clock.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A device that had nothing to do for more than half of the time was not what held the writers up. */
#define BUSY_MIN_PERCENT 50

static const Surroundings *surroundings(const RunFacts *facts)
{
        static const Surroundings unknown = {
                .processor = NAN, .waiting = NAN, .steal = NAN, .call_ms = NAN
        };

        return facts->surroundings ? facts->surroundings : &unknown;
}

static bool is_idle(const Judgement *j)
{
        return j->measured.util < BUSY_MIN_PERCENT; /* false where it is not known */
}

void blame_advise(const Limits *limits, const RunFacts *facts, const Judgement *j, Advice *ret)
{
        const Criterion *throughput = &j->criteria[CRITERION_WRITE_THROUGHPUT];
        const Criterion *latency = &j->criteria[CRITERION_WRITE_LATENCY];
        char *slow = ret->text[CRITERION_WRITE_THROUGHPUT], *late = ret->text[CRITERION_WRITE_LATENCY];

        advice_init(ret);
        if (!isnan(latency->value) && !latency->pass && throughput->pass && facts->streams > 1)
                (void) snprintf(late, ADVICE_SIZE,
                                "Use fewer writers at once than %u: the throughput has room for it.",
                                facts->streams);
        /* Both missed: nothing but another device mends that. */
        if (throughput->pass || isnan(throughput->value) || (!isnan(latency->value) && !latency->pass))
                return;
        if (is_idle(j))
                (void) snprintf(
                        slow, ADVICE_SIZE,
                        "Look above the device (file system, encryption, processor): it was busy only "
                        "%.0f %% of the time.",
                        j->measured.util);
        else if (facts->streams == 1 && latency->value < limits->value[CRITERION_WRITE_LATENCY] / 4)
                (void) snprintf(
                        slow, ADVICE_SIZE,
                        "Use a faster device: one writer, who waits for each block, had it busy; profile "
                        "ramp shows what more would get out of it.");
}

/* The throughput with the time taken out in which the writers were kept from writing. */
static bool would_be_met(const Limits *limits, const Judgement *j, double held)
{
        const Criterion *throughput = &j->criteria[CRITERION_WRITE_THROUGHPUT];

        return held > 0 && held < 1 &&
               criterion_met(limits, CRITERION_WRITE_THROUGHPUT, throughput->value / (1 - held));
}

static double known_or_0(double value)
{
        return isfinite(value) ? value : 0;
}

bool blame_is_above(const Limits *limits, const RunFacts *facts, const Window *window, const Judgement *j,
                    const Reasons *misses, Reasons *reasons)
{
        const Surroundings *around = surroundings(facts);
        double waiting = known_or_0(around->waiting), steal = known_or_0(around->steal);
        double time_s = (double) window->sum.interval_ns / 1e9, idle_s = (double) window->idle_ns / 1e9;
        double idle = time_s > 0 ? idle_s / time_s : 0, held = waiting + steal + idle;
        bool latency = reasons_have(misses, REASON_WRITE_LATENCY_HIGH);

        if (around->limit && (!latency || around->limit_in_latency)) {
                reasons_add(reasons, REASON_THROTTLED,
                            "The test ran into an own limit: %.230s. The device was busy %.0f %% of the "
                            "time. Raise "
                            "the limit and run again.",
                            around->limit, known_or_0(j->measured.util));
                return true;
        }
        /* What the device's own latency says is no other's doing. */
        if (latency)
                return false;
        bool explains = reasons_have(misses, REASON_WRITE_THROUGHPUT_LOW)
                                ? would_be_met(limits, j, held)
                                : held * time_s * 2 >= (double) window->missing_ns / 1e9;
        if (!explains)
                return false;
        if (idle > waiting + steal) {
                reasons_add(reasons, REASON_THROTTLED,
                            "This host held the test up: for %.1f s of the %.1f s nothing was on its way to "
                            "%s, although "
                            "there was more to write. The writers were stopped (a signal, a debugger, a "
                            "frozen control "
                            "group or container), or the file system was. Run again without that.",
                            idle_s, time_s, facts->device_name ? facts->device_name : "the device");
                return true;
        }
        reasons_add(reasons, REASON_THROTTLED,
                    "This host held the test up: its writers were ready to run, but without a processor, for "
                    "%.0f %% "
                    "of the %.1f s, and %.0f %% of all processor time went to other guests (steal). Run "
                    "again when "
                    "it is less busy.",
                    100 * waiting, time_s, 100 * steal);
        return true;
}

static void append(Reason *reason, const char *what, int decimals, double value, const char *unit)
{
        size_t at = strlen(reason->detail), room = sizeof reason->detail - at;
        char text[120];

        int n = isfinite(value) ? snprintf(text, sizeof text, "%s %.*f %s", what, decimals, value, unit) : 0;
        if (n > 0 && (size_t) n < sizeof text && (size_t) n < room)
                memcpy(reason->detail + at, text, (size_t) n + 1);
}

static void append_text(Reason *reason, const char *text)
{
        size_t at = strlen(reason->detail), room = sizeof reason->detail - at;

        if (text && strlen(text) + 3 < room)
                (void) snprintf(reason->detail + at, room, " %s.", text);
}

void blame_explain(const RunFacts *facts, const Judgement *j, Reasons *misses)
{
        const Surroundings *around = surroundings(facts);

        for (size_t i = 0; i < misses->n; i++) {
                Reason *reason = &misses->items[i];

                if (reason->code == REASON_WRITE_THROUGHPUT_LOW) {
                        append(reason, " Meanwhile: device busy", 0, j->measured.util, "%");
                        append(reason, ", w_await", 2, j->measured.w_await, "ms");
                        append(reason, ", a write call", 2, around->call_ms, "ms");
                        append(reason, ", a writer on a processor", 0, 100 * around->processor, "%");
                        append(reason, ", waiting for one", 0, 100 * around->waiting, "%");
                        append(reason, ", steal", 0, 100 * around->steal, "%");
                        size_t length = strlen(reason->detail);
                        if (reason->detail[length - 1] != '.' && length + 1 < sizeof reason->detail)
                                memcpy(reason->detail + length, ".", 2);
                }
                if (reason->code == REASON_UNSTEADY)
                        append_text(reason, around->heat);
                append_text(reason, around->state);
        }
}
