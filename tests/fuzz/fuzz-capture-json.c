/* Anything at all in the place of a report of iostat's JSON: what fuzz-capture-text.c demands, with the bytes
 * inside a document, so that they reach the reader of reports at once. Seeds: tests/data/judge/. */

#include "tierprobe/capture.h"

#include "fuzz-capture.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const char before[] = "{\"sysstat\": {\"hosts\": [{\"statistics\": [";

        if (size < 2)
                return 0;
        size_t all = sizeof before - 1 + size - 1;
        char *text = malloc(all);
        if (!text)
                return 0;
        /* A whole document stays as it is. */
        if (data[1] == '{' && data[0] % 2 == 0) {
                fuzz_capture((const char *) data + 1, size - 1, data[0] * (size - 1) / 255);
        } else {
                memcpy(text, before, sizeof before - 1);
                memcpy(text + sizeof before - 1, data + 1, size - 1);
                fuzz_capture(text, all, data[0] * all / 255);
        }
        free(text);
        return 0;
}
