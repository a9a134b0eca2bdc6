/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a request as libmicrohttpd hands it out, checked against the grammar of RFC 9112: what two
 * parsers could read in two ways is refused. Private to src/http. */
#pragma once

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

#include "guard.h"

/* Where the request line lies in the library's buffer: noted before the library takes it apart. */
typedef struct RequestLine {
        const char *method, *target, *version;
        size_t target_size;
        bool target_valid; /* without blanks and control characters */
} RequestLine;

void request_line_set_target(RequestLine *line, const char *target);

/* Whether the library is of the kind that passes over malformed heads; a stricter one is told to be strict.
 */
bool library_is_lenient(void);

/* Reads the fields of MHD's request into HEAD (but for its path). 0, or -1 with PROBLEM filled in: a name
 * that is no token, a control character, bytes that the library has passed over. */
int head_read(struct MHD_Connection *mhd, const RequestLine *line, RequestHead *head, Problem *problem);

/* Whether a field is one by RFC 9110, 5: a token, and a value without control characters. */
bool field_is_valid(const char *name, size_t name_size, const char *value, size_t value_size);
