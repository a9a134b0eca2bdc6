/* SPDX-License-Identifier: Apache-2.0 */
/* Long answers, made while they are sent: neither memory nor the event loop feels their length. Private to
 * src/http. */
#pragma once

#include "growing-text.h"
#include "reply.h"

typedef enum StreamStep {
        STREAM_MORE,
        STREAM_WAIT, /* there is nothing to add until `over`, or for fifteen seconds */
        STREAM_END,
        STREAM_FAILED, /* all that can be done now is to cut the connection */
} StreamStep;

/* What the answer is made of. */
typedef struct StreamSource {
        void *userdata;

        /* Adds the next piece to OUT, or nothing while it still looks for it. To be quick: half a millisecond
         * at the most. Not called again after STREAM_END, with which a last piece may come, or STREAM_FAILED.
         */
        StreamStep (*next)(void *userdata, Text *out);
        void (*free)(void *userdata);
        bool (*over)(const void *userdata); /* for STREAM_WAIT */
} StreamSource;

/* Answers with 200 and what SOURCE, which is taken, adds up to. HEADERS end with a NULL name, or NULL. */
enum MHD_Result reply_stream(Request *request, const char *type, const ReplyHeader *headers,
                             const StreamSource *source);
