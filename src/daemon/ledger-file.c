/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger of the daemon: read at the start, written by a child. */

#include "ledger-file.h"

#include "tierprobe/background.h"
#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/file.h"
#include "tierprobe/json.h"
#include "tierprobe/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME "ledger.json"
#define MAX_BYTES (UINT64_C(16) << 20)
#define MAX_DISKS 256                 /* of one device */
#define COUNT_EVERY_NS (5 * NS_PER_S) /* what a run has written is written down */
#define RETRY_NS (10 * NS_PER_S)
#define LAST_WAIT_MS 1000

struct LedgerFile {
        sd_event *event;
        int dir_fd; /* of its own: a child that hangs must not hold the lock on the daemon's */
        Ledger *ledger;
        LedgerState state;
        bool changed; /* since it was last written */
        bool failed;  /* said once, until it works again */
        uint64_t written_ns, tried_ns;
        Background *child; /* NULL: none is at work */
        sd_event_source *source;
};

static int64_t now_real_ns(void)
{
        return (int64_t) clock_ns(CLOCK_REALTIME);
}

/* ---- reading ---- */

static int read_ledger(int dir_fd, Ledger **ret)
{
        _cleanup_free_ char *text = NULL;
        size_t size = 0;

        int r = read_file_at(dir_fd, NAME, MAX_BYTES, &text, &size);
        return r < 0 ? r : json_read_ledger(text, size, ret);
}

/* Takes in what the file says, in addition to what is known already. */
static int load(LedgerFile *file)
{
        _cleanup_(ledger_freep) Ledger *ledger = NULL;

        int r = read_ledger(file->dir_fd, &ledger);
        if (r == -ENOMEM)
                return r;
        if (r == -EBADMSG) {
                log_warning("the ledger of bytes written is damaged and is set aside");
                r = set_aside_at(file->dir_fd, NAME);
                file->state = LEDGER_DAMAGED;
                return r;
        }
        if (r < 0 && r != -ENOENT) {
                if (file->state != LEDGER_UNREADABLE)
                        log_error("the ledger of bytes written cannot be read now: %s; it is tried again",
                                  strerror(-r));
                file->state = LEDGER_UNREADABLE;
                return 0;
        }
        if (r == -ENOENT) {
                file->state = LEDGER_MISSING;
                return 0;
        }
        if (file->state == LEDGER_UNREADABLE)
                log_info("the ledger of bytes written can be read again");
        file->state = LEDGER_READ;
        ledger_tidy(ledger, now_real_ns());
        file->changed = ledger->n_runs > 0;
        ledger_settle_lost(ledger, now_real_ns());
        return ledger_merge(file->ledger, ledger, now_real_ns());
}

/* ---- writing ---- */

static void say_result(LedgerFile *file, int r)
{
        if (r < 0 && !file->failed)
                log_error("the ledger of bytes written cannot be kept: %s; it is tried again", strerror(-r));
        if (r >= 0 && file->failed)
                log_info("the ledger of bytes written is kept again");
        file->failed = r < 0;
        if (r < 0)
                file->changed = true;
}

typedef struct Text {
        const char *data;
        size_t size;
} Text;

static int write_text(int dir_fd, void *userdata)
{
        const Text *text = userdata;

        return write_file_synced_at(dir_fd, NAME, text->data, text->size, 0640);
}

static void save(LedgerFile *file);

static int on_child(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        LedgerFile *file = userdata;

        (void) source;
        (void) fd;
        (void) revents;
        int r = background_result(file->child);
        if (r == -EAGAIN)
                return 0;
        file->source = sd_event_source_disable_unref(file->source);
        file->child = background_free(file->child);
        say_result(file, r);
        if (file->changed && !file->failed)
                save(file);
        return 0;
}

static int start_child(LedgerFile *file, const char *text, size_t size)
{
        Text copy = { .data = text, .size = size };

        int r = background_new(&file->child, "tierprobe-save", file->dir_fd, write_text, &copy);
        if (r < 0)
                return r;
        /* Without news of its end it is asked for now and then, see ledger_file_work(). */
        (void) sd_event_add_io(file->event, &file->source, background_get_fd(file->child), EPOLLIN, on_child,
                               file);
        return 0;
}

static char *print_ledger(const LedgerFile *file, size_t *ret_size)
{
        json_auto_t *document = json_ledger(file->ledger);

        return document ? json_document(document, ret_size) : NULL;
}

/* Has a child write the ledger; when one is at work, that is done after it. */
static void save(LedgerFile *file)
{
        size_t size = 0;

        file->changed = true;
        if (file->child)
                return;
        if (file->state == LEDGER_UNREADABLE)
                (void) load(file); /* never over one that is only not readable now */
        if (file->state == LEDGER_UNREADABLE)
                return;
        file->tried_ns = clock_ns(CLOCK_MONOTONIC);
        ledger_tidy(file->ledger, now_real_ns());
        _cleanup_free_ char *text = print_ledger(file, &size);
        file->changed = false;
        int r = text ? start_child(file, text, size) : -ENOMEM;
        if (r < 0)
                say_result(file, r);
        file->written_ns = file->tried_ns;
}

void ledger_file_work(LedgerFile *file)
{
        if (file->child && !file->source)
                (void) on_child(NULL, -1, 0, file);
        if (file->changed && clock_ns(CLOCK_MONOTONIC) - file->tried_ns >= RETRY_NS)
                save(file);
}

/* ---- runs ---- */

static size_t disks_of(const Device *device, DiskKey **ret)
{
        DiskKey *keys = device ? calloc(MAX_DISKS, sizeof *keys) : NULL;
        size_t n = keys ? device_disks(device, keys, MAX_DISKS) : 0;

        *ret = keys;
        return n;
}

void ledger_file_add(LedgerFile *file, const DiskKey *disks, size_t n_disks, uint64_t bytes, bool rests,
                     int64_t end_real_ns)
{
        int r = ledger_add(file->ledger, disks, n_disks, bytes, rests, end_real_ns, now_real_ns());

        if (r < 0)
                log_error("a past run cannot be entered in the ledger of bytes written: %s", strerror(-r));
        file->changed = true;
}

void ledger_file_reserve(LedgerFile *file, const char *run_id, const Device *device, uint64_t bytes)
{
        _cleanup_free_ DiskKey *disks = NULL;
        size_t n = disks_of(device, &disks);

        int r = ledger_reserve(file->ledger, run_id, (const DiskKey *) disks, n, bytes, now_real_ns());
        if (r < 0)
                log_error("run %s is not entered in the ledger of bytes written: %s", run_id, strerror(-r));
        save(file);
}

void ledger_file_set_device(LedgerFile *file, const char *run_id, const Device *device)
{
        _cleanup_free_ DiskKey *disks = NULL;
        size_t n = disks_of(device, &disks);

        int r = ledger_set_disks(file->ledger, run_id, (const DiskKey *) disks, n);
        if (r < 0)
                log_error("the disks of run %s are not entered in the ledger of bytes written: %s", run_id,
                          strerror(-r));
        save(file);
}

void ledger_file_count(LedgerFile *file, const char *run_id, uint64_t written_bytes)
{
        ledger_count(file->ledger, run_id, written_bytes, now_real_ns());
        file->changed = true;
        if (clock_ns(CLOCK_MONOTONIC) - file->written_ns >= COUNT_EVERY_NS)
                save(file);
}

void ledger_file_settle(LedgerFile *file, const char *run_id, uint64_t written_bytes, bool rests)
{
        ledger_settle(file->ledger, run_id, written_bytes, rests, now_real_ns());
        save(file);
}

LedgerFacts ledger_file_facts(LedgerFile *file, const Device *device, uint64_t room_bytes,
                              uint64_t limit_bytes)
{
        _cleanup_free_ DiskKey *disks = NULL;
        size_t n = disks_of(device, &disks);
        const DiskKey *keys = (const DiskKey *) disks;
        int64_t now_ns = now_real_ns();

        ledger_tidy(file->ledger, now_ns);
        return (LedgerFacts){
                .last_day_bytes = ledger_last_day(file->ledger, keys, n, now_ns),
                .lifetime_bytes = n > 0 ? ledger_lifetime(file->ledger, keys[0]) : 0,
                .last_end_real_ns = ledger_last_end(file->ledger, keys, n, now_ns),
                .room_real_ns = room_bytes > limit_bytes ? INT64_MAX
                                                         : ledger_room_at(file->ledger, keys, n,
                                                                          limit_bytes - room_bytes, now_ns),
        };
}

/* ---- life ---- */

int ledger_file_new(LedgerFile **ret, sd_event *event, int state_fd)
{
        _cleanup_(ledger_file_freep) LedgerFile *file = calloc(1, sizeof *file);

        if (!file)
                return -ENOMEM;
        file->dir_fd = openat(state_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (file->dir_fd < 0)
                return -errno;
        int r = ledger_new(&file->ledger);
        if (r >= 0)
                r = load(file);
        if (r < 0)
                return r;
        file->event = sd_event_ref(event);
        *ret = TAKE_PTR(file);
        return 0;
}

/* Waits a moment for the child, so that it does not put an older version over the last one. False: the kernel
 * holds it. */
static bool end_child(LedgerFile *file)
{
        bool ended = true;

        if (!file->child)
                return true;
        file->source = sd_event_source_disable_unref(file->source);
        struct pollfd end = { .fd = background_get_fd(file->child), .events = POLLIN };
        ended = poll(&end, 1, LAST_WAIT_MS) > 0;
        /* A later version is to be written, or whether it came to its end is not known. */
        file->changed = file->changed || background_result(file->child) != 0;
        file->child = background_free(file->child);
        return ended;
}

LedgerFile *ledger_file_free(LedgerFile *file)
{
        size_t size = 0;

        if (!file)
                return NULL;
        if (file->ledger && end_child(file) && file->changed && file->state != LEDGER_UNREADABLE) {
                _cleanup_free_ char *text = print_ledger(file, &size);
                int r = text ? write_file_atomic_at(file->dir_fd, NAME, text, size, 0640) : -ENOMEM;

                if (r < 0)
                        say_result(file, r);
        }
        ledger_free(file->ledger);
        close_fdp(&file->dir_fd);
        sd_event_unref(file->event);
        free(file);
        return NULL;
}

void ledger_file_freep(LedgerFile **file)
{
        (void) ledger_file_free(*file);
}

LedgerState ledger_file_state(const LedgerFile *file)
{
        return file->state;
}
