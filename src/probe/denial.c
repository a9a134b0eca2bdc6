/* SPDX-License-Identifier: Apache-2.0 */
/* Who may not do what on the way to a path. Runs in children only. */

#include "denial.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/text.h"

#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void name_user(char *ret, size_t size, uid_t uid)
{
        _cleanup_fclose_ FILE *file = fopen("/etc/passwd", "re");

        (void) snprintf(ret, size, "uid %u", (unsigned) uid);
        for (struct passwd *entry; file && (entry = fgetpwent(file));)
                if (entry->pw_uid == uid) {
                        text_copy_clean(ret, size, entry->pw_name);
                        return;
                }
}

static void name_group(char *ret, size_t size, gid_t gid)
{
        _cleanup_fclose_ FILE *file = fopen("/etc/group", "re");

        (void) snprintf(ret, size, "gid %u", (unsigned) gid);
        for (struct group *entry; file && (entry = fgetgrent(file));)
                if (entry->gr_gid == gid) {
                        text_copy_clean(ret, size, entry->gr_name);
                        return;
                }
}

static void take_directory(const char *directory, bool enter, PathDenial *ret)
{
        struct stat st;

        if (stat(directory, &st) < 0)
                return;
        text_copy_clean(ret->directory, sizeof ret->directory, directory);
        name_user(ret->owner, sizeof ret->owner, st.st_uid);
        name_group(ret->group, sizeof ret->group, st.st_gid);
        ret->mode = st.st_mode & 07777;
        ret->enter = enter;
}

/* Whether owner, group and mode alone give the effective user the RIGHTS (of 4, 2 and 1): when they do and it
 * is denied all the same, their words would mislead. */
static bool mode_gives(const char *directory, mode_t rights)
{
        gid_t groups[NGROUPS_MAX];
        struct stat st;

        if (stat(directory, &st) < 0)
                return false;
        if (geteuid() == 0)
                return true;
        if (st.st_uid == geteuid())
                return (st.st_mode >> 6 & rights) == rights;
        bool member = st.st_gid == getegid();
        int n = getgroups(NGROUPS_MAX, groups);
        for (int i = 0; i < n && !member; i++)
                member = groups[i] == st.st_gid;
        return ((member ? st.st_mode >> 3 : st.st_mode) & rights) == rights;
}

void path_denial_find(const char *path, PathDenial *ret)
{
        char directory[PATH_MAX];
        size_t size = strlen(path);

        *ret = (PathDenial){ 0 };
        name_user(ret->user, sizeof ret->user, geteuid());
        if (size == 0 || size >= sizeof directory || path[0] != '/')
                return;
        for (size_t end = 1; end <= size; end++) {
                if (end > 1 && end < size && path[end] != '/')
                        continue;
                memcpy(directory, path, end);
                directory[end] = '\0';
                if (faccessat(AT_FDCWD, directory, X_OK, AT_EACCESS) < 0) {
                        if (!mode_gives(directory, 1))
                                take_directory(directory, true, ret);
                        return;
                }
        }
        if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) < 0 && !mode_gives(path, 3))
                take_directory(path, false, ret);
}
