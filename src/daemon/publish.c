/* SPDX-License-Identifier: Apache-2.0 */
/* The verdicts in a file for others. Touches that file alone, through a child. */

#include "publish.h"

#include "tierprobe/background.h"
#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/file.h"
#include "tierprobe/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RETRY_NS (10 * NS_PER_S)

typedef struct Page {
        char file[PATH_MAX];
        char text[CONFIG_MAX_TARGETS * (NAME_SIZE + 32)];
} Page;

struct Publish {
        Page wanted, at_work, written; /* empty file: nothing */
        Background *child;             /* NULL: none is at work */
        uint64_t failed_ns;            /* MONOTONIC; 0: the last try did not fail */
};

int publish_new(Publish **ret)
{
        *ret = calloc(1, sizeof **ret);
        return *ret ? 0 : -ENOMEM;
}

Publish *publish_free(Publish *publish)
{
        if (publish)
                (void) background_free(publish->child);
        free(publish);
        return NULL;
}

void publish_freep(Publish **publish)
{
        publish_free(*publish);
}

/* In the child. What is being made stands beside it as NAME.new for an instant, with the same content. */
static int write_page(int fd, void *userdata)
{
        const Page *page = userdata;
        const char *name = strrchr(page->file, '/') + 1;
        char folder[PATH_MAX];

        (void) fd;
        (void) snprintf(folder, sizeof folder, "%.*s", (int) (name - page->file), page->file);
        _cleanup_close_ int folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (folder_fd < 0)
                return -errno;
        return write_file_synced_at(folder_fd, name, page->text, strlen(page->text), 0644);
}

static bool is_same(const Page *a, const Page *b)
{
        return strcmp(a->file, b->file) == 0 && strcmp(a->text, b->text) == 0;
}

static void reap(Publish *publish)
{
        int r = publish->child ? background_result(publish->child) : -EAGAIN;

        if (r == -EAGAIN)
                return;
        publish->child = background_free(publish->child);
        if (r < 0 && publish->failed_ns == 0)
                log_error("%s: the verdicts cannot be published: %s; it is tried again. Give the daemon's "
                          "user a "
                          "folder that it may write to, or correct feature_file in [publish].",
                          publish->at_work.file, strerror(-r));
        if (r >= 0 && publish->failed_ns > 0)
                log_info("%s: the verdicts are published again", publish->at_work.file);
        publish->failed_ns = r < 0 ? clock_ns(CLOCK_MONOTONIC) : 0;
        if (r >= 0)
                publish->written = publish->at_work;
}

static void set_wanted(Publish *publish, const char *file, const TargetConfig *const *targets,
                       const Verdict *verdicts, size_t n)
{
        Page *page = &publish->wanted;
        size_t at = 0;

        page->file[0] = page->text[0] = '\0';
        if (!file)
                return;
        (void) snprintf(page->file, sizeof page->file, "%s", file);
        for (size_t i = 0; i < n; i++)
                at += (size_t) snprintf(page->text + at, sizeof page->text - at, "tierprobe-%s=%s\n",
                                        targets[i]->name, verdict_to_string(verdicts[i]));
}

void publish_verdicts(Publish *publish, const char *file, const TargetConfig *const *targets,
                      const Verdict *verdicts, size_t n, int fd)
{
        reap(publish);
        if (!file) /* what is there is forgotten: it is written anew when the key comes back */
                publish->written.file[0] = '\0';
        set_wanted(publish, file, targets, verdicts, n);
        if (publish->child || !*publish->wanted.file || is_same(&publish->wanted, &publish->written) ||
            (publish->failed_ns > 0 && clock_ns(CLOCK_MONOTONIC) - publish->failed_ns < RETRY_NS))
                return;
        publish->at_work = publish->wanted;
        if (background_new(&publish->child, "tierprobe-save", fd, write_page, &publish->at_work) < 0)
                publish->failed_ns = clock_ns(CLOCK_MONOTONIC);
}
