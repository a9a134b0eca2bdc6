/* SPDX-License-Identifier: Apache-2.0 */
/* The tested directory and the files made in it. Runs in children only, since each call here may hang.
 * Knows the probe's outcomes.
 *
 * All functions return PROBE_OK, or how the stream ends, with the errno behind it in RET_ERROR. */
#pragma once

#include "tierprobe/probe.h"

#include <sys/types.h>

/* Opens the directory PATH, which is not followed when its last part is a symbolic link. From here on it is
 * this directory, wherever its path may lead later. */
ProbeOutcome test_file_open(const char *path, int *ret_dir_fd, dev_t *ret_dev, int *ret_error);

/* Opens the working folder in the directory DIR_FD on device DEV, when there is one that is this user's own
 * and on the same file system: a descriptor, or -1. */
int test_file_open_work_dir(int dir_fd, dev_t dev);

/* Compares what is free for anybody with NEEDED bytes and the plan's reserve. Both results are set in either
 * case, if free space is known; a file system that says it has no size is let through with 0 free bytes. */
ProbeOutcome test_file_check_space(int dir_fd, uint64_t needed_bytes, uint64_t min_free_bytes,
                                   double min_free_ratio, uint64_t *ret_free_bytes,
                                   uint64_t *ret_needed_bytes, int *ret_error);

/* Makes an empty file without a name in the directory, open for direct synchronous writing. RET_HAD_NAME (may
 * be NULL) says whether it had one for a moment, since the file system cannot make one without. */
ProbeOutcome test_file_create(int dir_fd, int *ret_fd, bool *ret_had_name, int *ret_error);

/* Removes what a process that was killed in that moment has left: empty files of the test's own kind of name,
 * of this user, that nobody holds locked. Returns how many. Looks at a bounded number of names. */
unsigned test_file_sweep(int dir_fd);

/* Closes the file FD. The directory's owner may have given it another name while it had one: its space goes
 * back nevertheless. */
void test_file_close(int fd);

/* How a write that failed with ERROR ends the stream. FD tells whether the file system is full. */
ProbeOutcome test_file_judge_write(int fd, int error, bool first_write, bool short_before, size_t rest_bytes);
