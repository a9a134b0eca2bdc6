/* Anything at all as a capture, fed in two pieces cut where the first byte says: no crash, no verdict without
 * a reason, no pass whose figures do not pass, and the same whole as in pieces. Seeds: tests/data/judge/. */

#include "tierprobe/capture.h"

#include "fuzz-capture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        if (size > 1)
                fuzz_capture((const char *) data + 1, size - 1, data[0] * (size - 1) / 255);
        return 0;
}
