/* SPDX-License-Identifier: Apache-2.0 */
/* The set of targets: follows a configuration. */
#pragma once

#include "parts.h"

/* Drops the targets that CONFIG has not, and what is under way of them; the others keep their samples, runs
 * and device. Names are free for new targets after this. */
void targets_keep(Parts *parts, const Config *config);

/* Makes the targets that the configuration in force has more, and brings all into its order. 0 or -ENOMEM. */
int targets_add(Parts *parts, const TargetEvents *events);
