/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict of each target. Touches nothing but its own memory. */

#include "verdicts.h"

#include "tierprobe/clock.h"

#include <errno.h>
#include <stdlib.h>

#define UPDATE_EVERY_NS (2 * NS_PER_S)

typedef struct Slot {
        const Target *target; /* NULL: free */
        TargetVerdict verdict;
        uint64_t updated_ns; /* MONOTONIC */
} Slot;

struct Verdicts {
        VerdictsEvents events;
        Slot slots[CONFIG_MAX_TARGETS];
};

static size_t find_slot(const Verdicts *verdicts, const Target *target)
{
        size_t i = 0;

        while (i < CONFIG_MAX_TARGETS && verdicts->slots[i].target != target)
                i++;
        return i;
}

int verdicts_new(Verdicts **ret, const VerdictsEvents *events)
{
        Verdicts *verdicts = calloc(1, sizeof *verdicts);

        if (!verdicts)
                return -ENOMEM;
        verdicts->events = *events;
        *ret = verdicts;
        return 0;
}

Verdicts *verdicts_free(Verdicts *verdicts)
{
        free(verdicts);
        return NULL;
}

void verdicts_freep(Verdicts **verdicts)
{
        (void) verdicts_free(*verdicts);
}

/* A path that hangs keeps its device; one that was not seen yet may well have the same as ever. */
static bool has_no_device(const Target *target)
{
        return !target_is_unseen(target) && !target_hangs(target) && !target_row(target) &&
               target->problems.n > 0;
}

static TargetVerdict judge(const Target *target, const PastStanding *standing, const Config *config)
{
        const Device *device = target_row(target);
        TargetVerdict ret = { .verdict = VERDICT_NEVER_RUN };
        StandingPlace place;

        if (!standing || !standing->run)
                return ret;
        if (device)
                standing_place_of(device, &place);
        const StandingNow now = {
                .real_ns = (int64_t) clock_ns(CLOCK_REALTIME),
                .stale_after_ns = schedule_stale_after_ns(&config->schedule),
                .limits = &config->limits,
                .official = config_find_profile(config, target->config->profile),
                .place = device ? &place : NULL,
                .gone = has_no_device(target) ? target->problems.items[0].detail : NULL,
        };
        ret.verdict = standing->facts.verdict;
        if (standing->unconfirmed) {
                char at[RFC3339_SIZE];

                reasons_add(&ret.warnings, REASON_UNCONFIRMED,
                            "Run %s has failed since, and counts unless the next test passes, due at %s. See "
                            "its reasons.",
                            standing->unconfirmed->id,
                            rfc3339_format(at, standing->unconfirmed_facts.confirm_at_real_ns));
        }
        ret.stale = standing_is_stale(&standing->facts, &now, &ret.warnings);
        ret.degraded =
                standing_is_degraded(&standing->facts, standing->figures, standing->n_figures, &ret.warnings);
        return ret;
}

void verdicts_update(Verdicts *verdicts, const Target *target, const PastStanding *standing,
                     const Config *config)
{
        size_t i = find_slot(verdicts, target);
        bool is_new = i == CONFIG_MAX_TARGETS;

        if (is_new)
                i = find_slot(verdicts, NULL);
        if (i == CONFIG_MAX_TARGETS)
                return; /* cannot be: there is one for each target of a configuration */
        Slot *slot = &verdicts->slots[i];
        const TargetVerdict before = slot->verdict;

        *slot = (Slot){ .target = target,
                        .verdict = judge(target, standing, config),
                        .updated_ns = clock_ns(CLOCK_MONOTONIC) };
        if (!is_new && (before.verdict != slot->verdict.verdict || before.stale != slot->verdict.stale ||
                        before.degraded != slot->verdict.degraded))
                verdicts->events.changed(target, &before, &slot->verdict, verdicts->events.userdata);
}

void verdicts_update_if_old(Verdicts *verdicts, const Target *target, const PastStanding *standing,
                            const Config *config)
{
        size_t i = find_slot(verdicts, target);

        if (i == CONFIG_MAX_TARGETS ||
            clock_ns(CLOCK_MONOTONIC) - verdicts->slots[i].updated_ns >= UPDATE_EVERY_NS)
                verdicts_update(verdicts, target, standing, config);
}

void verdicts_drop(Verdicts *verdicts, const Target *target)
{
        size_t i = find_slot(verdicts, target);

        if (i < CONFIG_MAX_TARGETS)
                verdicts->slots[i] = (Slot){ 0 };
}

const TargetVerdict *verdicts_of(const Verdicts *verdicts, const Target *target)
{
        static const TargetVerdict none = { .verdict = VERDICT_NEVER_RUN };
        size_t i = find_slot(verdicts, target);

        return i < CONFIG_MAX_TARGETS ? &verdicts->slots[i].verdict : &none;
}
