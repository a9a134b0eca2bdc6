/* SPDX-License-Identifier: Apache-2.0 */
/* A listening socket on an address. Private to src/http. */
#pragma once

#include "tierprobe/address.h"

/* Binds and listens; non-blocking, close-on-exec. ADDRESS gets the real port. A Unix socket without a
 * server is replaced; it is made with mode 0660. Returns the descriptor, or negative errno with a
 * sentence in *RET_ERROR (owned by the caller; NULL when out of memory). */
int address_listen(Address *address, char **ret_error);
