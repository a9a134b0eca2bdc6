/* SPDX-License-Identifier: Apache-2.0 */
/* What a ledger that begins anew can know. */
#pragma once

#include "parts.h"

/* Enters what the kept runs have written when the ledger was missing or damaged at the start. */
void ledger_fill(const Parts *parts);
