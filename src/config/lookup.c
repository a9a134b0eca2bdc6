/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to a configuration. Pure. */

#include "tierprobe/config.h"

#include "tierprobe/history.h"

#include <string.h>

uint64_t config_ring_capacity(const Config *config)
{
        uint64_t n = (config->history_ns + config->sample_interval_ns - 1) / config->sample_interval_ns;

        return n < RING_CAPACITY_MIN ? RING_CAPACITY_MIN : n;
}

const Profile *config_find_profile(const Config *config, const char *name)
{
        for (size_t i = 0; i < config->n_profiles; i++)
                if (strcmp(config->profiles[i].name, name) == 0)
                        return &config->profiles[i];
        return NULL;
}

const TargetConfig *config_find_target(const Config *config, const char *name)
{
        for (size_t i = 0; i < config->n_targets; i++)
                if (strcmp(config->targets[i].name, name) == 0)
                        return &config->targets[i];
        return NULL;
}
