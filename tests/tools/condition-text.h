/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel says of a device's condition, as text, for tests. */
#pragma once

#include <stdio.h>

#include "tierprobe/condition.h"

/* Reads all of it and prints it; "limits:" counts those of control groups. Reads the heat, too: it may wait
 * for the drives. */
void condition_print(const DeviceRoots *roots, const Device *device, FILE *to);
