/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the configured paths can be targets at all. Looks at them through a child. */

#include "tierprobe/paths.h"

#include "tierprobe/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void explain(FILE *out, const TargetConfig *target, const PathFacts *facts)
{
        char detail[PATH_ERROR_SIZE];

        path_error_describe(detail, sizeof detail, target->path,
                            facts->error != 0 ? facts->error : facts->write_error, &facts->denial);
        (void) fprintf(out, "%s: %s\n", target->origin, detail);
}

int config_check_paths(const Config *config, uint64_t timeout_ns, bool writable, char **ret_error)
{
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        bool faults = false;
        FILE *out = open_memstream(&text, &size);

        if (!out)
                return -ENOMEM;
        for (size_t i = 0; i < config->n_targets; i++) {
                PathFacts facts;

                if (path_inspect(config->targets[i].path, timeout_ns, &facts) < 0 ||
                    facts.error == ETIMEDOUT || (facts.error == 0 && !(writable && facts.write_error != 0)))
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
