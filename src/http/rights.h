/* SPDX-License-Identifier: Apache-2.0 */
/* Who asks, and who may change something. Private to src/http. */
#pragma once

#include "guard.h"
#include "server.h"

/* On a Unix socket root, the daemon's own user, and those to whom the socket's mode gives its group's right;
 * on loopback everyone; elsewhere who shows a token. A token that is shown where there are any must be right;
 * its name goes to TOKEN (empty: none was needed). 0, or -1 with PROBLEM filled in. */
int rights_check(const Connection *connection, const RequestHead *head, char token[NAME_SIZE],
                 Problem *problem);

/* Writes who asks, for the journal: "127.0.0.1:51234", "uid 1000 pid 4711", "token ci, 10.0.0.7:51234". */
#define WHO_SIZE (PEER_TEXT_SIZE + NAME_SIZE + 16)
void request_who(const Request *request, char buf[WHO_SIZE]);
