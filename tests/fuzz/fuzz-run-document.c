/* SPDX-License-Identifier: Apache-2.0 */
/* Reads any bytes as the document of a past run, and closes it as one that was cut off. What is taken must be
 * JSON by the library's measure too, but for what the library cannot hold. Seeds: tests/data/state. */

#include "tierprobe/cleanup.h"
#include "tierprobe/past-run.h"

#include <errno.h>
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The id is the one that the document has, so that the fuzzer need not guess it. */
static void find_id(const char *text, size_t size, char id[RUN_ID_SIZE])
{
        const char *at = memmem(text, size, "\"id\":\"", 6);
        size_t length = 0;

        (void) strcpy(id, "a");
        if (!at)
                return;
        at += 6;
        while (at + length < text + size && length < RUN_ID_SIZE - 1 && at[length] != '"')
                length++;
        char found[RUN_ID_SIZE] = "";
        memcpy(found, at, length);
        if (run_id_is_valid(found))
                memcpy(id, found, sizeof found);
}

static void check_run(const PastRun *run)
{
        DiskKey keys[4];

        if (!run->text || strlen(run->text) > run->size || run->verdict >= _VERDICT_MAX)
                abort();
        if (past_run_ended(run) == (run->verdict == VERDICT_NEVER_RUN))
                abort();
        if (past_run_disks(run, keys, 4) > 4)
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_(past_run_freep) PastRun *run = NULL, *again = NULL, *ended = NULL;
        _cleanup_free_ char *closed = NULL;
        char id[RUN_ID_SIZE], error[128] = "";
        size_t closed_size = 0;

        find_id((const char *) data, size, id);
        int r = past_run_read(&run, (const char *) data, size, id, error, sizeof error);
        if (r < 0) {
                if (r != -EBADMSG || !*error || run)
                        abort();
                return 0;
        }
        check_run(run);
        /* The RUN is a document of its own that reads to the same. */
        if (past_run_read(&again, run->text, run->size, id, error, sizeof error) < 0 ||
            again->size != run->size || memcmp(again->text, run->text, run->size) != 0)
                abort();
        if (past_run_close((const char *) data, size, "It was cut off.", &closed, &closed_size) < 0)
                return 0;
        if (past_run_read(&ended, closed, closed_size, id, error, sizeof error) < 0) {
                /* A repeated member is one in a tree: the last, which may have another id. */
                return 0;
        }
        check_run(ended);
        if (ended->state != RUN_ABORTED || ended->verdict != VERDICT_INCONCLUSIVE)
                abort();
        return 0;
}
