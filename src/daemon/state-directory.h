/* SPDX-License-Identifier: Apache-2.0 */
/* The folder that holds all that is kept. Knows libc and the log. */
#pragma once

/* Opens PATH, making it when there is none, and locks it for this process. Logs what is wrong. While
 * its disk does not answer it waits, says so in the log and to the service manager, and gives in to SIGTERM
 * and SIGINT, which the caller has blocked. 0 with a descriptor that the caller owns, -EINTR, or another
 * negative errno. */
int state_directory_open(const char *path, int *ret_fd);
