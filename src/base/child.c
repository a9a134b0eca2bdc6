/* SPDX-License-Identifier: Apache-2.0 */
/* A forked child that works for its parent over one socket, and dies with it. */

#include "tierprobe/child.h"

#include "tierprobe/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_SOCKET 3

/* Children belong to the process, and so does the list of those whose owner has been freed. */
static Child *abandoned;

static void reset_signals(void)
{
        struct sigaction action = { .sa_handler = SIG_DFL };
        sigset_t none;

        for (int i = 1; i < NSIG; i++)
                (void) sigaction(i, &action, NULL); /* fails for SIGKILL, SIGSTOP and libc's own */
        /* Both must be an errno, not a death: a vanished parent, and a file that may not grow further. */
        action.sa_handler = SIG_IGN;
        (void) sigaction(SIGPIPE, &action, NULL);
        (void) sigaction(SIGXFSZ, &action, NULL);
        (void) sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);
}

/* A sanitizer's report is all that a child has to say. Without one it lets go of stderr: whoever reads what
 * the parent says waits for the end of that, and a child that the kernel holds would keep it from coming. */
#ifdef __SANITIZE_ADDRESS__
#define FIRST_KEPT STDERR_FILENO
#else
#define FIRST_KEPT CHILD_SOCKET
#endif

/* Keeps SOCKET, which becomes CHILD_SOCKET. */
static int keep_descriptors(int socket)
{
        int safe = fcntl(socket, F_DUPFD_CLOEXEC, CHILD_SOCKET);
        if (safe < 0 || (safe != CHILD_SOCKET && dup3(safe, CHILD_SOCKET, O_CLOEXEC) < 0))
                return -errno;
        if (close_range(CHILD_SOCKET + 1, ~0U, 0) < 0)
                return -errno;

        /* Held, so that a file under test does not become "stdout". */
        int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        for (int fd = 0; fd < FIRST_KEPT; fd++)
                if (null_fd < 0 || (null_fd != fd && dup3(null_fd, fd, O_CLOEXEC) < 0))
                        (void) close(fd);
        if (null_fd > CHILD_SOCKET)
                (void) close(null_fd);
        return 0;
}

static void __attribute__((noreturn))
child_start(const char *name, pid_t parent, int socket, ChildMain child_main, void *userdata)
{
        /* A parent that ended before the first line took effect has been replaced by another by now. */
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
                _exit(EXIT_FAILURE);
        /* A session of its own: Ctrl-C at the parent's terminal is for the parent to act on. */
        (void) setsid();
        (void) prctl(PR_SET_NAME, name);
        reset_signals();
        if (keep_descriptors(socket) < 0 || chdir("/") < 0)
                _exit(EXIT_FAILURE);
        /* Nothing that may hang before the parent holds the pidfd. */
        char begin;
        if (recv(CHILD_SOCKET, &begin, 1, 0) != 1)
                _exit(EXIT_FAILURE);
        child_main(CHILD_SOCKET, userdata);
}

static int fork_child(const char *name, int socket, ChildMain child_main, void *userdata, pid_t *ret)
{
        pid_t parent = getpid();
        sigset_t all, saved;

        /* No handler of the parent may run in the child before it has reset them. */
        (void) sigfillset(&all);
        (void) sigprocmask(SIG_SETMASK, &all, &saved);
        pid_t pid = fork();
        if (pid == 0)
                child_start(name, parent, socket, child_main, userdata);
        int r = pid < 0 ? -errno : 0;
        (void) sigprocmask(SIG_SETMASK, &saved, NULL);
        if (r == 0)
                *ret = pid;
        return r;
}

static int start_child(Child *child, const char *name, ChildMain child_main, void *userdata)
{
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        _cleanup_close_ int ours = pair[0];
        _cleanup_close_ int theirs = pair[1];

        int r = fork_child(name, theirs, child_main, userdata, &child->pid);
        if (r < 0)
                return r;
        child->pidfd = pidfd_open(child->pid, 0);
        if (child->pidfd < 0) {
                /* No descriptors left: the child, still waiting for its start, is killed. */
                r = -errno;
                (void) kill(child->pid, SIGKILL);
                (void) waitpid(child->pid, NULL, 0);
                return r;
        }
        (void) send(ours, "", 1, MSG_NOSIGNAL);
        child->socket = TAKE_FD(ours);
        return 0;
}

int child_spawn(const char *name, ChildMain child_main, void *userdata, Child **ret)
{
        (void) child_reap_abandoned();

        Child *child = calloc(1, sizeof *child);
        if (!child)
                return -ENOMEM;
        child->pidfd = child->socket = -1;
        int r = start_child(child, name, child_main, userdata);
        if (r < 0) {
                (void) child_free(child);
                return r;
        }
        *ret = child;
        return 0;
}

Child *child_free(Child *child)
{
        if (!child)
                return NULL;
        close_fdp(&child->socket);
        close_fdp(&child->pidfd);
        free(child);
        return NULL;
}

void child_kill(Child *child)
{
        (void) pidfd_send_signal(child->pidfd, SIGKILL, NULL, 0);
}

/* One that holds the signal back for a moment, to clear up, ends after that; one that was stopped, too. */
static void child_ask(Child *child)
{
        (void) pidfd_send_signal(child->pidfd, SIGTERM, NULL, 0);
        (void) pidfd_send_signal(child->pidfd, SIGCONT, NULL, 0);
}

bool child_reap(Child *child, siginfo_t *ret)
{
        siginfo_t info = { 0 };
        int r;

        do
                r = waitid((idtype_t) P_PIDFD, (id_t) child->pidfd, &info, WEXITED | WNOHANG);
        while (r < 0 && errno == EINTR);
        if (r < 0) /* ECHILD: reaped by somebody else, or SIGCHLD is ignored */
                info = (siginfo_t){ 0 };
        else if (info.si_pid == 0)
                return false;
        *ret = info;
        return true;
}

Child *child_abandon(Child *child)
{
        if (child) {
                child_ask(child);
                close_fdp(&child->socket);
                child->next_abandoned = abandoned;
                abandoned = child;
        }
        (void) child_reap_abandoned();
        return NULL;
}

size_t child_reap_abandoned(void)
{
        size_t left = 0;

        for (Child **p = &abandoned; *p;) {
                Child *child = *p;
                siginfo_t info;

                if (child_reap(child, &info)) {
                        *p = child->next_abandoned;
                        (void) child_free(child);
                } else {
                        left++;
                        p = &child->next_abandoned;
                }
        }
        return left;
}
