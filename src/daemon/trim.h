/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that only the start needed. Knows libc. */
#pragma once

/* Gives back what only the start needed; costs a few page faults later. */
void memory_trim(void);
