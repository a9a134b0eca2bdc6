/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the API's description that no table of the program holds. Private to src/http. */
#pragma once

/* schemas.json: a JSON object of the documents' schemas, by name. */
extern const char openapi_schemas[];
