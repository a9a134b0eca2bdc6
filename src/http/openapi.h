/* SPDX-License-Identifier: Apache-2.0 */
/* The API's description. Private to src/http. */
#pragma once

#include "routes.h"

/* schemas.json, the parts that no table of the program holds: an object of the documents' schemas, by name.
 */
extern const char openapi_schemas[];

/* The description of these routes; NULL: out of memory. Owned by the caller. */
json_t *openapi_document(const Route *routes, size_t n);
