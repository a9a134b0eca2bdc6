/* SPDX-License-Identifier: Apache-2.0 */
/* Text from outside: what is UTF-8, and what may be shown. Knows libc.
 *
 * UTF-8 is what RFC 3629 says: overlong forms, surrogates and what lies above U+10FFFF are none. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* How many bytes the character at TEXT takes, of which SIZE are there; 0 when it is none, or cut. */
size_t utf8_length(const char *text, size_t size);

bool utf8_is_valid(const char *text, size_t size);

/* A copy of TEXT with U+FFFD for each byte that belongs to no character. Owned by the caller; NULL when out
 * of memory. */
char *utf8_mended(const char *text);

/* Copies FROM into TO of SIZE bytes as far as whole characters fit, with "?" for control characters and for
 * each byte that belongs to no character: what comes out can be printed and put into JSON. */
void text_copy_clean(char *to, size_t size, const char *from);

/* Whether C may not be shown: a control character. Of UTF-8, every byte from 0x80 on may. */
static inline bool text_is_control(char c)
{
        return (unsigned char) c < 0x20 || c == 0x7f;
}
