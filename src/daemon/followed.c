/* SPDX-License-Identifier: Apache-2.0 */
/* What past runs say of one target: its last run, the one that stands, what to compare that with. Pure. */

#include "followed.h"

#include "tierprobe/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_of(const PastRun *run, const Followed *followed)
{
        return strcmp(run->target, followed->target) == 0 && run->path &&
               strcmp(run->path, followed->path) == 0;
}

static void take_mount_point(Followed *followed, const PastRun *run)
{
        char *copy = run->mount_point ? strdup(run->mount_point) : NULL;

        if (!copy)
                return;
        free(followed->mount_point);
        followed->mount_point = copy;
}

void followed_forget(Followed *followed)
{
        free(followed->target);
        free(followed->path);
        free(followed->profile);
        free(followed->mount_point);
        past_run_free(followed->last);
        past_run_free(followed->standing.run);
        past_run_free(followed->standing.unconfirmed);
        *followed = (Followed){ 0 };
}

int followed_init(Followed *ret, const PastSubject *subject)
{
        *ret = (Followed){ .target = strdup(subject->target),
                           .path = strdup(subject->path),
                           .profile = strdup(subject->profile) };
        if (ret->target && ret->path && ret->profile)
                return 0;
        followed_forget(ret);
        return -ENOMEM;
}

static bool has_full_standing(const Followed *followed)
{
        return followed->standing.run &&
               standing_claim(&followed->standing.facts, followed->profile) == STANDING_FULL;
}

bool followed_is_complete(const Followed *followed)
{
        return followed->last && followed->mount_point && has_full_standing(followed);
}

bool followed_has_all_figures(const Followed *followed)
{
        return followed->standing.n_figures == STANDING_MAX_FIGURES;
}

bool followed_may_want(const Followed *wanted, size_t n, const char *text, size_t size)
{
        static const char certifying[] = "\"certifying\":true";
        char quoted[NAME_SIZE + 2];

        for (size_t i = 0; i < n; i++) {
                int length = snprintf(quoted, sizeof quoted, "\"%s\"", wanted[i].target);

                if ((!followed_is_complete(&wanted[i]) ||
                     (!followed_has_all_figures(&wanted[i]) &&
                      memmem(text, size, certifying, strlen(certifying)))) &&
                    memmem(text, size, quoted, (size_t) length))
                        return true;
        }
        return false;
}

static void stand(Followed *followed, PastRun *run, const StandingRun *facts)
{
        past_run_free(followed->standing.run);
        followed->standing.run = past_run_ref(run);
        followed->standing.facts = *facts;
}

/* A run whose fail is to be confirmed takes no place as long as that may be. */
static bool is_unconfirmed(const Followed *followed, const StandingRun *facts, int64_t now_real_ns)
{
        return facts->counts_from_real_ns > now_real_ns &&
               standing_claim(facts, followed->profile) == STANDING_FULL;
}

static void set_unconfirmed(PastStanding *standing, PastRun *run, const StandingRun *facts)
{
        past_run_free(standing->unconfirmed);
        standing->unconfirmed = run ? past_run_ref(run) : NULL;
        standing->unconfirmed_facts = facts ? *facts : (StandingRun){ 0 };
}

bool followed_settle(Followed *followed, int64_t now_real_ns)
{
        PastStanding *standing = &followed->standing;

        if (!standing->unconfirmed || is_unconfirmed(followed, &standing->unconfirmed_facts, now_real_ns))
                return false;
        stand(followed, standing->unconfirmed, &standing->unconfirmed_facts);
        set_unconfirmed(standing, NULL, NULL);
        return true;
}

void followed_take_older(Followed *followed, PastRun *run, int64_t now_real_ns)
{
        PastStanding *standing = &followed->standing;
        StandingRun facts;

        if (!is_of(run, followed))
                return;
        if (!followed->mount_point)
                take_mount_point(followed, run);
        if (!followed->last)
                followed->last = past_run_ref(run);
        past_run_standing(run, &facts);
        if (!has_full_standing(followed) && is_unconfirmed(followed, &facts, now_real_ns)) {
                if (!standing->unconfirmed)
                        set_unconfirmed(standing, run, &facts);
        } else if (!has_full_standing(followed) &&
                   (!standing->run || !standing_replaces(&standing->facts, &facts, followed->profile)) &&
                   standing_replaces(&facts, NULL, followed->profile))
                stand(followed, run, &facts);
        if (!followed_has_all_figures(followed) &&
            standing_figures_of(&facts, &standing->figures[standing->n_figures]))
                standing->n_figures++;
}

void followed_take_newer(Followed *followed, PastRun *run, int64_t now_real_ns)
{
        PastStanding *standing = &followed->standing;
        StandingFigures figures;
        StandingRun facts;

        if (!is_of(run, followed))
                return;
        take_mount_point(followed, run);
        past_run_free(followed->last);
        followed->last = past_run_ref(run);
        past_run_standing(run, &facts);
        if (is_unconfirmed(followed, &facts, now_real_ns)) {
                set_unconfirmed(standing, run, &facts);
        } else if (standing_replaces(&facts, standing->run ? &standing->facts : NULL, followed->profile)) {
                stand(followed, run, &facts);
                if (has_full_standing(followed)) /* else it may still be the better claim */
                        set_unconfirmed(standing, NULL, NULL);
        }
        if (!standing_figures_of(&facts, &figures))
                return;
        standing->n_figures -= followed_has_all_figures(followed);
        memmove(standing->figures + 1, standing->figures, standing->n_figures * sizeof figures);
        standing->figures[0] = figures;
        standing->n_figures++;
}
