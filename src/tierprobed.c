/* SPDX-License-Identifier: Apache-2.0 */
/* tierprobed: the daemon's thin main. */

#include "tierprobe/daemon.h"

int main(int argc, char *argv[])
{
        return daemon_main(argc, argv);
}
