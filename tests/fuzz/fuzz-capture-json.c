/* SPDX-License-Identifier: Apache-2.0 */
/* What fuzz-capture-text.c demands, for JSON: a document as it is, and anything else, or a document whose
 * last byte is odd, inside of one, where the reader of reports gets it at once. Seeds: tests/data/judge/
 * in all its folders. */

#include "fuzz-capture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const char before[] = "{\"sysstat\": {\"hosts\": [{\"statistics\": [";
        size_t all = sizeof before - 1 + size;

        if (size == 0)
                return 0;
        if (data[0] == '{' && data[size - 1] % 2 == 0) {
                fuzz_capture((const char *) data, size, data[size - 1] * size / 255);
                return 0;
        }
        char *text = malloc(all);
        if (!text)
                return 0;
        memcpy(text, before, sizeof before - 1);
        memcpy(text + sizeof before - 1, data, size);
        fuzz_capture(text, all, data[size - 1] * all / 255);
        free(text);
        return 0;
}
