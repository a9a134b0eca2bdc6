/* SPDX-License-Identifier: Apache-2.0 */
/* A forked child that works for its parent over one socket, and dies with it. Knows libc. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct Child Child;

struct Child {
        pid_t pid;
        int pidfd;  /* readable once it has ended */
        int socket; /* the parent's end, SOCK_SEQPACKET */
        Child *next_abandoned;
};

/* What a child does: talks over SOCKET and ends with _exit(), never returns. */
typedef void (*ChildMain)(int socket, void *userdata) __attribute__((noreturn));

/* Forks a child named NAME (at most 15 characters) that has no descriptors but the socket and stderr, default
 * signal handlers, its own session, "/" as directory, and is killed when its parent ends. It sees the
 * parent's memory as it was. Returns 0 or negative errno. */
int child_spawn(const char *name, ChildMain child_main, void *userdata, Child **ret);

/* Sends SIGKILL; nothing when it has ended already. */
void child_kill(Child *child);

/* Reaps without blocking: true when it has ended, with what waitid() says in RET (si_pid 0 when somebody
 * else has reaped it). */
bool child_reap(Child *child, siginfo_t *ret);

/* Frees a child that child_reap() said has ended. */
Child *child_free(Child *child);

/* Ends by SIGTERM, which a child may hold back for a moment to clear up, and forgets. What cannot be reaped
 * now, since the kernel holds it, is kept in a list of the process and tried again whenever a child is made
 * or abandoned. Takes NULL, returns NULL. */
Child *child_abandon(Child *child);

/* Reaps what can be reaped of the abandoned ones; returns how many are left. */
size_t child_reap_abandoned(void);
