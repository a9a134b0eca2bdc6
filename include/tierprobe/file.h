/* SPDX-License-Identifier: Apache-2.0 */
/* Small files: bounded reads, atomic writes, and out of the way with what is damaged. Knows libc. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Reads the whole of a small file below directory descriptor DIR_FD (AT_FDCWD for the current one).
 *
 * MAX_BYTES bounds what is read: a larger file is -EFBIG. The text is NUL-terminated; RET_SIZE (may be
 * NULL) gets its length without the NUL. Owned by the caller, free(). Returns 0 or negative errno. */
int read_file_at(int dir_fd, const char *path, size_t max_bytes, char **ret_text, size_t *ret_size);

/* The same for what may be a pipe or a terminal: waits for its end, at most TIMEOUT_NS for each further piece
 * (-ETIMEDOUT). */
int read_file_waiting(const char *path, size_t max_bytes, uint64_t timeout_ns, char **ret_text,
                      size_t *ret_size);

/* Reads one attribute (a line of at most 4095 bytes, as in /sys) into BUF of SIZE bytes, strips trailing
 * white space and NUL-terminates. Returns the length, or negative errno (-ENOBUFS: does not fit). */
ssize_t read_attribute_at(int dir_fd, const char *path, char *buf, size_t size);

/* Replaces PATH below DIR_FD by SIZE bytes of DATA: writes a temporary neighbour with MODE, renames it.
 * A reader, or a crash of this process, sees the old file or the new one, never a part. No fsync: it is
 * called on the event loop. Returns 0 or negative errno; nothing is left behind on failure. */
int write_file_atomic_at(int dir_fd, const char *path, const void *data, size_t size, mode_t mode);

/* The same, and it is on the disk when this returns, which may take as long as the disk likes. */
int write_file_synced_at(int dir_fd, const char *path, const void *data, size_t size, mode_t mode);

/* Renames what cannot be used to NAME.damaged, or, where that is taken, NAME.damaged.1, .2 and so on: nothing
 * that was set aside is ever overwritten. 0 or negative errno. */
int set_aside_at(int dir_fd, const char *name);

/* How many files in the directory have such a name; negative errno. */
ssize_t count_set_aside_at(int dir_fd);

/* PATH as seen from the working directory, without a look at it. Its leading ".." are taken off the
 * directory's own name, which has no symbolic links; any other stays for the kernel, which knows where links
 * lead. 0, -ENOMEM, or the errno of getcwd(). Owned by the caller. */
int path_absolute(const char *path, char **ret);

/* Joins ROOT and the rest given as printf format into a newly allocated path. NULL when out of memory. */
char *path_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
