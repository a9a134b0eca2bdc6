/* SPDX-License-Identifier: Apache-2.0 */
/* A token file out of any bytes. One that is refused says where, and shows no token; one that is taken has
 * each of its tokens, and no other. */

#include "../../src/http/tokens.h"

#include "tierprobe/cleanup.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The last word of each line that is not a comment is a token. */
static void check_lines(const Tokens *tokens, char *text)
{
        for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
                char *last = NULL;

                line += strspn(line, " \t");
                if (*line == '#')
                        continue;
                for (char *words = line, *word; (word = strsep(&words, " \t\r"));)
                        if (*word)
                                last = word;
                if (last && !tokens_find(tokens, last))
                        abort();
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_(tokens_freep) Tokens *tokens = NULL;
        _cleanup_free_ char *text = malloc(size + 1);
        char error[TOKENS_ERROR_SIZE] = "";

        if (!text)
                abort();
        if (size > 0)
                memcpy(text, data, size);
        text[size] = '\0';
        int r = tokens_parse(text, size, &tokens, error);
        if (r < 0) {
                if (r != -EINVAL || tokens || strnlen(error, sizeof error) == 0 ||
                    strnlen(error, sizeof error) == sizeof error)
                        abort();
                return 0;
        }
        if (tokens_find(tokens, "") || tokens_find(tokens, "no token of any file, and long enough for one"))
                abort();
        check_lines(tokens, text);
        return 0;
}
