/* SPDX-License-Identifier: Apache-2.0 */
/* What the configuration says to the HTTP server. Knows config and http. Private to src/daemon. */
#pragma once

#include "tierprobe/config.h"
#include "tierprobe/http.h"

/* Options that borrow from CONFIG. */
HttpOptions web_options(const Config *config, const Service *service);

/* Reads the files that CONFIG names in [http]. 0 or negative errno with a sentence in RET_ERROR (NULL when
 * out of memory), owned by the caller. */
int web_load_access(const Config *config, HttpAccess **ret, char **ret_error);

/* The same, only to check that they are valid. */
int web_check(const Config *config, char **ret_error);

/* Whether the server could serve as CONFIG says without being started anew: the same addresses, with TLS or
 * without as now. */
bool web_is_same(const Config *before, const Config *config);

/* All that SERVER listens on, in words: "127.0.0.1:7620, unix:/run/x.sock". Returns BUF. */
const char *web_addresses(const HttpServer *server, char *buf, size_t size);
