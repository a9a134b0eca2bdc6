/* SPDX-License-Identifier: Apache-2.0 */
/* tierprobed without its main(), so that tests link all of it. */
#pragma once

/* Runs the daemon as the command line says. Returns the exit status: 0, 1 (could not run), 2 (usage), 78 (the
 * configuration is wrong: EX_CONFIG of sysexits.h). */
int daemon_main(int argc, char *argv[]);
