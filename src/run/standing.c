/* SPDX-License-Identifier: Apache-2.0 */
/* Which run's verdict stands for a target, whether it is stale, whether the device has become worse. Pure. */

#include "tierprobe/standing.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DISKS 64
#define MIN_FIGURES 5
#define WORSE_PART 0.20
#define MODIFIED_Z 3.5
#define MAD_TO_SIGMA 0.6745 /* of a normal distribution */
#define WORSE_OF_LIMIT 0.05

/* Clauses of one sentence. */
typedef struct Clauses {
        char text[320];
        size_t n;
} Clauses;

static void add_clause(Clauses *clauses, const char *format, ...) _printf_(2, 3);

static void add_clause(Clauses *clauses, const char *format, ...)
{
        char clause[160];
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(clause, sizeof clause, format, ap);
        va_end(ap);
        size_t length = strlen(clauses->text);
        (void) snprintf(clauses->text + length, sizeof clauses->text - length, "%s%s", clauses->n ? "; " : "",
                        clause);
        clauses->n++;
}

/* ---- what a run was made on ---- */

static int compare_texts(const void *a, const void *b)
{
        return strcmp(a, b);
}

/* FNV-1a of 64 bit; the NUL between two texts counts. */
static uint64_t hash_text(uint64_t hash, const char *text)
{
        do
                hash = (hash ^ (unsigned char) *text) * UINT64_C(0x100000001b3);
        while (*text++);
        return hash;
}

/* In an order that does not depend on which disk was found first. */
static void describe_disks(const Device *device, StandingPlace *ret)
{
        _cleanup_free_ DiskKey *keys = calloc(MAX_DISKS, sizeof *keys);
        size_t n = keys ? device_disks(device, keys, MAX_DISKS) : 0;

        if (n == 0)
                return;
        qsort(keys, n, sizeof *keys, compare_texts);
        ret->disks = UINT64_C(0xcbf29ce484222325);
        for (size_t i = 0; i < n; i++)
                ret->disks = hash_text(ret->disks, keys[i]);
        memcpy(ret->disk, keys[0], sizeof ret->disk);
}

typedef char Firmware[sizeof((DeviceNode){ 0 }.firmware)];

static void describe_firmware(const Device *device, StandingPlace *ret)
{
        _cleanup_free_ Firmware *all = calloc(device->n_nodes + 1, sizeof *all);
        size_t n = 0, used = 0;

        for (size_t i = 0; all && i < device->n_nodes; i++)
                if (device->nodes[i].firmware[0])
                        memcpy(all[n++], device->nodes[i].firmware, sizeof *all);
        if (n == 0)
                return;
        qsort(all, n, sizeof *all, compare_texts);
        for (size_t i = 0; i < n && used < sizeof ret->firmware; i++)
                if (i == 0 || strcmp(all[i], all[i - 1]) != 0)
                        used += (size_t) snprintf(ret->firmware + used, sizeof ret->firmware - used, "%s%s",
                                                  used ? ", " : "", all[i]);
}

void standing_place_of(const Device *device, StandingPlace *ret)
{
        *ret = (StandingPlace){ 0 };
        (void) snprintf(ret->device, sizeof ret->device, "%s", device->name);
        (void) snprintf(ret->filesystem, sizeof ret->filesystem, "%.31s",
                        device->filesystem ? device->filesystem : "");
        memcpy(ret->fs_uuid, device->fs_uuid, sizeof ret->fs_uuid);
        describe_disks(device, ret);
        describe_firmware(device, ret);
}

/* ---- whose run it is ---- */

StandingClaim standing_claim(const StandingRun *run, const char *official_profile)
{
        if (run->state != RUN_FINISHED && run->state != RUN_FAILED)
                return STANDING_NONE;
        if (strcmp(run->profile.name, official_profile) == 0)
                return STANDING_FULL;
        return run->official ? STANDING_FORMER : STANDING_NONE;
}

bool standing_replaces(const StandingRun *run, const StandingRun *standing, const char *official_profile)
{
        StandingClaim claim = standing_claim(run, official_profile);

        return claim != STANDING_NONE && (!standing || claim >= standing_claim(standing, official_profile));
}

/* ---- stale ---- */

static void check_age(const StandingRun *run, const StandingNow *now, Reasons *ret)
{
        int64_t finished_ns = run->finished_real_ns;
        /* One from the future is of unknown age: the clock was wrong then, or is now. A small step back must
         * not spoil a good verdict, though. */
        uint64_t age_ns = now->real_ns > finished_ns ? (uint64_t) now->real_ns - (uint64_t) finished_ns
                                                     : (uint64_t) finished_ns - (uint64_t) now->real_ns;
        char time[RFC3339_SIZE];

        if (age_ns <= now->stale_after_ns)
                return;
        reasons_add(ret, REASON_TOO_OLD,
                    "It is of %s, and holds for %.1f h. Run again, and see why no run has ended since.",
                    rfc3339_format(time, finished_ns), (double) now->stale_after_ns / 3600e9);
}

static void check_profile(const StandingRun *run, const StandingNow *now, Reasons *ret)
{
        const Profile *then = &run->profile, *official = now->official;

        if (!official || !then->name[0])
                return;
        if (strcmp(then->name, official->name) != 0)
                reasons_add(
                        ret, REASON_PROFILE_CHANGED,
                        "The official profile ([target] profile) is now %s, it was made with %s. Run again.",
                        official->name, then->name);
        else if (then->block_size != 0 &&
                 (then->block_size != official->block_size || then->count != official->count ||
                  then->streams != official->streams || then->pattern != official->pattern ||
                  then->duration_ns != official->duration_ns || then->ramp != official->ramp))
                reasons_add(ret, REASON_PROFILE_CHANGED,
                            "Profile %s has other parameters now (see \"test\" of the run). Run again.",
                            then->name);
}

/* Whether two numbers are the same in the six digits that a document may have. */
static bool differ(double a, double b)
{
        return isfinite(a) && isfinite(b) && fabs(a - b) > 1e-5 * fmax(fabs(a), fabs(b));
}

static void check_limits(const StandingRun *run, const StandingNow *now, Reasons *ret)
{
        Clauses clauses = { 0 };

        if (!now->limits)
                return;
        for (size_t i = 0; i < N_CRITERIA; i++)
                if (differ(run->limits.value[i], now->limits->value[i]))
                        add_clause(&clauses, "the limit of %s is now %g %s, it was judged by %g",
                                   criterion_rules[i].title, now->limits->value[i], criterion_rules[i].unit,
                                   run->limits.value[i]);
        if (differ(run->limits.pass_ratio, now->limits->pass_ratio))
                add_clause(&clauses, "pass_ratio is now %g, it was judged by %g", now->limits->pass_ratio,
                           run->limits.pass_ratio);
        if (clauses.n > 0)
                reasons_add(ret, REASON_LIMITS_CHANGED, "Changed since: %s. Run again.", clauses.text);
}

static bool changed(const char *then, const char *now)
{
        return *then && *now && strcmp(then, now) != 0;
}

static void check_place(const StandingRun *run, const StandingNow *now, Reasons *ret)
{
        const StandingPlace *then = &run->place, *place = now->place;

        if (now->gone && then->disks) {
                reasons_add(ret, REASON_DEVICE_CHANGED,
                            "It was made on %s, which is not found under the path now: %s", then->device,
                            now->gone);
                return;
        }
        if (!place)
                return;
        if (then->disks && place->disks && then->disks != place->disks)
                reasons_add(ret, REASON_DEVICE_CHANGED,
                            "The path is on %s (%.100s) now, it was made on %s (%.100s). Run again.",
                            place->device, place->disk, then->device, then->disk);
        else if (changed(then->firmware, place->firmware))
                reasons_add(ret, REASON_FIRMWARE_CHANGED,
                            "The firmware of %s is now %.100s, it was %.100s. Run again.", place->device,
                            place->firmware, then->firmware);
        if (changed(then->filesystem, place->filesystem))
                reasons_add(ret, REASON_FILESYSTEM_CHANGED,
                            "The file system is now %s, it was %s. Run again (%s).", place->filesystem,
                            then->filesystem, place->device);
        else if (changed(then->fs_uuid, place->fs_uuid))
                reasons_add(ret, REASON_FILESYSTEM_CHANGED,
                            "The file system was made anew: its UUID is now %s, it was %s. Run again.",
                            place->fs_uuid, then->fs_uuid);
}

bool standing_is_stale(const StandingRun *run, const StandingNow *now, Reasons *ret)
{
        size_t n = ret->n;

        check_place(run, now, ret);
        check_profile(run, now, ret);
        check_limits(run, now, ret);
        check_age(run, now, ret);
        return ret->n > n;
}

/* ---- degraded ---- */

bool standing_figures_of(const StandingRun *run, StandingFigures *ret)
{
        if (!run->certifying || run->place.disks == 0 ||
            (run->verdict != VERDICT_PASS && run->verdict != VERDICT_FAIL))
                return false;
        *ret = (StandingFigures){ .disks = run->place.disks };
        memcpy(ret->id, run->id, sizeof ret->id);
        memcpy(ret->value, run->value, sizeof ret->value);
        return true;
}

static int compare_numbers(const void *a, const void *b)
{
        double x = *(const double *) a, y = *(const double *) b;

        return (x > y) - (x < y);
}

/* Sorts VALUES. */
static double median(double *values, size_t n)
{
        qsort(values, n, sizeof *values, compare_numbers);
        return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static void compare(const StandingRun *run, CriterionName name, double *values, size_t n, Clauses *ret)
{
        const CriterionRule *rule = &criterion_rules[name];
        double value = run->value[name], middle = median(values, n);
        double worse = rule->at_least ? middle - value : value - middle;

        if (worse <= WORSE_PART * middle || worse <= WORSE_OF_LIMIT * run->limits.value[name])
                return;
        for (size_t i = 0; i < n; i++)
                values[i] = fabs(values[i] - middle);
        double mad = median(values, n);
        if (MAD_TO_SIGMA * worse <= MODIFIED_Z * mad)
                return;
        add_clause(ret, "%s %.4g %s, %.0f %% %s than %.4g, the median of its last %zu certifying runs",
                   rule->title, value, rule->unit, 100 * worse / middle, rule->at_least ? "less" : "more",
                   middle, n);
}

bool standing_is_degraded(const StandingRun *run, const StandingFigures *past, size_t n, Reasons *ret)
{
        Clauses clauses = { 0 };

        if (!run->certifying || run->verdict != VERDICT_PASS || run->place.disks == 0)
                return false;
        for (CriterionName name = 0; name < N_CRITERIA; name++) {
                double values[STANDING_MAX_FIGURES];
                size_t n_values = 0;

                for (size_t i = 0; i < n && n_values < ELEMENTSOF(values); i++)
                        if (strcmp(past[i].id, run->id) < 0 && past[i].disks == run->place.disks &&
                            isfinite(past[i].value[name]))
                                values[n_values++] = past[i].value[name];
                if (n_values >= MIN_FIGURES && isfinite(run->value[name]))
                        compare(run, name, values, n_values, &clauses);
        }
        if (clauses.n > 0)
                reasons_add(ret, REASON_DEGRADED,
                            "%s has become worse: %s. Look for wear, heat and others who write.",
                            run->place.device, clauses.text);
        return clauses.n > 0;
}
