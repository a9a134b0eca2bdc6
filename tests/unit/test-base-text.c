/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 and text that may be shown, against the C library's own decoder. */

#include "tierprobe/cleanup.h"
#include "tierprobe/text.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include <cmocka.h>

#define SEED 20261202

/* The length of the character at S, by the C library; 0 when there is none. */
static size_t length_by_libc(const char *s, size_t size)
{
        mbstate_t mb = { 0 };
        wchar_t c = 0;

        if (size > 0 && *s == '\0')
                return 1;
        size_t n = mbrtowc(&c, s, size, &mb);
        return n > 4 || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0 : n;
}

/* Bytes that are often nearly UTF-8. Returns how many. */
static size_t make_bytes(char *bytes, size_t max)
{
        static const unsigned char heads[] = { 'a',  0x7f, 0x80, 0xbf, 0xc0, 0xc2, 0xdf, 0xe0,
                                               0xed, 0xef, 0xf0, 0xf4, 0xf5, 0xff, '\n' };
        size_t n = (size_t) random() % max;

        for (size_t i = 0; i < n; i++)
                bytes[i] = (char) (random() % 3 == 0   ? random() % 256
                                   : random() % 2 == 0 ? heads[(size_t) random() % sizeof heads]
                                                       : 0x80 | (random() % 64));
        return n;
}

/* Every lead byte with every second byte, and every cut of the longest forms. */
static void test_all_pairs(void **state)
{
        (void) state;
        for (unsigned a = 0; a < 256; a++)
                for (unsigned b = 0; b < 256; b++) {
                        char text[] = { (char) a, (char) b, (char) 0x80, (char) 0xbf };

                        for (size_t size = 1; size <= sizeof text; size++)
                                assert_int_equal(utf8_length(text, size), length_by_libc(text, size));
                }
        assert_int_equal(utf8_length("", 0), 0);
        assert_true(utf8_is_valid("", 0));
}

static void test_random_bytes(void **state)
{
        (void) state;
        srandom(SEED);
        for (unsigned i = 0; i < 100000; i++) {
                char bytes[24];
                size_t n = make_bytes(bytes, sizeof bytes);
                bool valid = true;

                for (size_t at = 0, length; at < n && valid; at += length) {
                        length = length_by_libc(bytes + at, n - at);
                        valid = length > 0;
                }
                if (utf8_is_valid(bytes, n) != valid)
                        fail_msg("seed %d, case %u", SEED, i);
        }
}

/* What is mended is valid, and what was valid stays as it was. */
static void test_mended(void **state)
{
        (void) state;
        srandom(SEED);
        for (unsigned i = 0; i < 50000; i++) {
                char bytes[24] = "";

                bytes[make_bytes(bytes, sizeof bytes - 1)] = '\0';
                _cleanup_free_ char *mended = utf8_mended(bytes);
                assert_non_null(mended);
                assert_true(utf8_is_valid(mended, strlen(mended)));
                if (utf8_is_valid(bytes, strlen(bytes)))
                        assert_string_equal(mended, bytes);
                else
                        assert_non_null(strstr(mended, "\xef\xbf\xbd"));
        }
        _cleanup_free_ char *mended = utf8_mended("a\xff"
                                                  "b\xe2\x82");
        assert_string_equal(mended, "a\xef\xbf\xbd"
                                    "b\xef\xbf\xbd\xef\xbf\xbd");
}

static bool is_clean(const char *s)
{
        for (const char *p = s; *p; p++)
                if (text_is_control(*p))
                        return false;
        return utf8_is_valid(s, strlen(s));
}

static void test_copy_clean(void **state)
{
        static const struct {
                size_t size;
                const char *from, *to;
        } cases[] = {
                { 32, "", "" },
                { 32, "plain text", "plain text" },
                { 32, "tab\tbell\a\x7f", "tab?bell??" },
                { 32, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80" },
                { 32, "\xff\xc3", "??" },
                { 32, "\xc0\xaf", "??" },                     /* overlong */
                { 32, "\xed\xa0\x80", "???" },                /* surrogate */
                { 32, "\xf4\x90\x80\x80", "????" },           /* above U+10FFFF */
                { 32, "\xe0\x80\x80x", "???x" },              /* overlong */
                { 13, "12345678901\xc3\xa9", "12345678901" }, /* a character is not cut */
                { 13, "123456789012345", "123456789012" },
                { 1, "x", "" },
        };
        char to[32];

        (void) state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                text_copy_clean(to, cases[i].size, cases[i].from);
                assert_string_equal(to, cases[i].to);
        }
        srandom(SEED);
        for (int i = 0; i < 50000; i++) {
                char from[40] = "", out[24];

                from[make_bytes(from, sizeof from - 1)] = '\0';
                text_copy_clean(out, sizeof out, from);
                assert_true(is_clean(out));
                if (strlen(from) < sizeof out && is_clean(from))
                        assert_string_equal(out, from);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_all_pairs),
                cmocka_unit_test(test_random_bytes),
                cmocka_unit_test(test_mended),
                cmocka_unit_test(test_copy_clean),
        };

        if (!setlocale(LC_CTYPE, "C.UTF-8"))
                return 77;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
