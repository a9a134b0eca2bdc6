/* SPDX-License-Identifier: Apache-2.0 */
/* The own control group and its ancestors. Plain reads below the given roots; every byte is taken for
 * hostile. */

#include "cgroup.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define MEMBERSHIP_MAX (64U << 10)
#define FILE_MAX (256U << 10)
#define DEPTH_MAX 64

/* Whether the comma-separated LIST has NAME. */
static bool list_has(const char *list, const char *name)
{
        size_t n = strlen(name);

        for (const char *p = list; *p; p += strcspn(p, ","), p += *p == ',')
                if (strncmp(p, name, n) == 0 && (p[n] == ',' || p[n] == '\0'))
                        return true;
        return false;
}

/* Finds the line "ID:CONTROLLERS:PATH" of CONTROLLER in TEXT, which is cut up. */
static bool find_membership(char *text, const char *controller, char **ret_controllers, char **ret_path)
{
        for (char *line; (line = strsep(&text, "\n"));) {
                (void) strsep(&line, ":");
                char *controllers = line ? strsep(&line, ":") : NULL;
                if (!line || line[0] != '/')
                        continue;
                if (controller ? list_has(controllers, controller) : controllers[0] == '\0') {
                        *ret_controllers = controllers;
                        *ret_path = line;
                        return true;
                }
        }
        return false;
}

/* The directory where the hierarchy is mounted. */
static char *find_hierarchy(const DeviceRoots *roots, const char *controller, const char *controllers)
{
        const char *const names[] = { controller ? controllers : "", controller ? controller : "unified" };
        char *path = NULL;

        for (size_t i = 0; i < ELEMENTSOF(names) && !path; i++) {
                /* No controller's name has a slash; one that has would lead elsewhere. */
                if (strchr(names[i], '/'))
                        continue;
                path = path_format("%s/fs/cgroup%s%s", roots->sysfs, names[i][0] ? "/" : "", names[i]);
                _cleanup_free_ char *procs = path ? path_format("%s/cgroup.procs", path) : NULL;
                if (!procs || faccessat(AT_FDCWD, procs, F_OK, 0) < 0) {
                        free(path);
                        path = NULL;
                }
        }
        return path;
}

static bool goes_up(const char *path)
{
        for (const char *p = path; (p = strstr(p, "/..")); p += 3)
                if (p[3] == '/' || p[3] == '\0')
                        return true;
        return false;
}

static int open_group(const char *path)
{
        return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Visits PATH and its parents down to its first TOP bytes, which are the hierarchy's own directory. */
static void visit_upwards(char *path, size_t top, GroupVisit visit, void *userdata)
{
        for (int depth = 0; depth < DEPTH_MAX; depth++) {
                _cleanup_close_ int fd = open_group(path);
                if (fd >= 0)
                        visit(&(Group){ .fd = fd, .path = path, .own = depth == 0 }, userdata);
                if (strlen(path) <= top)
                        return;
                *strrchr(path, '/') = '\0';
        }
}

void groups_visit(const DeviceRoots *roots, const char *controller, GroupVisit visit, void *userdata)
{
        _cleanup_free_ char *file = path_format("%s/self/cgroup", roots->procfs), *text = NULL, *base = NULL;
        char *controllers = NULL, *own = NULL;

        if (!file || read_file_at(AT_FDCWD, file, MEMBERSHIP_MAX, &text, NULL) < 0 ||
            !find_membership(text, controller, &controllers, &own) || goes_up(own))
                return;
        base = find_hierarchy(roots, controller, controllers);
        if (!base)
                return;
        size_t length = strlen(own);
        while (length > 0 && own[length - 1] == '/')
                own[--length] = '\0';
        for (const char *visible = own;; visible = strchr(visible + 1, '/')) {
                _cleanup_free_ char *path = path_format("%s%s", base, visible ? visible : "");
                if (!path || strlen(path) >= PATH_MAX)
                        return;
                _cleanup_close_ int fd = open_group(path);
                if (fd >= 0) {
                        visit_upwards(path, strlen(base), visit, userdata);
                        return;
                }
                if (!visible || !*visible)
                        return;
        }
}

void group_lines(const Group *group, const char *file, void (*take)(char *line, void *userdata),
                 void *userdata)
{
        _cleanup_free_ char *text = NULL;

        if (read_file_at(group->fd, file, FILE_MAX, &text, NULL) < 0)
                return;
        for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
                if (*line)
                        take(line, userdata);
}
