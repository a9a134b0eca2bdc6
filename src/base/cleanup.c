/* SPDX-License-Identifier: Apache-2.0 */
/* The destructors behind the cleanup attributes. */

#include "tierprobe/cleanup.h"

#include <errno.h>

void close_fdp(int *fd)
{
        if (*fd < 0)
                return;
        int saved_errno = errno;
        (void) close(*fd);
        errno = saved_errno;
        *fd = -1;
}

void fclosep(FILE **f)
{
        if (*f)
                (void) fclose(*f);
}

void closedirp(DIR **d)
{
        if (*d)
                (void) closedir(*d);
}
