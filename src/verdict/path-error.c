/* SPDX-License-Identifier: Apache-2.0 */
/* What an errno at a tested path means, and what mends it. Pure. */

#include "tierprobe/path-error.h"

#include "tierprobe/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define KERNEL_LOG "Look at the kernel log (journalctl -k)"

typedef struct Row {
        int error;
        ReasonCode code;
        const char *says, *mend;
} Row;

/* Those from ENODATA on are what the block layer makes of a device's answer (blk_errors in blk-core.c). */
static const Row rows[] = {
        /* the path */
        { ENOENT, REASON_PATH_MISSING, "there is no such directory", "Make it, or correct the path." },
        { ENOTDIR, REASON_PATH_MISSING, "it is not a directory, or a part of the path is not",
          "Give the directory that holds the cache." },
        { ENAMETOOLONG, REASON_PATH_MISSING,
          "it is too long: a path has at most 4095 bytes, each part of it 255", "Give a shorter one." },
        { ELOOP, REASON_WRONG_DEVICE,
          "it is a symbolic link that was put there meanwhile, or links lead in a circle",
          "Set it right, or name the directory itself." },
        { EINVAL, REASON_DIRECT_IO_UNSUPPORTED, "the file system refuses direct I/O",
          "Test a directory on a local disk's file system." },
        { EOPNOTSUPP, REASON_DIRECT_IO_UNSUPPORTED, "the file system refuses direct I/O",
          "Test a directory on a local disk's file system." },

        /* permission: path_error_describe() knows more of these two */
        { EACCES, REASON_NOT_PERMITTED, "the user that tests it has no permission",
          "namei -l shows the owners and modes on the way." },
        { EPERM, REASON_NOT_PERMITTED, "the operation is not permitted",
          "Look with lsattr -d whether the directory is immutable or append-only." },
        { EROFS, REASON_WRITE_ERROR, "it is read-only",
          "Mount it writable, or look for the error that turned it so (journalctl -k); below /usr, /boot and "
          "/etc it is so "
          "for the service." },

        /* space and own limits */
        { ENOSPC, REASON_NO_SPACE, "there is no space left", "Free some, or use a smaller profile." },
        { EDQUOT, REASON_THROTTLED, "the disk quota of the user or project that tests it is used up",
          "Raise the quota, or test as another user." },
        { EFBIG, REASON_THROTTLED, "the file size limit is reached",
          "Raise the process's (ulimit -f unlimited; LimitFSIZE=infinity of the unit), or test fewer blocks, "
          "if it "
          "is the file system's." },

        /* this host */
        { ENOMEM, REASON_ABORTED, "this host is out of memory", "Free some and run again." },
        { ENOBUFS, REASON_ABORTED, "this host is out of memory", "Free some and run again." },
        { EINTR, REASON_ABORTED, "it was interrupted", "Run again." },
        { EAGAIN, REASON_ABORTED, "this host is out of a resource",
          "Free memory, processes or descriptors and run again." },
        { EMFILE, REASON_ABORTED, "the process has too many files open", "Raise its limit (LimitNOFILE=)." },
        { ENFILE, REASON_ABORTED, "this host has too many files open", "Raise fs.file-max." },

        /* file systems that are lost */
        { ESTALE, REASON_WRITE_ERROR, "the server of this file system does not know it any more",
          "Mount it anew." },
        { ENOTCONN, REASON_WRITE_ERROR, "the program or server behind this file system is gone",
          "Mount it anew (umount -l first)." },
        { ECONNABORTED, REASON_WRITE_ERROR, "the program or server behind this file system is gone",
          "Mount it anew (umount -l first)." },
        { EHOSTDOWN, REASON_WRITE_ERROR, "the server of this file system does not answer",
          "Test a directory on a local disk." },
        { EUCLEAN, REASON_WRITE_ERROR, "the file system is damaged",
          KERNEL_LOG ", and check it with its fsck." },
        { ESHUTDOWN, REASON_WRITE_ERROR, "the file system has been shut down after an error",
          KERNEL_LOG ", unmount it and check it." },

        /* devices */
        { EIO, REASON_WRITE_ERROR, "the disk or its file system reports an input/output error",
          KERNEL_LOG " and replace or repair the device." },
        { ENODEV, REASON_WRITE_ERROR, "the device is gone or offline",
          KERNEL_LOG " and the device's cabling." },
        { ENXIO, REASON_WRITE_ERROR, "the device is gone", KERNEL_LOG " and the device's cabling." },
        { ETIMEDOUT, REASON_STALLED, "there was no answer in time: the device or its file system hangs",
          KERNEL_LOG " for timeouts." },
        { ENODATA, REASON_WRITE_ERROR, "the device reports a medium error", KERNEL_LOG " and replace it." },
        { EREMOTEIO, REASON_WRITE_ERROR, "the device refuses the command", KERNEL_LOG " and its firmware." },
        { ENOLINK, REASON_WRITE_ERROR, "the way to the device has failed",
          KERNEL_LOG ", cables and paths (multipath -ll)." },
        { EBADE, REASON_WRITE_ERROR, "another host has reserved the device",
          "Look at its reservations (sg_persist -r)." },
        { EILSEQ, REASON_WRITE_ERROR, "the device reports a protection error",
          KERNEL_LOG " and replace or repair the device." },
};

PathError path_error_find(int error)
{
        const char *name = strerrorname_np(error), *text = strerrordesc_np(error);
        PathError found = {
                .name = name ? name : "unknown error",
                .says = text ? text : "an unknown error",
                .mend = KERNEL_LOG ".",
                .code = REASON_WRITE_ERROR,
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                if (rows[i].error == error) {
                        found.says = rows[i].says;
                        found.mend = rows[i].mend;
                        found.code = rows[i].code;
                }
        return found;
}

/* Whether TEXT is one word of a shell as it stands, so that it can be part of a command. */
static bool is_plain(const char *text)
{
        return *text &&
               text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:@%")] ==
                       '\0';
}

static void describe_denial(char *ret, size_t size, const PathDenial *denial)
{
        const char *user = denial->user, *directory = denial->directory;
        const char *rights = denial->enter ? "x" : "rwx";
        /* setfacl takes a bare number, too; "uid 1234" is for people. */
        const char *who = strncmp(user, "uid ", 4) == 0 ? user + 4 : user;

        int n = snprintf(ret, size, "User %s may not %s %.120s (owner %s, group %s, mode %04o). ", user,
                         denial->enter ? "enter" : "make files in", directory, denial->owner, denial->group,
                         (unsigned) denial->mode & 07777U);
        if (n < 0 || (size_t) n >= size)
                return;
        ret += n;
        size -= (size_t) n;
        n = snprintf(ret, size, "Run \"setfacl -m u:%s:%s %s\" to let it.", who, rights, directory);
        if (n < 0 || (size_t) n >= size || !is_plain(directory) || !is_plain(who))
                (void) snprintf(ret, size, "Give it the right (%s).", rights);
}

void path_error_describe(char *ret, size_t size, const char *path, int error, const PathDenial *denial)
{
        PathError found = path_error_find(error);

        if ((error == EACCES || error == EPERM) && denial && denial->user[0] && denial->directory[0])
                describe_denial(ret, size, denial);
        else if (error == EACCES && denial && denial->user[0])
                (void) snprintf(
                        ret, size,
                        "%.150s: user %s is kept out although owners and modes would let it: by SELinux or "
                        "AppArmor (journalctl -k -g denied), or by its service's sandbox "
                        "(systemctl cat tierprobed).",
                        path, denial->user);
        else
                (void) snprintf(ret, size, "%.150s: %s (%s). %s", path, found.says, found.name, found.mend);
}
