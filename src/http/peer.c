/* SPDX-License-Identifier: Apache-2.0 */
/* The other end of a connection. */

#include "peer.h"

#include <stdio.h>

void peer_read(int fd, Peer *ret)
{
        Peer peer = { .address.size = sizeof peer.address.storage, .uid = (uid_t) -1 };
        struct ucred credentials;

        if (getpeername(fd, &peer.address.any, &peer.address.size) < 0)
                peer.address.any.sa_family = AF_UNSPEC;
        if (peer.address.any.sa_family == AF_UNIX &&
            getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &(socklen_t){ sizeof credentials }) == 0) {
                peer.uid = credentials.uid;
                peer.pid = credentials.pid;
        }
        *ret = peer;
}

bool peer_same(const Peer *a, const Peer *b)
{
        if (a->address.any.sa_family == AF_UNIX)
                return b->address.any.sa_family == AF_UNIX && a->uid == b->uid;
        return address_same_host(&a->address, &b->address);
}

void peer_format(const Peer *peer, char buf[PEER_TEXT_SIZE])
{
        if (peer->uid != (uid_t) -1)
                (void) snprintf(buf, PEER_TEXT_SIZE, "uid %ld pid %ld", (long) peer->uid, (long) peer->pid);
        else if (peer->address.any.sa_family == AF_UNIX)
                (void) snprintf(buf, PEER_TEXT_SIZE, "unix socket");
        else
                address_format(&peer->address, buf);
}
