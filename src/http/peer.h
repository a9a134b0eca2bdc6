/* SPDX-License-Identifier: Apache-2.0 */
/* The other end of a connection, as the kernel knows it. Private to src/http. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "tierprobe/address.h"

typedef struct Peer {
        Address address; /* family AF_UNSPEC: not known, the connection is gone already */
        uid_t uid;       /* of a Unix socket's client; (uid_t) -1 elsewhere */
        pid_t pid;
} Peer;

void peer_read(int fd, Peer *ret);

/* Whether both come from the same place: one host, or one user of a Unix socket. */
bool peer_same(const Peer *a, const Peer *b);

/* For the journal: "127.0.0.1:51234", "uid 1000 pid 4711". */
#define PEER_TEXT_SIZE 128
void peer_format(const Peer *peer, char buf[PEER_TEXT_SIZE]);
