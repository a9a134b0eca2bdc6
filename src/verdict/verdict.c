/* SPDX-License-Identifier: Apache-2.0 */
/* Names of verdicts and reasons, the list of reasons. Pure. */

#include "tierprobe/verdict.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const verdict_names[_VERDICT_MAX] = {
        [VERDICT_NEVER_RUN] = "never_run",
        [VERDICT_PASS] = "pass",
        [VERDICT_FAIL] = "fail",
        [VERDICT_INCONCLUSIVE] = "inconclusive",
};

static const char *const reason_names[_REASON_MAX] = {
        [REASON_WRITE_THROUGHPUT_LOW] = "write_throughput_low",
        [REASON_WRITE_LATENCY_HIGH] = "write_latency_high",
        [REASON_UNSTEADY] = "unsteady",
        [REASON_NO_WRITE_COMPLETED] = "no_write_completed",
        [REASON_COUNTERS_UNTIMED] = "counters_untimed",
        [REASON_COUNTERS_DISABLED] = "counters_disabled",
        [REASON_COUNTERS_RESET] = "counters_reset",
        [REASON_SUSPENDED] = "suspended",
        [REASON_BYTES_MISMATCH] = "bytes_mismatch",
        [REASON_FOREIGN_IO] = "foreign_io",
        [REASON_DIRECT_IO_UNSUPPORTED] = "direct_io_unsupported",
        [REASON_NO_BLOCK_DEVICE] = "no_block_device",
        [REASON_PATH_MISSING] = "path_missing",
        [REASON_NOT_MOUNTED] = "not_mounted",
        [REASON_WRONG_DEVICE] = "wrong_device",
        [REASON_NO_SPACE] = "no_space",
        [REASON_WRITE_ERROR] = "write_error",
        [REASON_THROTTLED] = "throttled",
        [REASON_NOT_PERMITTED] = "not_permitted",
        [REASON_CACHE_IN_FRONT] = "cache_in_front",
        [REASON_DOUBLE_WRITES] = "double_writes",
        [REASON_STALLED] = "stalled",
        [REASON_ABORTED] = "aborted",
        [REASON_TRUNCATED] = "truncated",
        [REASON_TOO_FEW_SAMPLES] = "too_few_samples",
        [REASON_COLUMN_MISSING] = "column_missing",
        [REASON_HEADER_MISSING] = "header_missing",
        [REASON_NO_ROWS] = "no_rows",
        [REASON_UNREADABLE_ROWS] = "unreadable_rows",
        [REASON_NOT_A_CAPTURE] = "not_a_capture",
        [REASON_IDLE] = "idle",
        [REASON_TOO_OLD] = "too_old",
        [REASON_DEVICE_CHANGED] = "device_changed",
        [REASON_FIRMWARE_CHANGED] = "firmware_changed",
        [REASON_FILESYSTEM_CHANGED] = "filesystem_changed",
        [REASON_LIMITS_CHANGED] = "limits_changed",
        [REASON_PROFILE_CHANGED] = "profile_changed",
        [REASON_DEGRADED] = "degraded",
        [REASON_UNCONFIRMED] = "unconfirmed",
};

/* Index of TEXT in NAMES, or -EINVAL. */
static int name_index(const char *const *names, size_t n, const char *text)
{
        for (size_t i = 0; i < n; i++)
                if (strcmp(names[i], text) == 0)
                        return (int) i;
        return -EINVAL;
}

const char *verdict_to_string(Verdict verdict)
{
        return verdict_names[verdict];
}

int verdict_from_string(const char *text, Verdict *ret)
{
        int r = name_index(verdict_names, _VERDICT_MAX, text);
        if (r < 0)
                return r;
        *ret = (Verdict) r;
        return 0;
}

static int verdict_badness(Verdict verdict)
{
        static const int badness[_VERDICT_MAX] = {
                [VERDICT_PASS] = 0,
                [VERDICT_NEVER_RUN] = 1,
                [VERDICT_INCONCLUSIVE] = 2,
                [VERDICT_FAIL] = 3,
        };

        return badness[verdict];
}

Verdict verdict_worst(Verdict a, Verdict b)
{
        return verdict_badness(a) >= verdict_badness(b) ? a : b;
}

unsigned verdict_severity(Verdict verdict, bool warned)
{
        if (verdict == VERDICT_PASS)
                return warned ? 1 : 0;
        return verdict == VERDICT_FAIL ? 2 : 3;
}

const char *reason_to_string(ReasonCode code)
{
        return reason_names[code];
}

int reason_from_string(const char *text, ReasonCode *ret)
{
        int r = name_index(reason_names, _REASON_MAX, text);
        if (r < 0)
                return r;
        *ret = (ReasonCode) r;
        return 0;
}

bool reasons_have(const Reasons *reasons, ReasonCode code)
{
        for (size_t i = 0; i < reasons->n; i++)
                if (reasons->items[i].code == code)
                        return true;
        return false;
}

/* Ends TEXT, cut at SIZE bytes by snprintf(), where a UTF-8 character ends. */
static void end_at_character(char *text, size_t size)
{
        size_t at = size - 1;

        while (at > 0 && ((unsigned char) text[at - 1] & 0xc0) == 0x80)
                at--;
        if (at > 0 && ((unsigned char) text[at - 1] & 0x80))
                text[at - 1] = '\0';
}

void reasons_add(Reasons *reasons, ReasonCode code, const char *format, ...)
{
        va_list ap;

        if (reasons->n == MAX_REASONS || reasons_have(reasons, code))
                return;
        Reason *reason = &reasons->items[reasons->n++];
        reason->code = code;
        va_start(ap, format);
        int length = vsnprintf(reason->detail, sizeof reason->detail, format, ap);
        va_end(ap);
        if (length < 0)
                reason->detail[0] = '\0';
        else if ((size_t) length >= sizeof reason->detail)
                end_at_character(reason->detail, sizeof reason->detail);
}

bool ratio_met(const Limits *limits, unsigned passing, unsigned total)
{
        return total > 0 && (double) passing / total >= limits->pass_ratio;
}
