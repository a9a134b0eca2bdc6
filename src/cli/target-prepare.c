/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a directory ready for the service, as root.
 *
 * The directory may belong to somebody else, who may change it meanwhile: nothing is followed that root or
 * this somebody could have swapped, and nothing that is there already changes its owner. */

#include "target-prepare.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/file.h"
#include "tierprobe/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <libmount/libmount.h>
#include <linux/openat2.h>
#include <sys/acl.h>

#define PROOF_BYTES 4096

typedef struct User {
        const char *name;
        uid_t uid;
        gid_t gid;
} User;

__attribute__((format(printf, 2, 3))) static int fail(Preparation *it, const char *format, ...)
{
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(it->sentence, sizeof it->sentence, format, ap);
        va_end(ap);
        it->result = PREPARE_FAILED;
        return -1;
}

__attribute__((format(printf, 2, 3))) static void tell(Preparation *it, const char *format, ...)
{
        size_t at = strlen(it->sentence);
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(it->sentence + at, sizeof it->sentence - at, format, ap);
        va_end(ap);
}

/* ---- mounts that are not there ---- */

/* Whether fstab has a file system for PATH, or for what is above it, that is not mounted now: what is below
 * would be tested in its place. */
static bool waits_for_mount(const char *path, Preparation *it)
{
        struct libmnt_table *fstab = mnt_new_table(), *mounts = mnt_new_table();
        struct libmnt_iter *iter = mnt_new_iter(MNT_ITER_FORWARD);
        struct libmnt_fs *fs = NULL;
        bool waits = false;

        if (fstab && mounts && iter && mnt_table_parse_fstab(fstab, NULL) == 0 &&
            mnt_table_parse_mtab(mounts, NULL) == 0)
                while (!waits && mnt_table_next_fs(fstab, iter, &fs) == 0) {
                        const char *point = mnt_fs_get_target(fs);
                        size_t length = point ? strlen(point) : 0;

                        if (length < 2 || point[0] != '/' || strncmp(path, point, length) != 0 ||
                            (path[length] && path[length] != '/'))
                                continue;
                        waits = mnt_table_find_target(mounts, point, MNT_ITER_BACKWARD) == NULL;
                        if (waits) {
                                it->result = PREPARE_WAITS;
                                tell(it, "%s is not mounted; it is waited for", point);
                        }
                }
        mnt_free_iter(iter);
        mnt_unref_table(fstab);
        mnt_unref_table(mounts);
        return waits;
}

/* ---- the way there ---- */

/* Opens PATH, which holds no links: one that comes up meanwhile is not followed. */
static int open_exactly(const char *path)
{
        struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                                .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
        long fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);

        return fd < 0 ? -errno : (int) fd;
}

/* Whether the user may pass through the directory DIR_FD, asked of the kernel itself. Runs in a child of its
 * own: there is no way back from a changed user. */
static bool may_pass(int dir_fd, const User *user)
{
        pid_t pid = fork();
        int status = 0;

        if (pid == 0) {
                if (initgroups(user->name, user->gid) < 0 || setgid(user->gid) < 0 || setuid(user->uid) < 0)
                        _exit(2);
                _exit(faccessat(dir_fd, ".", X_OK, AT_EACCESS) == 0 ? 0 : 1);
        }
        return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Adds "user:NAME:--x" to the access list of a directory: the right to pass, not to look. */
static int let_pass(int dir_fd, const User *user)
{
        acl_t acl = acl_get_fd(dir_fd);
        acl_entry_t entry = NULL;
        acl_permset_t permissions = NULL;
        int r = -1;

        if (acl && acl_create_entry(&acl, &entry) == 0 && acl_set_tag_type(entry, ACL_USER) == 0 &&
            acl_set_qualifier(entry, &user->uid) == 0 && acl_get_permset(entry, &permissions) == 0 &&
            acl_add_perm(permissions, ACL_EXECUTE) == 0 && acl_set_permset(entry, permissions) == 0 &&
            acl_calc_mask(&acl) == 0)
                r = acl_set_fd(dir_fd, acl);
        r = r < 0 ? -(errno ? errno : EINVAL) : 0;
        if (acl)
                (void) acl_free(acl);
        return r;
}

/* Opens the way for the user, from the root to PATH itself. */
static int open_way(const char *path, const User *user, Preparation *it)
{
        char part[PATH_MAX];

        for (const char *end = path + 1;;
             end = strchr(end + 1, '/') ? strchr(end + 1, '/') : end + strlen(end)) {
                size_t length = (size_t) (end - path);

                memcpy(part, path, length);
                part[length] = '\0';
                _cleanup_close_ int fd = open_exactly(part);
                if (fd < 0)
                        return fail(it, "%s: %s", part, strerror(-fd));
                if (!may_pass(fd, user)) {
                        int r = let_pass(fd, user);
                        if (r == 0 && !may_pass(fd, user))
                                r = -EACCES;
                        if (r < 0)
                                return fail(it,
                                            "%s: user %s may not pass through it, and an access list entry "
                                            "could not be made: %s; "
                                            "let the user through: chmod o+x %s",
                                            part, user->name, strerror(-r), part);
                        tell(it, "user %s may pass through %s now (setfacl -m u:%s:x); ", user->name, part,
                             user->name);
                }
                if (!*end)
                        return 0;
        }
}

/* ---- the working folder ---- */

static int make_folder(int dir_fd, const char *path, const User *user, Preparation *it)
{
        struct stat there, folder;
        bool fresh = mkdirat(dir_fd, PROBE_WORK_DIR, 0700) == 0;

        if (!fresh && errno != EEXIST)
                return fail(it, "%s: cannot make %s in it: %s", path, PROBE_WORK_DIR, strerror(errno));
        int fd = openat(dir_fd, PROBE_WORK_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return fail(it, "%s/%s is no directory of its own: %s; remove it", path, PROBE_WORK_DIR,
                            strerror(errno));
        if (fstat(dir_fd, &there) < 0 || fstat(fd, &folder) < 0 || there.st_dev != folder.st_dev) {
                (void) close(fd);
                return fail(it, "%s/%s is on another file system than its parent; unmount it", path,
                            PROBE_WORK_DIR);
        }
        /* What root has just made is root's; anything else that is not the user's own stays as it is. */
        if (folder.st_uid != user->uid &&
            (!fresh || folder.st_uid != 0 || fchown(fd, user->uid, user->gid) < 0 || fchmod(fd, 0700) < 0)) {
                (void) close(fd);
                return fail(it, "%s/%s belongs to user id %u, not to %s; remove it", path, PROBE_WORK_DIR,
                            (unsigned) folder.st_uid, user->name);
        }
        if (fresh)
                tell(it, "%s/%s made; ", path, PROBE_WORK_DIR);
        return fd;
}

/* ---- the proof ---- */

static int write_block(int dir_fd, bool direct)
{
        static unsigned char block[PROOF_BYTES] __attribute__((aligned(PROOF_BYTES)));

        _cleanup_close_ int fd = openat(
                dir_fd, ".", O_TMPFILE | O_WRONLY | O_DSYNC | O_CLOEXEC | (direct ? O_DIRECT : 0), 0600);
        if (fd < 0 && errno == EOPNOTSUPP) {
                fd = openat(dir_fd, "proof",
                            O_CREAT | O_EXCL | O_WRONLY | O_DSYNC | O_CLOEXEC | O_NOFOLLOW |
                                    (direct ? O_DIRECT : 0),
                            0600);
                if (fd >= 0)
                        (void) unlinkat(dir_fd, "proof", 0);
        }
        if (fd < 0)
                return -errno;
        ssize_t n = pwrite(fd, block, sizeof block, 0);
        return n == (ssize_t) sizeof block ? 0 : n < 0 ? -errno : -EIO;
}

/* As the user, through the path as the daemon will take it. Does not return. */
static void __attribute__((noreturn)) prove_as_user(const char *path, const User *user)
{
        char folder[PATH_MAX + sizeof PROBE_WORK_DIR + 1];

        if (initgroups(user->name, user->gid) < 0 || setgid(user->gid) < 0 || setuid(user->uid) < 0)
                _exit(EPERM);
        (void) snprintf(folder, sizeof folder, "%s/" PROBE_WORK_DIR, path);
        _cleanup_close_ int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int r = fd < 0 ? -errno : write_block(fd, true);
        if (r == -EINVAL) /* no direct I/O: that it cannot be judged is the daemon's to say */
                r = write_block(fd, false);
        _exit(-r);
}

static int prove(const char *path, const User *user, Preparation *it)
{
        pid_t pid = fork();
        int status = 0;

        if (pid == 0)
                prove_as_user(path, user);
        if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
                return fail(it, "%s: the proof of a write could not be made", path);
        if (WEXITSTATUS(status) != 0)
                return fail(it, "%s: user %s cannot write there: %s", path, user->name,
                            strerror(WEXITSTATUS(status)));
        it->result = PREPARED;
        tell(it, "user %s has written there", user->name);
        return 0;
}

/* ---- all of it, in a child ---- */

/* Links on the way to PATH are root's own, or they are not followed. */
static bool links_are_roots(const char *path)
{
        char part[PATH_MAX];
        struct stat st;

        for (size_t i = 1; i <= strlen(path) && i < sizeof part; i++)
                if (path[i] == '/' || !path[i]) {
                        memcpy(part, path, i);
                        part[i] = '\0';
                        if (lstat(part, &st) == 0 && S_ISLNK(st.st_mode) && st.st_uid != 0)
                                return false;
                }
        return true;
}

static void work(const char *path, const User *user, Preparation *it)
{
        char resolved[PATH_MAX];

        if (waits_for_mount(path, it))
                return;
        if (!realpath(path, resolved)) {
                (void) fail(it, "%s: %s", path, strerror(errno));
                return;
        }
        if (strcmp(resolved, path) != 0 && !links_are_roots(path)) {
                (void) fail(it, "%s leads through a symbolic link that is not root's; name %s itself", path,
                            resolved);
                return;
        }
        if (strcmp(resolved, path) != 0 && waits_for_mount(resolved, it))
                return;
        _cleanup_close_ int fd = open_exactly(resolved);
        if (fd < 0) {
                (void) fail(it, "%s: %s", resolved, strerror(-fd));
                return;
        }
        _cleanup_close_ int folder = make_folder(fd, resolved, user, it);
        if (folder >= 0 && open_way(resolved, user, it) == 0)
                (void) prove(path, user, it);
}

typedef struct Child {
        pid_t pid;
        int answer; /* the end of a pipe to read a whole Preparation from, or -1 */
} Child;

/* A child that works on PATH; what could not be started is in RET. */
static Child start(const char *path, const User *user, Preparation *ret)
{
        int pipe_fds[2];

        if (pipe2(pipe_fds, O_CLOEXEC) < 0) {
                (void) fail(ret, "no pipe: %s", strerror(errno));
                return (Child){ -1, -1 };
        }
        Child child = { .pid = fork(), .answer = pipe_fds[0] };
        if (child.pid == 0) {
                Preparation it = { 0 };

                /* Whoever reads our output would wait for its end as long as a child hangs. */
                if (close_range(STDIN_FILENO, STDERR_FILENO, 0) < 0)
                        _exit(1);
                work(path, user, &it);
                _exit(write(pipe_fds[1], &it, sizeof it) == (ssize_t) sizeof it ? 0 : 1);
        }
        (void) close(pipe_fds[1]);
        if (child.pid < 0) {
                (void) fail(ret, "no child process: %s", strerror(errno));
                close_fdp(&child.answer);
                child.answer = -1;
        }
        return child;
}

/* Waits for the child's answer, which is one write of a whole Preparation. */
static void collect(Child *child, const char *path, uint64_t timeout_ns, uint64_t deadline_ns,
                    Preparation *ret)
{
        struct pollfd poll_fd = { .fd = child->answer, .events = POLLIN };
        uint64_t now_ns = clock_ns(CLOCK_MONOTONIC),
                 left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;

        if (child->answer < 0)
                return; /* it was said why */
        if (poll(&poll_fd, 1, (int) (left_ns / NS_PER_MS)) == 1 &&
            read(child->answer, ret, sizeof *ret) == (ssize_t) sizeof *ret)
                (void) waitpid(child->pid, NULL, 0);
        else {
                *ret = (Preparation){ .result = PREPARE_HANGS };
                tell(ret, "%s did not answer in %u s: its file system hangs", path,
                     (unsigned) (timeout_ns / NS_PER_S));
                (void) kill(child->pid,
                            SIGKILL); /* it ends when the kernel lets it go; that is not waited for */
        }
        (void) close(child->answer);
}

void target_prepare(const char *const *paths, size_t n, const char *user_name, uint64_t timeout_ns,
                    Preparation *ret)
{
        const struct passwd *entry = getpwnam(user_name);
        _cleanup_free_ Child *children = calloc(n > 0 ? n : 1, sizeof *children);
        uint64_t deadline_ns = clock_ns(CLOCK_MONOTONIC) + timeout_ns;

        memset(ret, 0, n * sizeof *ret);
        for (size_t i = 0; i < n; i++)
                if (!children)
                        (void) fail(&ret[i], "out of memory");
                else if (!entry)
                        (void) fail(&ret[i], "there is no user %s; make it with systemd-sysusers", user_name);
                else {
                        const User user = { user_name, entry->pw_uid, entry->pw_gid };

                        children[i] = start(paths[i], &user, &ret[i]);
                }
        for (size_t i = 0; children && entry && i < n; i++)
                collect(&children[i], paths[i], timeout_ns, deadline_ns, &ret[i]);
}
