/* SPDX-License-Identifier: Apache-2.0 */
/* The sensors of a stack's drives: listing them asks nothing of a drive, reading them does. */
#pragma once

#include "tierprobe/condition.h"

typedef void (*SensorVisit)(const DeviceNode *node, int hwmon_fd, int number, void *userdata);

/* Calls VISIT for each tempNUMBER_input of each drive of DEVICE. Touches directories only. */
void heat_visit(const DeviceRoots *roots, const Device *device, SensorVisit visit, void *userdata);
