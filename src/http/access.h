/* SPDX-License-Identifier: Apache-2.0 */
/* What can be renewed while serving. Counted: a connection keeps what it began with. Private to src/http. */
#pragma once

#include "certificate.h"
#include "tierprobe/http.h"
#include "tokens.h"

struct HttpAccess {
        unsigned n_refs;
        char *allowed_hosts;      /* NULL: none */
        Tokens *tokens;           /* NULL: none */
        Certificate *certificate; /* NULL: no TLS */
};

HttpAccess *http_access_ref(HttpAccess *access);
