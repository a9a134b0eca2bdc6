/* SPDX-License-Identifier: Apache-2.0 */
/* From the rows of every device to its judgement. Inside the capture room. */
#pragma once

#include "capture-rows.h"

/* Judges every device of ROWS: RET[i] is that of device i, and must be zeroed with room for all. 0 or the
 * error of reading rows back, -ENOMEM. */
int window_judge(const Limits *limits, Rows *rows, Judgement *ret);
