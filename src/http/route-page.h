/* SPDX-License-Identifier: Apache-2.0 */
/* What a browser gets where a JSON client gets a document. Private to src/http. */
#pragma once

#include <jansson.h>

#include "server.h"

/* Whether the client prefers HTML to JSON: its Accept names text/html with a quality above that of JSON. */
bool route_page_is_wanted(Request *request);

/* The page of the daemon. */
enum MHD_Result reply_page(Request *request);

/* The page of a run; DOCUMENT's reference is taken; NULL: out of memory. */
enum MHD_Result reply_page_of_run(Request *request, unsigned status, json_t *document);

enum MHD_Result handle_page_file(Request *request);
