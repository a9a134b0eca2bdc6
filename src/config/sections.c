/* SPDX-License-Identifier: Apache-2.0 */
/* The sections that a configuration may have, and the parameters that are no other room's. */

#include "config-internal.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"

#include <string.h>

static const Parameter http_parameters[] = {
        { "listen", &type_listen, .right = "ADDR:PORT, [ADDR]:PORT or unix:/path" },
        { "token_file", &type_path, offsetof(Config, token_file), .unset = "none",
          .right = "an absolute path, or none" },
        { "allowed_hosts", &type_hosts, offsetof(Config, allowed_hosts), .unset = "none",
          .right = "host names separated by spaces or commas, or none" },
        { "tls_cert", &type_path, offsetof(Config, tls_cert), .unset = "none",
          .right = "an absolute path, or none" },
        { "tls_key", &type_path, offsetof(Config, tls_key), .unset = "none",
          .right = "an absolute path, or none" },
};

static const Parameter sampling_parameters[] = {
        { "interval", &parameter_duration, offsetof(Config, sample_interval_ns), .min = 100 * NS_PER_MS,
          .max = 60 * NS_PER_S, .right = "a duration from 100ms to 1m, such as 1s" },
        { "history", &parameter_duration, offsetof(Config, history_ns), .min = 60 * NS_PER_S,
          .max = 31 * NS_PER_DAY, .right = "a duration from 1m to 31d, such as 1d" },
};

static const Parameter publish_parameters[] = {
        { "feature_file", &type_path, offsetof(Config, feature_file), .unset = "none",
          .right = "an absolute path, or none" },
};

static const Parameter target_parameters[] = {
        { "path", &type_path, offsetof(TargetConfig, path),
          .right = "the absolute path of an existing directory, such as /db2/cache" },
        { "device", &type_device, offsetof(TargetConfig, device),
          .right = "auto, or a block device such as nvme0n1, /dev/sdb or mapper/data" },
        { "profile", &type_name, offsetof(TargetConfig, profile),
          .right = "the name of a profile, such as procedure" },
        { "confirm", &parameter_duration, offsetof(TargetConfig, confirm_ns), .min = NS_PER_S,
          .max = 7 * NS_PER_DAY, .unset = "none", .right = "a duration from 1s to 7d, such as 15m, or none" },
};

static const Parameter *http_parameter(size_t index)
{
        return index < ELEMENTSOF(http_parameters) ? &http_parameters[index] : NULL;
}

static const Parameter *sampling_parameter(size_t index)
{
        return index < ELEMENTSOF(sampling_parameters) ? &sampling_parameters[index] : NULL;
}

static const Parameter *publish_parameter(size_t index)
{
        return index < ELEMENTSOF(publish_parameters) ? &publish_parameters[index] : NULL;
}

static const Parameter *target_parameter(size_t index)
{
        return index < ELEMENTSOF(target_parameters) ? &target_parameters[index] : NULL;
}

const SectionRow config_sections[_SECTION_MAX] = {
        [SECTION_HTTP] = { "http", false, 0, http_parameter },
        [SECTION_SAMPLING] = { "sampling", false, 0, sampling_parameter },
        [SECTION_LIMITS] = { "limits", false, offsetof(Config, limits), limits_parameter },
        [SECTION_SCHEDULE] = { "schedule", false, offsetof(Config, schedule), schedule_parameter },
        [SECTION_GUARD] = { "guard", false, offsetof(Config, guard), guard_parameter },
        [SECTION_HISTORY] = { "history", false, offsetof(Config, keep), history_parameter },
        [SECTION_PUBLISH] = { "publish", false, 0, publish_parameter },
        [SECTION_PROFILE] = { "profile", true, 0, profile_parameter },
        [SECTION_TARGET] = { "target", true, 0, target_parameter },
};

size_t section_find(Section section, const char *name)
{
        size_t i = 0;

        for (const Parameter *parameter = NULL; (parameter = config_sections[section].parameter(i)); i++)
                if (strcmp(parameter->name, name) == 0)
                        break;
        return i;
}

void *section_base(Section section, Config *config)
{
        return (char *) config + config_sections[section].offset;
}

bool parameter_adds(const Parameter *parameter)
{
        return parameter->type == &type_listen;
}

ConfigOrigin *parameter_origin(const Parameter *parameter, TargetConfig *target)
{
        return parameter->type == &type_path   ? &target->origin
               : parameter->type == &type_name ? &target->profile_origin
                                               : NULL;
}
