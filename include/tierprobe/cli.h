/* SPDX-License-Identifier: Apache-2.0 */
/* The subcommands of `tierprobe`, one file each in src/cli. Each takes its own argv (argv[0] is its name) and
 * returns the exit status. */
#pragma once

#include <stdio.h>

#include "tierprobe/record.h"

/* The monitoring-plugin convention. */
enum { CLI_PASS = 0, CLI_WARNING = 1, CLI_FAIL = 2, CLI_UNKNOWN = 3 };

int cli_run(int argc, char *argv[]);
int cli_judge(int argc, char *argv[]);
int cli_iostat(int argc, char *argv[]);
int cli_target(int argc, char *argv[]);
int cli_status_command(int argc, char *argv[]);
int cli_check(int argc, char *argv[]);
int cli_start(int argc, char *argv[]);
int cli_abort(int argc, char *argv[]);
int cli_history(int argc, char *argv[]);
int cli_report(int argc, char *argv[]);

static inline int cli_status(Verdict verdict)
{
        switch (verdict) {
        case VERDICT_PASS:
                return CLI_PASS;
        case VERDICT_FAIL:
                return CLI_FAIL;
        case VERDICT_NEVER_RUN:
        case VERDICT_INCONCLUSIVE:
        case _VERDICT_MAX:
                break;
        }
        return CLI_UNKNOWN;
}

/* ---- report.c: what people read at the end ---- */

/* One PASS/FAIL/INCONCLUSIVE line for each requirement (value, limit, column), one for the verdict, then the
 * reasons. */
void report_judgement(FILE *out, const Judgement *judgement);

/* The same with what was tested in front of it. */
void report_run(FILE *out, const RunRecord *record);
