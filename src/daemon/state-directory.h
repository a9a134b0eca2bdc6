/* SPDX-License-Identifier: Apache-2.0 */
/* The folder that holds all that is kept. Knows libc and the log. */
#pragma once

/* Opens PATH, making it when there is none, and locks it for this process. Logs what is wrong. 0 with a
 * descriptor that the caller owns, or negative errno. */
int state_directory_open(const char *path, int *ret_fd);
