/* SPDX-License-Identifier: Apache-2.0 */
/* One piece of work on a file, done by a child. */

#include "tierprobe/background.h"

#include "tierprobe/child.h"
#include "tierprobe/cleanup.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct Background {
        Child *child;
        int result;
};

typedef struct Job {
        BackgroundWork work;
        void *userdata;
} Job;

/* A child keeps no descriptor of its parent's but its socket: what it is to work on comes over that. */
typedef union Control {
        struct cmsghdr align;
        char data[CMSG_SPACE(sizeof(int))];
} Control;

static int send_fd(int socket, int fd)
{
        Control control = { 0 };
        char byte = 0;
        struct msghdr message = { .msg_iov = &(struct iovec){ .iov_base = &byte, .iov_len = 1 },
                                  .msg_iovlen = 1,
                                  .msg_control = control.data,
                                  .msg_controllen = sizeof control.data };
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);

        *header = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
                                    .cmsg_type = SCM_RIGHTS,
                                    .cmsg_len = CMSG_LEN(sizeof fd) };
        memcpy(CMSG_DATA(header), &fd, sizeof fd);
        return sendmsg(socket, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int receive_fd(int socket)
{
        Control control = { 0 };
        char byte = 0;
        struct msghdr message = { .msg_iov = &(struct iovec){ .iov_base = &byte, .iov_len = 1 },
                                  .msg_iovlen = 1,
                                  .msg_control = control.data,
                                  .msg_controllen = sizeof control.data };
        int fd = -1;

        if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1)
                return -EIO;
        const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        if (!header || header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(sizeof fd))
                return -EIO;
        memcpy(&fd, CMSG_DATA(header), sizeof fd);
        return fd;
}

static void __attribute__((noreturn)) background_main(int socket, void *userdata)
{
        const Job *job = userdata;
        int fd = receive_fd(socket);
        int r = fd < 0 ? fd : job->work(fd, job->userdata);

        _exit(r >= 0 ? 0 : -r <= UINT8_MAX ? -r : EIO);
}

int background_new(Background **ret, const char *name, int fd, BackgroundWork work, void *userdata)
{
        Job job = { .work = work, .userdata = userdata };

        Background *background = calloc(1, sizeof *background);
        if (!background)
                return -ENOMEM;
        background->result = -EAGAIN;
        int r = child_spawn(name, background_main, &job, &background->child);
        if (r >= 0)
                r = send_fd(background->child->socket, fd);
        if (r < 0) {
                (void) background_free(background);
                return r;
        }
        *ret = background;
        return 0;
}

int background_get_fd(const Background *background)
{
        return background->child->pidfd;
}

int background_result(Background *background)
{
        siginfo_t info;

        if (background->result == -EAGAIN && child_reap(background->child, &info))
                background->result = info.si_pid != 0 && info.si_code == CLD_EXITED ? -info.si_status : -EIO;
        return background->result;
}

Background *background_free(Background *background)
{
        if (!background)
                return NULL;
        if (background->child && background_result(background) == -EAGAIN)
                (void) child_abandon(background->child);
        else
                (void) child_free(background->child);
        free(background);
        return NULL;
}
