/* SPDX-License-Identifier: Apache-2.0 */
/* A long answer, compressed while it is made. The only file that knows zlib. */

#include "gzip.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Of the text at a time: some 0.3 ms. Its figures are new in each line: a higher level takes several times as
 * long for a tenth less. */
#define SLICE_SIZE 32768
#define LEVEL 1
#define GZIP_WINDOW_BITS (15 + 16) /* with gzip's header */

typedef struct Gzip {
        StreamSource source;
        z_stream z;
        Text text; /* what the source has made, compressed up to here */
        size_t done;
        bool ended; /* the source has */
} Gzip;

static void gzip_free(void *userdata)
{
        Gzip *gzip = userdata;

        gzip->source.free(gzip->source.userdata);
        (void) deflateEnd(&gzip->z);
        free(gzip->text.data);
        free(gzip);
}

/* Adds what SIZE bytes from DATA on make; FLUSH as deflate() has it. */
static bool compress_slice(Gzip *gzip, const char *data, size_t size, int flush, Text *out)
{
        char buf[16384];
        int r = Z_OK;

        gzip->z.next_in = (Bytef *) data;
        gzip->z.avail_in = (uInt) size;
        do {
                gzip->z.next_out = (Bytef *) buf;
                gzip->z.avail_out = sizeof buf;
                r = deflate(&gzip->z, flush);
                if (r == Z_STREAM_ERROR)
                        return false;
                text_add(out, buf, sizeof buf - gzip->z.avail_out);
        } while (gzip->z.avail_out == 0);
        return true;
}

static StreamStep gzip_next(void *userdata, Text *out)
{
        Gzip *gzip = userdata;

        if (gzip->done == gzip->text.size && !gzip->ended) {
                gzip->text.size = gzip->done = 0;
                StreamStep step = gzip->source.next(gzip->source.userdata, &gzip->text);

                gzip->ended = step == STREAM_END;
                if (gzip->text.failed || (step != STREAM_END && step != STREAM_MORE))
                        return STREAM_FAILED;
                return STREAM_MORE;
        }
        size_t size = gzip->text.size - gzip->done;
        bool last = gzip->ended && size <= SLICE_SIZE;
        if (size > SLICE_SIZE)
                size = SLICE_SIZE;
        if (!compress_slice(gzip, gzip->text.data + gzip->done, size, last ? Z_FINISH : Z_NO_FLUSH, out))
                return STREAM_FAILED;
        gzip->done += size;
        return last ? STREAM_END : STREAM_MORE;
}

int gzip_source(StreamSource *source)
{
        Gzip *gzip = calloc(1, sizeof *gzip);

        if (!gzip || deflateInit2(&gzip->z, LEVEL, Z_DEFLATED, GZIP_WINDOW_BITS, MAX_MEM_LEVEL,
                                  Z_DEFAULT_STRATEGY) != Z_OK) {
                free(gzip);
                return -1;
        }
        gzip->source = *source;
        *source = (StreamSource){ .userdata = gzip, .next = gzip_next, .free = gzip_free };
        return 0;
}
