/* SPDX-License-Identifier: Apache-2.0 */
/* Long answers. All streams of a listener together get a few milliseconds of a turn of the event loop;
 * a stream that got none in one turn comes first in the next. */

#include "stream.h"
#include "wait.h"

#include "tierprobe/clock.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_SIZE 16384
#define WAIT_NS (15 * NS_PER_S)
#define SHARE_NS (2 * NS_PER_MS)

typedef struct Stream {
        Request *request; /* no longer than the library asks for more */
        Connection *connection;
        StreamSource source;
        Text text; /* made, and sent up to here */
        size_t sent;
        bool waits;
        uint64_t passed_over; /* the last turn in which it got nothing */
        bool ended, failed;
} Stream;

static void stream_free(void *userdata)
{
        Stream *stream = userdata;

        stream->source.free(stream->source.userdata);
        free(stream->text.data);
        free(stream);
}

/* Whether the stream may work in this turn. */
static bool may_work(Stream *stream)
{
        Turn *turn = &stream->connection->listener->turn;

        if (clock_ns(CLOCK_MONOTONIC) - turn->begin_ns < SHARE_NS &&
            (turn->n_passed_over_before == 0 || stream->passed_over + 1 == turn->number))
                return true;
        stream->passed_over = turn->number;
        turn->n_passed_over++;
        return false;
}

/* Makes pieces until there is a block of SIZE bytes, or the turn's share is used up. */
static void make_block(Stream *stream, size_t size)
{
        stream->text.size = stream->sent = 0;
        while (stream->text.size < size && !stream->ended && may_work(stream)) {
                StreamStep step = stream->source.next(stream->source.userdata, &stream->text);

                stream->waits = step == STREAM_WAIT;
                stream->ended = step == STREAM_END;
                stream->failed = step == STREAM_FAILED || stream->text.failed;
                if (stream->failed || stream->waits)
                        return;
        }
}

/* Where it cannot rest, the server ends or many wait: better no stream than one that spins. */
static ssize_t rest(Stream *stream)
{
        stream->waits = false;
        if (stream->source.over(stream->source.userdata)) /* it has happened meanwhile */
                return 0;
        return wait_begin(stream->request, WAIT_NS, stream->source.over, stream->source.userdata)
                       ? 0
                       : MHD_CONTENT_READER_END_WITH_ERROR;
}

static ssize_t stream_read(void *userdata, uint64_t position, char *buf, size_t max)
{
        Stream *stream = userdata;

        (void) position;
        connection_touch(stream->connection);
        if (stream->sent == stream->text.size && !stream->ended && !stream->failed) {
                if (stream->waits) /* what was made is sent */
                        return rest(stream);
                make_block(stream, max);
        }
        if (stream->failed)
                return MHD_CONTENT_READER_END_WITH_ERROR;
        size_t size = stream->text.size - stream->sent;
        if (size == 0 && stream->waits)
                return rest(stream);
        if (size == 0 && stream->ended)
                return MHD_CONTENT_READER_END_OF_STREAM;
        if (size > max)
                size = max;
        if (size > 0)
                memcpy(buf, stream->text.data + stream->sent, size);
        stream->sent += size;
        return (ssize_t) size; /* 0: the library asks again in its next turn */
}

enum MHD_Result reply_stream(Request *request, const char *type, const ReplyHeader *headers,
                             const StreamSource *source)
{
        Stream *stream = calloc(1, sizeof *stream);
        struct MHD_Response *response = NULL;

        if (!stream) {
                source->free(source->userdata);
                return MHD_NO;
        }
        *stream = (Stream){ .request = request, .connection = request->connection, .source = *source };
        response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_SIZE, stream_read, stream,
                                                     stream_free);
        if (!response)
                stream_free(stream);
        connection_set_deadline(request->connection, REPLY_TIMEOUT_NS);
        return reply_send(request, 200, response, type, CACHE_NEVER, headers);
}
