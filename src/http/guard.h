/* SPDX-License-Identifier: Apache-2.0 */
/* What a request must satisfy before any route sees it. Pure: plain values in, a problem out; tested without
 * a socket. Each function returns 0, or -1 with PROBLEM filled in. Private to src/http. */
#pragma once

#include <stddef.h>

#include "problem.h"
#include "tierprobe/address.h"

#define GUARD_MAX_BODY 4096

/* A header field: its first value (NULL: there is none) and how many there are. */
typedef struct Field {
        const char *value;
        size_t n;
} Field;

/* What is looked at of a request. */
typedef struct RequestHead {
        const char *path;
        Field host, content_length, transfer_encoding, content_type, origin, sec_fetch_site, authorization,
                accept, accept_encoding, if_none_match;
} RequestHead;

/* Who may be named in Host. */
typedef struct HostRules {
        const char *allowed_hosts; /* names, separated by white space or commas; NULL: none */
        const Address *listen;     /* every address listened on */
        size_t n_listen;
} HostRules;

/* Message framing that two parsers could read in two ways: the door to request smuggling. */
int guard_framing(const RequestHead *head, Problem *problem);

/* On TCP, the defence against DNS rebinding. LOCAL is this end of the connection. */
int guard_host(const RequestHead *head, const HostRules *rules, const Address *local, Problem *problem);

/* The path: origin-form, and nothing encoded in it (no route of ours needs that). */
int guard_path(const RequestHead *head, Problem *problem);

/* For requests that change something: not from a page of another site. */
int guard_origin(const RequestHead *head, Problem *problem);

/* The body's declared length and type. TAKES_BODY: the route has a use for one. */
int guard_body(const RequestHead *head, bool takes_body, Problem *problem);

/* Splits "name", "name:port" or "[v6]:port" and writes the name without port and brackets, lower case and
 * without a trailing dot. 0, or -EINVAL when TEXT is no host. */
int host_parse(const char *text, char *name, size_t size);
