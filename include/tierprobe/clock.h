/* SPDX-License-Identifier: Apache-2.0 */
/* Time: nanoseconds of the kernel's clocks, and RFC 3339 text. Knows libc.
 *
 * CLOCK_MONOTONIC measures, CLOCK_BOOTTIME shows a suspend, CLOCK_REALTIME is only ever a label. */
#pragma once

#include <stdint.h>
#include <time.h>

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)
#define NS_PER_DAY (24 * 3600 * NS_PER_S)

#define RFC3339_SIZE 32

/* The clock's time in nanoseconds; never fails for the three clocks above. */
uint64_t clock_ns(clockid_t clock);

/* Writes REAL_NS (nanoseconds since the epoch) as "2026-11-30T13:14:05.123Z", always UTC and with
 * milliseconds, into BUF of RFC3339_SIZE bytes, and returns BUF. Times outside the years 0 to 9999
 * are written as the nearest one inside. */
const char *rfc3339_format(char buf[RFC3339_SIZE], int64_t real_ns);

/* Reads what rfc3339_format() writes (fraction of 0 to 9 digits, "Z" or "+hh:mm").
 * Returns 0, or -EINVAL when TEXT is anything else. */
int rfc3339_parse(const char *text, int64_t *ret_real_ns);
