/* SPDX-License-Identifier: Apache-2.0 */
/* Targets, profiles and runs by their names. */

#include "named.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LIST_SIZE 400

/* Adds NAME to LIST, which ends with "..." where there is no room for all. */
static void list_add(char list[LIST_SIZE], const char *name)
{
        size_t length = strlen(list);

        if (length + strlen(name) + strlen(", ...") < LIST_SIZE)
                (void) snprintf(list + length, LIST_SIZE - length, "%s%s", length ? ", " : "", name);
        else if (length < 3 || strcmp(list + length - 3, "...") != 0)
                (void) snprintf(list + length, LIST_SIZE - length, ", ...");
}

static const char *list_targets(const Service *service, char list[LIST_SIZE])
{
        TargetView view;

        *list = '\0';
        for (size_t i = 0; service->get_target(service->userdata, i, &view); i++)
                list_add(list, view.name);
        return list;
}

int target_unknown(const Service *service, Problem *problem)
{
        char list[LIST_SIZE];

        if (!*list_targets(service, list))
                return problem_set(problem, 404, "unknown_target", "no target is configured");
        return problem_set(problem, 404, "unknown_target", "no target has this name; there are: %s", list);
}

int target_needed(const Service *service, Problem *problem)
{
        char list[LIST_SIZE];

        return problem_set(problem, 400, "target_needed", "say which target: %s",
                           list_targets(service, list));
}

int problem_of_run(int error, Problem *problem)
{
        if (error == -ENOENT || error == -EBADMSG) /* damaged, it is set aside */
                return problem_set(problem, 404, "unknown_run",
                                   "no run has this id; it may be too old to be kept");
        return problem_set(problem, 503, "run_unreadable", "the run is kept but cannot be read now: %s",
                           strerror(-error));
}

int target_by_name(const Service *service, const char *name, TargetView *ret, Problem *problem)
{
        TargetView view;

        for (size_t i = 0; service->get_target(service->userdata, i, &view); i++)
                if (strcmp(view.name, name) == 0) {
                        *ret = view;
                        return 0;
                }
        return target_unknown(service, problem);
}

int profile_unknown(const Service *service, Problem *problem)
{
        char list[LIST_SIZE] = "";
        ServiceView view;

        service->get(service->userdata, &view);
        for (size_t i = 0; i < view.config->n_profiles; i++)
                list_add(list, view.config->profiles[i].name);
        return problem_set(problem, 404, "unknown_profile", "no profile has this name; there are: %s", list);
}
