/* SPDX-License-Identifier: Apache-2.0 */
/* What must fit together once all files and options are read, and what follows from it. */

#include "config-internal.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/figure.h"
#include "tierprobe/history.h"
#include "tierprobe/units.h"

#include <errno.h>
#include <string.h>

/* Where a key of an unnamed section was set; NULL: it has its default. */
static const char *key_origin(const Loader *loader, Section section, const char *name)
{
        const char *origin = loader->origins[section][section_find(section, name)];

        return origin[0] ? origin : NULL;
}

static void check_sampling(const Loader *loader)
{
        const char *origin = key_origin(loader, SECTION_SAMPLING, "history");

        if (!origin)
                origin = key_origin(loader, SECTION_SAMPLING, "interval");
        if (origin && config_ring_capacity(loader->config) > RING_CAPACITY_MAX)
                config_fault(loader->faults, -EINVAL, origin,
                             "history and interval of [sampling] make %llu samples; at most %d can be kept: "
                             "shorten "
                             "history or lengthen interval",
                             (unsigned long long) config_ring_capacity(loader->config), RING_CAPACITY_MAX);
}

static void check_tls(const Loader *loader)
{
        const Config *config = loader->config;
        const char *present = config->tls_cert ? "tls_cert" : "tls_key";
        const char *origin = key_origin(loader, SECTION_HTTP, present);

        if (origin && !config->tls_cert != !config->tls_key)
                config_fault(loader->faults, -EINVAL, origin, "%s is set but %s is not; TLS needs both",
                             present, config->tls_cert ? "tls_key" : "tls_cert");
}

static void check_profiles(const Loader *loader)
{
        const Config *config = loader->config;
        char limit[FORMAT_SIZE];

        for (size_t i = 0; i < config->n_profiles; i++) {
                const Profile *profile = &config->profiles[i];
                const char *origin = loader->profile_origins[i];

                /* A built-in profile is not what the administrator wrote: a run of it ends at the limit. */
                if (origin[0] && profile->duration_ns > config->guard.max_duration_ns)
                        config_fault(
                                loader->faults, -EINVAL, origin,
                                "the duration of [profile %s] is longer than max_duration of [guard], %s; "
                                "change one of them",
                                profile->name, format_duration(limit, config->guard.max_duration_ns));
        }
}

static void check_official_profile(const Loader *loader, const TargetConfig *target)
{
        const Config *config = loader->config;
        const char *names[CONFIG_MAX_PROFILES];
        char known[300];

        if (config_find_profile(config, target->profile))
                return;
        for (size_t i = 0; i < config->n_profiles; i++)
                names[i] = config->profiles[i].name;
        const char *near = config_nearest(target->profile, names, config->n_profiles);
        list_names(known, sizeof known, names, config->n_profiles);
        config_fault(
                loader->faults, -EINVAL, target->profile_origin,
                "profile = %s of [target %s] names no profile; %s%s%sadd a section [profile %s], or name one "
                "of "
                "these: %s",
                target->profile, target->name, near ? "did you mean " : "", near ? near : "",
                near ? "? Else " : "", target->profile, known);
}

/* A test that no day's budget holds would be refused for ever. */
static void check_budget(const Loader *loader, const TargetConfig *target)
{
        const Profile *official = config_find_profile(loader->config, target->profile);
        uint64_t budget_bytes = loader->config->guard.daily_write_budget_bytes;
        const char *origin = key_origin(loader, SECTION_GUARD, "daily_write_budget");
        char bytes[FORMAT_SIZE], budget[FORMAT_SIZE];

        if (!official || budget_bytes == 0 || profile_bytes(official) <= budget_bytes)
                return;
        if (!origin)
                origin = target->profile_origin[0] ? target->profile_origin : target->origin;
        config_fault(loader->faults, -EINVAL, origin,
                     "a test of [target %s], profile %s, writes up to %s, which daily_write_budget of "
                     "[guard], %s, "
                     "never allows; raise it, or name a smaller profile",
                     target->name, target->profile, format_size(bytes, profile_bytes(official)),
                     format_size(budget, budget_bytes));
}

static void check_targets(const Loader *loader)
{
        const Config *config = loader->config;

        for (size_t i = 0; i < config->n_targets; i++) {
                const TargetConfig *target = &config->targets[i];

                if (!target->path) {
                        config_fault(
                                loader->faults, -EINVAL, target->origin,
                                "[target %s] has no path; add path = DIR, the absolute path of the cache",
                                target->name);
                        continue;
                }
                check_official_profile(loader, target);
                check_budget(loader, target);
                for (size_t j = 0; j < i; j++)
                        if (config->targets[j].path && strcmp(config->targets[j].path, target->path) == 0)
                                config_fault(
                                        loader->faults, -EINVAL, target->origin,
                                        "[target %s] and [target %s] (%s) have the same path; a path has one "
                                        "target",
                                        target->name, config->targets[j].name, config->targets[j].origin);
        }
}

/* An unset jitter must not blur a short schedule. */
static void fill_in_jitter(Loader *loader)
{
        ScheduleRules *rules = &loader->config->schedule;

        if (!key_origin(loader, SECTION_SCHEDULE, "jitter") && rules->interval_ns &&
            rules->jitter_ns > rules->interval_ns / 10)
                rules->jitter_ns = rules->interval_ns / 10;
}

/* What is unset follows the limit: others' writes may take a tenth of it. */
static void fill_in_foreign(Loader *loader)
{
        if (!key_origin(loader, SECTION_GUARD, "max_foreign_mb_per_s"))
                loader->config->guard.max_foreign_mb_per_s =
                        figure_round(loader->config->limits.value[CRITERION_WRITE_THROUGHPUT] / 10);
}

void loader_settle(Loader *loader, bool need_targets)
{
        fill_in_jitter(loader);
        fill_in_foreign(loader);
        check_sampling(loader);
        check_tls(loader);
        check_profiles(loader);
        if (need_targets)
                check_targets(loader);
}
