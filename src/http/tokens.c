/* SPDX-License-Identifier: Apache-2.0 */
/* Bearer tokens. */

#include "tokens.h"

#include "tierprobe/profile.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Token {
        char name[NAME_SIZE];
        char text[TOKEN_SIZE_MAX + 1]; /* filled up with NUL, so that all are compared over the same length */
} Token;

struct Tokens {
        size_t n;
        Token items[TOKENS_MAX];
};

typedef struct Line {
        unsigned number;
        const char *text;
        size_t size;
        char *error;
} Line;

static int line_fault(const Line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int line_fault(const Line *line, const char *format, ...)
{
        int at = snprintf(line->error, TOKENS_ERROR_SIZE, "line %u: ", line->number);
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(line->error + at, TOKENS_ERROR_SIZE - (size_t) at, format, ap);
        va_end(ap);
        return -EINVAL;
}

static bool is_blank(char c)
{
        return c == ' ' || c == '\t' || c == '\r';
}

/* The next word of LINE, which is left behind it. Empty: there is none. */
static size_t take_word(Line *line, const char **ret)
{
        size_t size = 0;

        while (line->size > 0 && is_blank(*line->text)) {
                line->text++;
                line->size--;
        }
        while (size < line->size && !is_blank(line->text[size]))
                size++;
        *ret = line->text;
        line->text += size;
        line->size -= size;
        return size;
}

/* b64token of RFC 6750, 2.1. */
static bool is_token(const char *text, size_t size)
{
        static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/=";

        for (size_t i = 0; i < size; i++)
                if (text[i] == '\0' || !strchr(letters, text[i]))
                        return false;
        return true;
}

static int add(Tokens *tokens, Line *line)
{
        const char *name = NULL, *text = NULL, *more = NULL;
        size_t name_size = take_word(line, &name), size = take_word(line, &text);
        Token *token = &tokens->items[tokens->n];
        char number[NAME_SIZE];

        if (name_size == 0 || *name == '#')
                return 0;
        if (size == 0) {
                text = name;
                size = name_size;
                name_size = (size_t) snprintf(number, sizeof number, "line-%u", line->number);
                name = number;
        }
        if (tokens->n == TOKENS_MAX)
                return line_fault(line, "there are more than %d tokens", TOKENS_MAX);
        if (take_word(line, &more) > 0)
                return line_fault(line, "there is something behind the token; write NAME TOKEN");
        *token = (Token){ .name = "" };
        if (name_size < sizeof token->name)
                memcpy(token->name, name, name_size);
        if (strlen(token->name) != name_size || !name_is_valid(token->name))
                return line_fault(line, "the name may have up to %zu letters, digits, \"_\", \".\" and \"-\"",
                                  sizeof token->name - 1);
        if (size < TOKEN_SIZE_MIN || size > TOKEN_SIZE_MAX || !is_token(text, size))
                return line_fault(line,
                                  "a token has %d to %d letters, digits and -._~+/=; \"openssl rand -hex "
                                  "32\" makes one",
                                  TOKEN_SIZE_MIN, TOKEN_SIZE_MAX);
        memcpy(token->text, text, size);
        for (size_t i = 0; i < tokens->n; i++)
                if (strcmp(tokens->items[i].name, token->name) == 0 ||
                    strcmp(tokens->items[i].text, token->text) == 0)
                        return line_fault(line, "the name or the token stands there twice");
        tokens->n++;
        return 0;
}

int tokens_parse(const char *text, size_t size, Tokens **ret, char error[TOKENS_ERROR_SIZE])
{
        Tokens *tokens = calloc(1, sizeof *tokens);
        int r = 0;

        if (!tokens)
                return -ENOMEM;
        for (unsigned number = 1; size > 0 && r == 0; number++) {
                const char *end = memchr(text, '\n', size);
                size_t length = end ? (size_t) (end - text) : size;

                r = add(tokens, &(Line){ .number = number, .text = text, .size = length, .error = error });
                length += end != NULL;
                text += length;
                size -= length;
        }
        if (r == 0 && tokens->n == 0) {
                (void) snprintf(error, TOKENS_ERROR_SIZE,
                                "there is no token in it; write NAME TOKEN, one a line");
                r = -EINVAL;
        }
        if (r < 0) {
                tokens_free(tokens);
                return r;
        }
        *ret = tokens;
        return 0;
}

Tokens *tokens_free(Tokens *tokens)
{
        if (tokens)
                explicit_bzero(tokens, sizeof *tokens);
        free(tokens);
        return NULL;
}

void tokens_freep(Tokens **tokens)
{
        tokens_free(*tokens);
}

const char *tokens_find(const Tokens *tokens, const char *text)
{
        char padded[TOKEN_SIZE_MAX + 1] = "";
        const char *name = NULL;
        size_t size = strlen(text);

        if (!tokens || size > TOKEN_SIZE_MAX)
                return NULL;
        memcpy(padded, text, size);
        for (size_t i = 0; i < tokens->n; i++)
                if (gnutls_memcmp(tokens->items[i].text, padded, sizeof padded) == 0)
                        name = tokens->items[i].name;
        explicit_bzero(padded, sizeof padded);
        return name;
}
