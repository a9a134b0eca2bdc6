/* SPDX-License-Identifier: Apache-2.0 */
/* Targets, profiles and runs by the names that a client gives. An unknown target or profile is answered with
 * those there are. Private to src/http. */
#pragma once

#include "server.h"

/* No target, or no profile, is called what the client said: each fills PROBLEM and returns -1. */
int target_unknown(const Service *service, Problem *problem);
int target_needed(const Service *service, Problem *problem); /* there are several */
int profile_unknown(const Service *service, Problem *problem);

/* A run could not be read, ERROR (negative) says why: there is none, or not now. Fills PROBLEM, returns -1.
 */
int problem_of_run(int error, Problem *problem);

/* The target called NAME. 0, or -1 with PROBLEM filled in. */
int target_by_name(const Service *service, const char *name, TargetView *ret, Problem *problem);
