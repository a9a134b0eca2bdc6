/* SPDX-License-Identifier: Apache-2.0 */
/* A resolved device as lines of "key: value", for device-show and for the expectations of the tests. */
#pragma once

#include "tierprobe/device.h"

#include <stdio.h>

void device_print(const Device *device, FILE *to);
