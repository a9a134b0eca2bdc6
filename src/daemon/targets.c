/* SPDX-License-Identifier: Apache-2.0 */
/* The set of targets: follows a configuration. Touches their rings in the state directory. */

#include "targets.h"

#include "paths.h"

#include <string.h>

static int add_target(Parts *parts, const TargetConfig *config, const TargetEvents *events)
{
        int r = target_new(&parts->targets[parts->n_targets], config, &parts->roots, parts->looks,
                           parts->state_fd, config_ring_capacity(parts->config), events);
        if (r >= 0)
                parts->n_targets++;
        return r;
}

static void drop_target(Parts *parts, Target *target)
{
        runs_drop(parts->runs, target);
        timetable_drop(parts->timetable, target);
        verdicts_drop(parts->verdicts, target);
        target_free(target);
}

void targets_keep(Parts *parts, const Config *config)
{
        bool rings_differ = config_ring_capacity(parts->config) != config_ring_capacity(config);
        size_t n = 0;

        for (size_t i = 0; i < parts->n_targets; i++) {
                Target *target = parts->targets[i];
                const TargetConfig *same = paths_find_same(config, target->config);

                if (!same) {
                        drop_target(parts, target);
                        continue;
                }
                target->config = same;
                if (rings_differ)
                        samples_reopen(&target->samples, config_ring_capacity(config));
                parts->targets[n++] = target;
        }
        parts->n_targets = n;
}

int targets_add(Parts *parts, const TargetEvents *events)
{
        const Config *config = parts->config;

        for (size_t i = 0; i < config->n_targets; i++) {
                size_t at = i;

                while (at < parts->n_targets && parts->targets[at]->config != &config->targets[i])
                        at++;
                if (at == parts->n_targets) {
                        int r = add_target(parts, &config->targets[i], events);
                        if (r < 0)
                                return r;
                }
                Target *target = parts->targets[at];
                memmove(parts->targets + i + 1, parts->targets + i, (at - i) * sizeof(Target *));
                parts->targets[i] = target;
        }
        return 0;
}
