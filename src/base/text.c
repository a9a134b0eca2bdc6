/* SPDX-License-Identifier: Apache-2.0 */
/* Text from outside: what is UTF-8, and what may be shown. Pure. */

#include "tierprobe/text.h"

#include <stdlib.h>
#include <string.h>

/* Table 3-7 of the Unicode standard: the first byte tells the length, and within which bounds the second one
 * lies. */
size_t utf8_length(const char *text, size_t size)
{
        const unsigned char *p = (const unsigned char *) text;
        unsigned char low = 0x80, high = 0xbf;
        size_t length;

        if (size == 0)
                return 0;
        if (p[0] < 0x80)
                return 1;
        if (p[0] < 0xc2 || p[0] > 0xf4)
                return 0;
        length = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
        if (p[0] == 0xe0)
                low = 0xa0; /* below: overlong */
        else if (p[0] == 0xed)
                high = 0x9f; /* above: surrogates */
        else if (p[0] == 0xf0)
                low = 0x90; /* below: overlong */
        else if (p[0] == 0xf4)
                high = 0x8f; /* above: beyond U+10FFFF */
        if (size < length || p[1] < low || p[1] > high)
                return 0;
        for (size_t i = 2; i < length; i++)
                if (p[i] < 0x80 || p[i] > 0xbf)
                        return 0;
        return length;
}

bool utf8_is_valid(const char *text, size_t size)
{
        for (size_t i = 0, length; i < size; i += length) {
                length = utf8_length(text + i, size - i);
                if (length == 0)
                        return false;
        }
        return true;
}

char *utf8_mended(const char *text)
{
        static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */
        size_t size = strlen(text), n_bad = 0, length;

        for (size_t i = 0; i<size; i += length> 0 ? length : 1) {
                length = utf8_length(text + i, size - i);
                n_bad += length == 0;
        }
        char *mended = malloc(size + n_bad * (sizeof replacement - 2) + 1);
        if (!mended)
                return NULL;
        char *out = mended;
        for (size_t i = 0; i<size; i += length> 0 ? length : 1) {
                length = utf8_length(text + i, size - i);
                out = length > 0 ? mempcpy(out, text + i, length)
                                 : mempcpy(out, replacement, sizeof replacement - 1);
        }
        *out = '\0';
        return mended;
}

void text_copy_clean(char *to, size_t size, const char *from)
{
        size_t rest = strlen(from), used = 0;

        while (rest > 0) {
                size_t length = utf8_length(from, rest);
                bool shown = length > 0 && !text_is_control(*from);
                if (used + (shown ? length : 1) >= size)
                        break;
                if (shown)
                        memcpy(to + used, from, length);
                else
                        to[used] = '?';
                used += shown ? length : 1;
                from += length > 0 ? length : 1;
                rest -= length > 0 ? length : 1;
        }
        to[used] = '\0';
}
