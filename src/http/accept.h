/* SPDX-License-Identifier: Apache-2.0 */
/* What a client takes: the fields Accept and Accept-Encoding (RFC 9110, 12.5). Pure. Private to src/http. */
#pragma once

#include <stdbool.h>

/* The quality of TYPE ("text/csv") in ACCEPT (NULL: no such field, anything will do), by its most specific
 * range; 0 when it has none. */
double accept_quality(const char *accept, const char *type);

/* Whether ENCODINGS (NULL: no such field) has gzip, with a quality above 0. */
bool accept_gzip(const char *encodings);

/* Whether LIST, an If-None-Match (NULL: no such field), has ETAG: the client's own copy will do. */
bool accept_etag(const char *list, const char *etag);
