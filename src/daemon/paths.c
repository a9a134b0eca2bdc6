/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the configured paths can be targets at all. Looks at them through a child. */

#include "tierprobe/paths.h"

#include "tierprobe/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void explain(FILE *out, const TargetConfig *target, const PathFacts *facts)
{
        const char *origin = target->origin;

        if (facts->error == ELOOP)
                (void) fprintf(out, "%s: %s is a symbolic link; name the directory itself%s%s\n", origin,
                               target->path, facts->resolved[0] ? ": " : "", facts->resolved);
        else if (facts->error == ENOTDIR)
                (void) fprintf(out, "%s: %s is not a directory; give the directory that holds the cache\n",
                               origin, target->path);
        else
                (void) fprintf(out, "%s: %s: %s; give an existing directory\n", origin, target->path,
                               strerror(facts->error));
}

int config_check_paths(const Config *config, uint64_t timeout_ns, char **ret_error)
{
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        bool faults = false;
        FILE *out = open_memstream(&text, &size);

        if (!out)
                return -ENOMEM;
        for (size_t i = 0; i < config->n_targets; i++) {
                PathFacts facts;

                if (path_inspect(config->targets[i].path, timeout_ns, &facts) < 0 || facts.error == 0 ||
                    facts.error == ETIMEDOUT)
                        continue;
                explain(out, &config->targets[i], &facts);
                faults = true;
        }
        if (fclose(out) != 0)
                return -ENOMEM;
        if (!faults)
                return 0;
        text[strlen(text) - 1] = '\0'; /* the last newline */
        *ret_error = TAKE_PTR(text);
        return -EINVAL;
}
