/* SPDX-License-Identifier: Apache-2.0 */
/* Anything at all as a capture, fed in two pieces cut where its last byte says: no crash, no verdict without
 * a reason, no pass whose figures do not pass, and the same whole as in pieces. Seeds: tests/data/judge/
 * in all its folders. */

#include "fuzz-capture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        if (size > 0)
                fuzz_capture((const char *) data, size, data[size - 1] * size / 255);
        return 0;
}
