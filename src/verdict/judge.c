/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict: which figures can be trusted, what they say, and why. Pure. */

#include "tierprobe/verdict.h"

#include "blame.h"
#include "figures.h"
#include "run-window.h"

#include "tierprobe/clock.h"
#include "tierprobe/path-error.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Below this part of what the writers wrote, the device did not do their work: something in between kept,
 * compressed or merged it. A device that lags by the time of a reading is far above it. */
#define BYTES_SEEN_MIN 0.90

/* Above this part of the device's writes, others were at work. */
#define FOREIGN_MAX 0.10

/* Kernels print whole milliseconds, but add up nanoseconds. No time at all over this many writes of this size
 * would be under 10 us for 64 KiB or more, or under 1 us for any: no device with a medium, but just what a
 * row without start times looks like (bio based md and dm before they were timed). A few fast writes are not
 * yet suspicious: fifty of 15 us give 0 ms honestly. */
#define UNTIMED_WRITES 100
#define UNTIMED_WRITE_BYTES (UINT64_C(64) << 10)
#define UNTIMED_WRITES_ANY_SIZE 1000

/* Our writes began inside the window; someone else's may have been stuck for some time before. */
#define IMPLAUSIBLE_AWAIT_WINDOWS 10
#define IMPLAUSIBLE_AWAIT_MS 60000

/* A device may do anything in the part of the writers' time that no sample has seen; in a fifth of it, too
 * little to turn the verdict on one that is twice as good as the limits, or half as good. */
#define UNSEEN_PART 5

static const char *device_name(const RunFacts *facts)
{
        return facts->device_name && *facts->device_name ? facts->device_name : "the device";
}

static double mib(uint64_t bytes)
{
        return (double) bytes / 1048576;
}

static double ns_to_s(uint64_t ns)
{
        return (double) ns / 1e9;
}

/* ---- how the run ended ---- */

static Verdict judge_write_error(const RunFacts *facts, Reasons *reasons)
{
        int error = facts->write_errno;
        PathError found = path_error_find(error);
        double offset_mib = mib(facts->write_offset_bytes);
        bool refused_direct = found.code == REASON_DIRECT_IO_UNSUPPORTED;

        /* Some file systems open with O_DIRECT and refuse the first write; a later one is no such refusal. */
        if (refused_direct && facts->write_offset_bytes == 0 && facts->bytes_written == 0) {
                reasons_add(reasons, found.code, "The first direct write was refused: %s (%s). %s",
                            found.says, found.name, found.mend);
                return VERDICT_INCONCLUSIVE;
        }
        if (refused_direct || found.code == REASON_WRITE_ERROR || found.code == REASON_STALLED) {
                const char *says = refused_direct ? strerrordesc_np(error) : found.says;

                reasons_add(reasons, REASON_WRITE_ERROR,
                            "A write to %s failed %.1f MiB into the file: %s (%s). %s", device_name(facts),
                            offset_mib, says ? says : "an unknown error", found.name,
                            refused_direct ? "Look at the kernel log and replace or repair the device."
                                           : found.mend);
                return VERDICT_FAIL;
        }
        reasons_add(
                reasons, found.code,
                "A write %.1f MiB into the file was refused: %s (%s). This says nothing about the device. %s",
                offset_mib, found.says, found.name, found.mend);
        return VERDICT_INCONCLUSIVE;
}

#define WRITTEN_SIZE 64

/* "5.0 MiB of 10.0 MiB"; how much it will be is not known of a test by time. */
static const char *written_text(char buf[WRITTEN_SIZE], const RunFacts *facts)
{
        double written = mib(facts->bytes_written);

        if (facts->bytes_total > 0)
                (void) snprintf(buf, WRITTEN_SIZE, "%.1f MiB of %.1f MiB", written, mib(facts->bytes_total));
        else
                (void) snprintf(buf, WRITTEN_SIZE, "%.1f MiB", written);
        return buf;
}

/* The verdict when the end alone decides it, else VERDICT_NEVER_RUN. */
static Verdict judge_end(const RunFacts *facts, Reasons *reasons)
{
        char written[WRITTEN_SIZE];

        switch (facts->end) {
        case TEST_COMPLETE:
        case TEST_TIME_LIMIT:
                return VERDICT_NEVER_RUN;
        case TEST_NOT_STARTED:
                reasons_add(reasons, facts->start_reason, "%s",
                            facts->start_detail ? facts->start_detail : "The test could not start.");
                return VERDICT_INCONCLUSIVE;
        case TEST_ABORTED:
                reasons_add(reasons, REASON_ABORTED, "%s after %s. Run again.",
                            facts->abort_detail ? facts->abort_detail : "Aborted",
                            written_text(written, facts));
                return VERDICT_INCONCLUSIVE;
        case TEST_NO_SPACE: {
                PathError found = path_error_find(facts->write_errno);

                if (found.code != REASON_THROTTLED)
                        found = path_error_find(ENOSPC);

                reasons_add(reasons, found.code, "After %s %s (%s). %s", written_text(written, facts),
                            found.says, found.name, found.mend);
                return VERDICT_INCONCLUSIVE;
        }
        case TEST_WRITE_ERROR:
                return judge_write_error(facts, reasons);
        case _TEST_END_MAX:
                break;
        }
        reasons_add(reasons, REASON_ABORTED, "The test ended in no known way. Run again.");
        return VERDICT_INCONCLUSIVE;
}

/* ---- whether the figures can be trusted ---- */

static void find_gaps(const RunFacts *facts, const Window *window, Reasons *reasons)
{
        const char *device = device_name(facts);

        if (window->broken[GAP_SUSPENDED])
                reasons_add(reasons, REASON_SUSPENDED,
                            "The machine was suspended during the test: %u interval(s) have no figures. Run "
                            "again while it stays awake.",
                            window->dropped);
        for (Gap gap = GAP_FIRST; gap < _GAP_MAX; gap++)
                if (gap != GAP_SUSPENDED && window->broken[gap])
                        reasons_add(reasons, REASON_COUNTERS_RESET,
                                    "The counters of %s broke off (%s) during the test: %u interval(s) have "
                                    "no figures. Look for a reset or removal in the kernel log, run again.",
                                    device, gap_to_string(gap), window->dropped);
        if (window->implausible)
                reasons_add(reasons, REASON_COUNTERS_RESET,
                            "The counters of %s jumped: %.3g MB/s is more than any device writes. Run again.",
                            device, window->implausible_mb_s);
        double most_ms =
                (double) window->sum.interval_ns / 1e6 * IMPLAUSIBLE_AWAIT_WINDOWS + IMPLAUSIBLE_AWAIT_MS;
        if (window->figures.w_await > most_ms)
                reasons_add(reasons, REASON_COUNTERS_RESET,
                            "The counters of %s jumped: a w_await of %.3g ms cannot come from a test of %.1f "
                            "s. Run again.",
                            device, window->figures.w_await, ns_to_s(window->sum.interval_ns));
}

static bool is_untimed(const Delta *sum)
{
        if (sum->w_ms > 0)
                return false;
        return sum->w_ios >= UNTIMED_WRITES_ANY_SIZE ||
               (sum->w_ios >= UNTIMED_WRITES &&
                sum->w_sectors / sum->w_ios >= UNTIMED_WRITE_BYTES / SECTOR_BYTES);
}

static void find_no_writes(const RunFacts *facts, const Window *window, Reasons *reasons)
{
        if (facts->bytes_written == 0)
                reasons_add(reasons, REASON_NO_WRITE_COMPLETED,
                            "No write completed on %s in %.1f s. See whether it hangs: look at the kernel "
                            "log and at its queue.",
                            device_name(facts), ns_to_s(window->sum.interval_ns));
        else
                reasons_add(
                        reasons, REASON_NO_WRITE_COMPLETED,
                        "No write completed on %s in %.1f s, though %.1f MiB were written: another device "
                        "or a cache took them. See which device holds the path.",
                        device_name(facts), ns_to_s(window->sum.interval_ns), mib(facts->bytes_written));
}

static void find_missing_bytes(const RunFacts *facts, const Window *window, Reasons *reasons)
{
        double written = (double) window->written_bytes;
        double seen = (double) window->sum.w_sectors * SECTOR_BYTES;

        if (written <= 0 || seen >= BYTES_SEEN_MIN * written)
                return;
        reasons_add(reasons, REASON_BYTES_MISMATCH,
                    "%s saw %.1f MiB of the %.1f MiB written (%.0f %%, at least %.0f %% expected): %s",
                    device_name(facts), seen / 1048576, written / 1048576, 100 * seen / written,
                    100 * BYTES_SEEN_MIN,
                    facts->compresses
                            ? "the file system compresses them. Use pattern = random or a directory without "
                              "compression."
                            : "a cache or another device takes the rest. See which device holds the path.");
}

static uint64_t writers_ns(const RunFacts *facts, const Window *window)
{
        return facts->writers_ns ? facts->writers_ns : window->sum.interval_ns;
}

static void add_too_short(uint64_t time_ns, unsigned samples, Reasons *reasons)
{
        reasons_add(
                reasons, REASON_TOO_FEW_SAMPLES,
                "The test took %.2f s: %u full sample interval%s inside, at least %d are needed to judge how "
                "steady the device is. Use a larger count or a shorter sampling interval.",
                ns_to_s(time_ns), samples, samples == 1 ? " lies" : "s lie", MIN_SAMPLES_TO_PASS);
}

static void add_unseen(const RunFacts *facts, const Window *window, uint64_t unseen_ns, Reasons *reasons)
{
        uint64_t time_ns = writers_ns(facts, window);

        if (time_ns < facts->interval_ns && window->samples < MIN_SAMPLES_TO_PASS) {
                add_too_short(time_ns, window->samples, reasons);
                return;
        }
        reasons_add(
                reasons, REASON_TOO_FEW_SAMPLES,
                "For %.1f s of the %.1f s that the writers wrote the counters of %s were not read, or too "
                "late: this host kept the measurement from its work. Run again when it is less busy.",
                ns_to_s(unseen_ns), ns_to_s(time_ns), device_name(facts));
}

/* Whether so much is unseen that it could have gone either way. */
static bool too_much(const RunFacts *facts, const Window *window, uint64_t unseen_ns)
{
        return unseen_ns > writers_ns(facts, window) / UNSEEN_PART;
}

static bool throughput_met(const Limits *limits, double wkb_s)
{
        const Metrics figures = { .wkb_s = wkb_s };

        return criterion_met(limits, CRITERION_WRITE_THROUGHPUT,
                             criterion_value(CRITERION_WRITE_THROUGHPUT, &figures));
}

/* A part of the test has no samples: what the writers did in all of it must not say otherwise. */
static bool writers_agree(const Limits *limits, const RunFacts *facts, const Window *window)
{
        double writers_kb_s = (double) facts->bytes_written / 1024 / ns_to_s(writers_ns(facts, window));

        return facts->unseen_ns == 0 || facts->compresses ||
               throughput_met(limits, writers_kb_s) == throughput_met(limits, window->figures.wkb_s);
}

/* Adds why the figures cannot be judged. Untimed counters are apart: throughput can still be. */
static void find_blockers(const Limits *limits, const RunFacts *facts, const Window *window, Reasons *reasons)
{
        bool gapless = window->dropped == 0;

        if (facts->iostats_disabled)
                reasons_add(reasons, REASON_COUNTERS_DISABLED,
                            "queue/iostats of %s is 0, so its counters stand still. Set it to 1 (echo 1 > "
                            "/sys/block/NAME/queue/iostats) and run again.",
                            device_name(facts));
        find_gaps(facts, window, reasons);
        if (!gapless || facts->iostats_disabled)
                return;
        if (facts->unseen_ns > 0 &&
            (too_much(facts, window, facts->unseen_ns) || !writers_agree(limits, facts, window))) {
                add_unseen(facts, window, facts->unseen_ns, reasons);
                return;
        }
        if (window->sum.interval_ns == 0) {
                reasons_add(reasons, REASON_TOO_FEW_SAMPLES,
                            "The counters of %s were not read at both ends of the test: there are no "
                            "figures. Run again with a larger count.",
                            device_name(facts));
                return;
        }
        if (window->sum.w_ios == 0)
                find_no_writes(facts, window, reasons);
        find_missing_bytes(facts, window, reasons);
        if (window->samples == 0 && window->sum.w_ios > 0)
                add_too_short(window->sum.interval_ns, 0, reasons);
}

/* ---- the run ---- */

/* The part of the device's writes that is neither the WRITTEN bytes nor the file system's own for them. */
static double foreign_ratio(const RunFacts *facts, double device_bytes, double written)
{
        double blocks = facts->block_size ? ceil(written / (double) facts->block_size) : 0;
        double known =
                written * (facts->journals_data ? 2 : 1) + blocks * (double) facts->metadata_bytes_per_block;

        return device_bytes > known ? (device_bytes - known) / device_bytes : 0;
}

static void fill_evidence(const Limits *limits, const RunFacts *facts, const Window *window, Judgement *j)
{
        double device_bytes = (double) window->sum.w_sectors * SECTOR_BYTES;
        double our_bytes = (double) facts->bytes_written;
        bool figures = window->sum.interval_ns > 0 && !facts->iostats_disabled;

        judgement_init(limits, j);
        j->samples_total = window->samples;
        j->samples_passing = window->passing;
        memcpy(j->samples_missing, window->missing, sizeof j->samples_missing);
        j->samples_dropped = window->dropped;
        if (window->sum.interval_ns > 0) {
                metrics_from_delta(&window->sum, &j->measured);
                j->elapsed_s = ns_to_s(window->sum.interval_ns);
                j->app_write_mb_per_s = our_bytes / 1e6 / ns_to_s(writers_ns(facts, window));
        }
        if (!figures)
                return;
        j->first_third_mb_per_s = window->first_third_wkb_s / 1000;
        j->last_third_mb_per_s = window->last_third_wkb_s / 1000;
        j->worst_sample_mb_per_s = window->worst_wkb_s / 1000;
        if (device_bytes > 0 && !facts->rows_summed && window->dropped == 0)
                j->foreign_write_ratio = foreign_ratio(facts, device_bytes, (double) window->written_bytes);
        /* Without a completed write the throughput is unknown, as the latency is. */
        Metrics judged = window->figures;
        if (window->sum.w_ios == 0 && window->sum.w_sectors == 0)
                judged.wkb_s = NAN;
        if (is_untimed(&window->sum))
                judged.w_await = NAN;
        judgement_set_figures(limits, &judged, j);
}

static void add_remarks(const RunFacts *facts, const Window *window, Reasons *reasons)
{
        char written[WRITTEN_SIZE];

        bool stalled = facts->stall_limit_ns > 0 && facts->longest_stall_ns > facts->stall_limit_ns;

        if (stalled && window->idle_ns > facts->longest_stall_ns / 2)
                reasons_add(reasons, REASON_STALLED,
                            "A write call took %.1f s, longer than %.1f s, but nothing was on its way to %s "
                            "for most of "
                            "it. Look for what stopped the writers, or froze the file system.",
                            ns_to_s(facts->longest_stall_ns), ns_to_s(facts->stall_limit_ns),
                            device_name(facts));
        else if (stalled)
                reasons_add(reasons, REASON_STALLED,
                            "A write to %s was outstanding for %.1f s, longer than %.1f s. Look for timeouts "
                            "and resets in the kernel log.",
                            device_name(facts), ns_to_s(facts->longest_stall_ns),
                            ns_to_s(facts->stall_limit_ns));
        if (facts->cache_in_front && window->sum.interval_ns > 0)
                reasons_add(reasons, REASON_CACHE_IN_FRONT,
                            "A remark: %s (a loop device) writes through the page cache, which its row "
                            "shows, not "
                            "the disk below. Set its direct I/O (losetup --direct-io=on) to see that.",
                            device_name(facts));
        if (facts->journals_data && window->sum.interval_ns > 0)
                reasons_add(reasons, REASON_DOUBLE_WRITES,
                            "A remark: the file system on %s writes each byte to its journal first "
                            "(data=journal): "
                            "the row shows both, as it would to the procedure. Use data=ordered for a cache.",
                            device_name(facts));
        if (facts->end == TEST_TIME_LIMIT)
                reasons_add(reasons, REASON_TRUNCATED,
                            "The time limit of %.1f s ended the test after %s: judged on the %.1f s "
                            "measured. Raise max_duration to write all.",
                            ns_to_s(facts->time_limit_ns), written_text(written, facts),
                            ns_to_s(window->sum.interval_ns));
}

/* What the documented iostat beside the test would show as a row. Dips that sum up to less are none of its.
 */
#define ROW_NS NS_PER_S

static Verdict judge_window(const Limits *limits, const RunFacts *facts, const Window *window, Judgement *j)
{
        Reasons misses = { 0 };
        Verdict verdict = VERDICT_PASS;

        find_blockers(limits, facts, window, &j->reasons);
        if (j->reasons.n > 0)
                return VERDICT_INCONCLUSIVE;

        Advice advice;
        blame_advise(limits, facts, j, &advice);
        bool missed = figures_find_misses(limits, device_name(facts), NULL, j, &advice, &misses);
        /* That the mean misses is known of the shortest test; that a disk is unsteady is not, of one sample,
         * or of dips that iostat beside the test would not show as a row. */
        if (missed && misses.items[0].code == REASON_UNSTEADY &&
            (window->samples < MIN_SAMPLES_TO_PASS || window->missing_ns < ROW_NS)) {
                misses.n = 0;
                missed = false;
        }
        uint64_t unseen_ns = facts->unseen_ns + window->blind_ns;
        if (!reasons_have(&misses, REASON_WRITE_THROUGHPUT_LOW) &&
            !reasons_have(&misses, REASON_WRITE_LATENCY_HIGH) && too_much(facts, window, unseen_ns) &&
            window->missing_ns + unseen_ns >= ROW_NS) {
                add_unseen(facts, window, unseen_ns, &j->reasons);
                return VERDICT_INCONCLUSIVE;
        }
        if (missed)
                verdict = VERDICT_FAIL;
        else if (is_untimed(&window->sum))
                verdict = VERDICT_INCONCLUSIVE;
        else if (window->samples < MIN_SAMPLES_TO_PASS) {
                add_too_short(window->sum.interval_ns, window->samples, &j->reasons);
                verdict = VERDICT_INCONCLUSIVE;
        }

        if (verdict == VERDICT_FAIL && blame_is_above(limits, facts, window, j, &misses, &j->reasons))
                verdict = VERDICT_INCONCLUSIVE;
        blame_explain(facts, j, &misses);
        if (verdict == VERDICT_FAIL && j->foreign_write_ratio > FOREIGN_MAX) {
                char background[64] = "";

                if (facts->background_write_mb_per_s >= 0)
                        (void) snprintf(background, sizeof background, " (%.1f MB/s just before the test)",
                                        facts->background_write_mb_per_s);
                reasons_add(&j->reasons, REASON_FOREIGN_IO,
                            "%.0f %% of the bytes that %s wrote came from others, more than %.0f %%%s: their "
                            "load may be why it failed. Run again when it is quiet.",
                            100 * j->foreign_write_ratio, device_name(facts), 100 * FOREIGN_MAX, background);
                verdict = VERDICT_INCONCLUSIVE;
        }
        for (size_t i = 0; i < misses.n; i++)
                reasons_add(&j->reasons, misses.items[i].code, "%s", misses.items[i].detail);
        if (verdict == VERDICT_PASS && !ratio_met(limits, window->passing, window->samples))
                reasons_add(
                        &j->reasons, REASON_UNSTEADY,
                        "A remark: %u of %u samples of %s miss a limit, but for only %.0f ms in all, less "
                        "than the row of %.3g s that iostat would show. Look at the samples of the run.",
                        window->samples - window->passing, window->samples, device_name(facts),
                        (double) window->missing_ns / 1e6, ns_to_s(ROW_NS));
        if (is_untimed(&window->sum))
                reasons_add(&j->reasons, REASON_COUNTERS_UNTIMED,
                            "%s counts 0 ms over %" PRIu64 " writes: it does not time them, so w_await "
                            "cannot be judged. Judge the disks below it.",
                            device_name(facts), window->sum.w_ios);
        return verdict;
}

void judge_run(const Limits *limits, const RunFacts *facts, Judgement *ret)
{
        Judgement j = { 0 };
        Window window;

        window_measure(limits, facts, &window);
        fill_evidence(limits, facts, &window, &j);
        j.verdict = judge_end(facts, &j.reasons);
        if (j.verdict == VERDICT_NEVER_RUN)
                j.verdict = judge_window(limits, facts, &window, &j);
        if (facts->end != TEST_NOT_STARTED)
                add_remarks(facts, &window, &j.reasons);
        *ret = j;
}
