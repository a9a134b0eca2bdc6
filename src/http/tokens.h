/* SPDX-License-Identifier: Apache-2.0 */
/* Bearer tokens (RFC 6750) and their names. Pure. Private to src/http.
 *
 * A token file has one token a line, with its name before it, "NAME TOKEN", or without: then it is called
 * "line-N". Empty lines and lines that begin with "#" are nothing. */
#pragma once

#include <stddef.h>

#define TOKENS_MAX 100
#define TOKEN_SIZE_MIN 32 /* "openssl rand -hex 16" */
#define TOKEN_SIZE_MAX 255
#define TOKENS_ERROR_SIZE 256

typedef struct Tokens Tokens;

/* Reads TEXT of SIZE bytes. 0; -ENOMEM; -EINVAL with "line N: what is wrong; what would be right" in ERROR,
 * which never shows a part of a token. */
int tokens_parse(const char *text, size_t size, Tokens **ret, char error[TOKENS_ERROR_SIZE]);
Tokens *tokens_free(Tokens *tokens);
void tokens_freep(Tokens **tokens);

/* The name of the token that equals TEXT, NULL: none does. How long it takes depends on the number of tokens
 * alone. TOKENS may be NULL. */
const char *tokens_find(const Tokens *tokens, const char *text);
