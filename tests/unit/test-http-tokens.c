/* SPDX-License-Identifier: Apache-2.0 */
/* Bearer tokens: what a file of them says, and which one a client shows. */

#include "../../src/http/tokens.h"

#include "tierprobe/cleanup.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SEED 20261130
#define N_FILES 2000

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/=";

static void random_token(char *text, size_t size)
{
        for (size_t i = 0; i < size; i++)
                text[i] = letters[(size_t) random() % (sizeof letters - 1)];
        text[size] = '\0';
}

/* Whatever the file, each of its tokens is found by its name, and nothing that differs in one place is. */
static void test_found(void **state)
{
        (void) state;
        srandom(SEED);
        for (int f = 0; f < N_FILES; f++) {
                char text[8192] = "", error[TOKENS_ERROR_SIZE] = "", shown[10][TOKEN_SIZE_MAX + 2],
                     names[10][32];
                _cleanup_(tokens_freep) Tokens *tokens = NULL;
                size_t n = 1 + (size_t) random() % 10, at = 0;
                unsigned line = 0;

                for (size_t i = 0; i < n; i++) {
                        while (random() % 3 == 0) {
                                at += (size_t) sprintf(text + at, "%s\n", random() % 2 ? "# x y" : " \t");
                                line++;
                        }
                        line++;
                        random_token(shown[i], TOKEN_SIZE_MIN + (size_t) random() % (TOKEN_SIZE_MAX -
                                                                                     TOKEN_SIZE_MIN + 1));
                        bool named = random() % 2;
                        (void) sprintf(names[i], named ? "name-%zu" : "line-%zu", named ? i : (size_t) line);
                        at += (size_t) sprintf(text + at, "%s%s%s%s%s", random() % 2 ? " " : "",
                                               named ? names[i] : "", named ? random() % 2 ? " \t" : " " : "",
                                               shown[i], random() % 2 ? " \r\n" : "\n");
                }
                if (tokens_parse(text, at - (random() % 2), &tokens, error) < 0)
                        fail_msg("seed %d, file %d: %s\n%s", SEED, f, error, text);
                for (size_t i = 0; i < n; i++) {
                        const char *name = tokens_find(tokens, shown[i]);

                        if (!name || strcmp(name, names[i]) != 0)
                                fail_msg("seed %d, file %d: %s not found\n%s", SEED, f, names[i], text);
                        size_t place = (size_t) random() % (strlen(shown[i]) + 1);
                        shown[i][place] = shown[i][place] == 'x' ? 'y' : 'x';
                        shown[i][TOKEN_SIZE_MAX + 1] = '\0';
                        if (place < strlen(shown[i]))
                                assert_null(tokens_find(tokens, shown[i]));
                }
        }
}

/* Any bytes are a file of tokens or a sentence with a line. */
static void test_anything(void **state)
{
        static const char bits[] = "ab-_/ \t\n\r#=\0\x7f\xc3";

        (void) state;
        srandom(SEED);
        for (int f = 0; f < 20000; f++) {
                char text[300], error[TOKENS_ERROR_SIZE] = "";
                _cleanup_(tokens_freep) Tokens *tokens = NULL;
                size_t size = (size_t) random() % sizeof text;

                for (size_t i = 0; i < size; i++)
                        text[i] = random() % 8 ? 'a' : bits[(size_t) random() % (sizeof bits - 1)];
                int r = tokens_parse(text, size, &tokens, error);
                assert_true(r == 0 ||
                            (r == -EINVAL && (strncmp(error, "line ", 5) == 0 || strstr(error, "no token"))));
                assert_true((r == 0) == (tokens != NULL));
        }
}

static void test_edges(void **state)
{
        char longest[TOKEN_SIZE_MAX + 2], error[TOKENS_ERROR_SIZE];
        _cleanup_(tokens_freep) Tokens *tokens = NULL;

        (void) state;
        assert_null(tokens_find(NULL, ""));
        memset(longest, 'x', sizeof longest);
        longest[TOKEN_SIZE_MAX + 1] = '\0';
        assert_int_equal(tokens_parse(longest, TOKEN_SIZE_MAX + 1, &tokens, error), -EINVAL);
        assert_int_equal(tokens_parse(longest, TOKEN_SIZE_MAX, &tokens, error), 0);
        assert_null(tokens_find(tokens, longest));
        assert_null(tokens_find(tokens, ""));
        longest[TOKEN_SIZE_MAX] = '\0';
        assert_string_equal(tokens_find(tokens, longest), "line-1");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_found),
                cmocka_unit_test(test_anything),
                cmocka_unit_test(test_edges),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
