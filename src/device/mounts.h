/* SPDX-License-Identifier: Apache-2.0 */
/* The mount that holds a path, from the text of a mountinfo file. Pure: reads no file. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* One mount; texts are decoded (\040 is a blank again) and never NULL. Zeroed, it holds nothing. */
typedef struct Mount {
        int id;
        uint32_t major, minor;
        char *mount_point, *root, *filesystem, *source, *options, *super_options;
        char *super_options_encoded; /* as it stands in the table, for mount_option() */
} Mount;

void mount_done(Mount *mount); /* frees the texts, leaves it zeroed */

/* Finds the mount that holds PATH (absolute, no symbolic links) in SIZE bytes of TEXT, as the kernel's own
 * walk would: from the root, at each step into what is mounted there. So a mount that hides others wins over
 * a longer mount point below it, and of several on one place the last. Lines that are cut, hold a NUL or do
 * not parse are passed over. Returns 0 (RET is the caller's, mount_done()), -ENOENT (no mount holds it),
 * -E2BIG (more than 4096 mounts lie on the way) or -ENOMEM. */
int mounts_find(const char *text, size_t size, const char *path, Mount *ret);

/* The value of NAME in comma-separated OPTIONS that are still encoded: within a value the kernel prints a
 * comma as \054, so that only then they can be told apart. Returns 0 (decoded; owned by the caller, free()),
 * -ENOENT or -ENOMEM. */
int mount_option(const char *options_encoded, const char *name, char **ret);
