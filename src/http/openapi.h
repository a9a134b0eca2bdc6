/* SPDX-License-Identifier: Apache-2.0 */
/* The API's description. Private to src/http. */
#pragma once

#include "routes.h"

/* schemas.json, the parts that no table of the program holds: an object of the documents' schemas, by name.
 */
extern const char openapi_schemas[];

/* Answers with the description of these routes. */
enum MHD_Result reply_openapi(Request *request, const Route *routes, size_t n);
