/* SPDX-License-Identifier: Apache-2.0 */
/* /history: samples of the ring, streamed. Records are read and printed while the reply is sent, a bounded
 * number at a time, so that neither memory nor the event loop feels the length of the ring. */

#include "growing-text.h"
#include "reply.h"
#include "routes.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/file.h"
#include "tierprobe/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LIMIT_DEFAULT 1000
#define LIMIT_MAX 10000
#define BLOCK_SIZE 16384
#define PIECE_SIZE 8192       /* more than a sample's text: 30 members, two short names */
#define RECORDS_PER_TURN 2000 /* a ring's records looked at before the event loop may turn */

typedef enum Phase { PHASE_SEEK, PHASE_SAMPLES, PHASE_END } Phase;

/* A page is the records [seq, end) of the ring, fixed when the request came. With a run's id it is those
 * among them that were taken during the run; the newest LIMIT of them are found by going backwards first. */
typedef struct Stream {
        const Service *service;
        char target[NAME_SIZE];
        char run_id[RUN_ID_SIZE]; /* empty: all records */
        Phase phase;
        uint64_t seq, end;
        uint64_t first;   /* PHASE_SEEK: where the page may begin at the earliest */
        uint64_t matched; /* PHASE_SEEK: how many records of the run were passed */
        uint64_t limit, printed;
        char *head; /* the document up to its samples */
        char piece[PIECE_SIZE];
        size_t piece_size, piece_sent;
} Stream;

static void stream_free(void *userdata)
{
        Stream *stream = userdata;

        free(stream->head);
        free(stream);
}

/* The ring is asked for anew each time: the target may have gone since the last block. */
static const Ring *find_ring(const Service *service, const char *target)
{
        TargetView view;

        for (size_t i = 0; service->get_target(service->userdata, i, &view); i++)
                if (strcmp(view.name, target) == 0)
                        return view.ring;
        return NULL;
}

static void set_piece(Stream *stream, const char *text)
{
        stream->piece_size = strlen(text);
        memcpy(stream->piece, text, stream->piece_size);
}

/* Prints one sample into the piece; false: out of memory. */
static bool print_sample(Stream *stream, const RingRecord *record, const Delta *delta, Gap gap)
{
        size_t comma = stream->printed > 0;
        json_t *sample = json_sample(record, delta, gap);
        size_t size = 0;

        if (!sample)
                return false;
        stream->piece[0] = ',';
        size = json_dumpb(sample, stream->piece + comma, sizeof stream->piece - comma, JSON_TEXT_FLAGS);
        json_decref(sample);
        if (size == 0 || size > sizeof stream->piece - comma)
                return false;
        stream->piece_size = size + comma;
        stream->printed++;
        return true;
}

/* Goes back from the newest record to the oldest one that belongs on the page. The records of a run stand
 * together, so the first stranger after them ends the search. False: not there yet. */
static bool seek(Stream *stream, const Ring *ring)
{
        RingRecord record;

        for (int n = 0; n < RECORDS_PER_TURN; n++) {
                if (stream->seq <= stream->first || stream->matched == stream->limit)
                        return true;
                if (ring_read(ring, stream->seq - 1, &record) == 0) {
                        bool match = strcmp(record.run_id, stream->run_id) == 0;

                        if (!match && stream->matched > 0)
                                return true;
                        stream->matched += match;
                }
                stream->seq--;
        }
        return false;
}

/* Fills the piece with the next sample. False: the page ends, or memory does. */
static bool next_sample(Stream *stream, const Ring *ring, bool *ret_failed)
{
        RingRecord record;
        Delta delta;
        Gap gap = GAP_NONE;

        for (int n = 0; n < RECORDS_PER_TURN; n++) {
                if (stream->seq >= stream->end || stream->printed == stream->limit)
                        return false;
                uint64_t seq = stream->seq++;
                if (ring_read_delta(ring, seq, &record, &delta, &gap) < 0 || gap == GAP_FIRST)
                        continue;
                if (*stream->run_id && strcmp(record.run_id, stream->run_id) != 0)
                        continue;
                *ret_failed = !print_sample(stream, &record, &delta, gap);
                return !*ret_failed;
        }
        /* Nothing for a long stretch: white space keeps the reply alive and lets the event loop turn. */
        set_piece(stream, "\n");
        return true;
}

/* What stands behind the samples. A page of a run's samples ends where its last one was found. */
static void print_tail(Stream *stream)
{
        if (*stream->run_id)
                stream->piece_size = (size_t) snprintf(stream->piece, sizeof stream->piece,
                                                       "],\"next_cursor\":\"%" PRIu64 "\"}\n", stream->seq);
        else
                set_piece(stream, "]}\n");
        stream->phase = PHASE_END;
}

static bool next_piece(Stream *stream, bool *ret_failed)
{
        const Ring *ring = NULL;

        stream->piece_size = stream->piece_sent = 0;
        if (stream->phase == PHASE_END)
                return false;
        ring = find_ring(stream->service, stream->target);
        if (!ring) {
                *ret_failed = true;
                return false;
        }
        if (stream->phase == PHASE_SEEK) {
                if (seek(stream, ring))
                        stream->phase = PHASE_SAMPLES;
                set_piece(stream, "\n");
                return true;
        }
        if (!next_sample(stream, ring, ret_failed) && !*ret_failed)
                print_tail(stream);
        return !*ret_failed;
}

static ssize_t stream_read(void *userdata, uint64_t position, char *buf, size_t max)
{
        Stream *stream = userdata;
        size_t filled = 0;
        bool failed = false;

        if (position == 0 && stream->head) {
                /* The head is far smaller than a block. */
                filled = strlen(stream->head);
                if (filled > max)
                        return MHD_CONTENT_READER_END_WITH_ERROR;
                memcpy(buf, stream->head, filled);
        }
        while (filled < max) {
                if (stream->piece_sent == stream->piece_size) {
                        bool was_samples = stream->phase == PHASE_SAMPLES;
                        uint64_t printed = stream->printed;

                        if (!next_piece(stream, &failed))
                                break;
                        /* A turn without a sample has read its share of the ring: send what there is. */
                        if (stream->phase != PHASE_END && (!was_samples || stream->printed == printed))
                                max = filled + stream->piece_size < max ? filled + stream->piece_size : max;
                }
                size_t size = stream->piece_size - stream->piece_sent;
                if (size > max - filled)
                        size = max - filled;
                memcpy(buf + filled, stream->piece + stream->piece_sent, size);
                stream->piece_sent += size;
                filled += size;
        }
        if (failed)
                return MHD_CONTENT_READER_END_WITH_ERROR;
        return filled > 0 ? (ssize_t) filled : MHD_CONTENT_READER_END_OF_STREAM;
}

/* ---- the request ---- */

static int list_targets(const Service *service, Problem *problem)
{
        char names[300] = "";
        size_t length = 0;
        TargetView view;

        for (size_t i = 0; length < sizeof names - 1 && service->get_target(service->userdata, i, &view); i++)
                length += (size_t) snprintf(names + length, sizeof names - length, "%s%s", i ? ", " : "",
                                            view.name);
        return problem_set(problem, 400, "target_needed", "say which target: %s", names);
}

/* The target named, or the only one. */
static int choose_target(const Service *service, const char *name, TargetView *ret, Problem *problem)
{
        TargetView view, other;

        if (!name) {
                if (!service->get_target(service->userdata, 0, &view))
                        return problem_set(problem, 404, "unknown_target", "no target is configured");
                if (service->get_target(service->userdata, 1, &other))
                        return list_targets(service, problem);
                *ret = view;
                return 0;
        }
        for (size_t i = 0; service->get_target(service->userdata, i, &view); i++)
                if (strcmp(view.name, name) == 0) {
                        *ret = view;
                        return 0;
                }
        return problem_set(problem, 404, "unknown_target", "no target has this name");
}

/* The page's place in the ring. */
static int place(Stream *stream, const Ring *ring, const char *since, uint64_t *ret_dropped, Problem *problem)
{
        uint64_t first = ring_first_seq(ring), next = ring_next_seq(ring), cursor = 0;

        *ret_dropped = 0;
        stream->first = first;
        stream->end = next;
        if (since) {
                if (query_number("since", since, 0, UINT64_MAX, 0, &cursor, problem) < 0 || cursor > next)
                        return problem_set(problem, 400, "bad_cursor",
                                           "\"since\" is no cursor of this ring; start again without it");
                if (cursor == 0)
                        cursor = 1;
                *ret_dropped = cursor < first ? first - cursor : 0;
                stream->seq = cursor < first ? first : cursor;
                stream->phase = PHASE_SAMPLES;
                if (!*stream->run_id && stream->end - stream->seq > stream->limit)
                        stream->end = stream->seq + stream->limit;
        } else if (*stream->run_id) {
                stream->seq = next;
                stream->phase = PHASE_SEEK;
        } else {
                stream->seq = next - first > stream->limit ? next - stream->limit : first;
                stream->phase = PHASE_SAMPLES;
        }
        return 0;
}

/* A name of a target needs no escaping. The cursor of a page of all records is known beforehand; that of a
 * run's samples follows them. */
static char *print_head(const Stream *stream, const ServiceView *view, uint64_t capacity, uint64_t dropped)
{
        char cursor[64] = "";

        if (!*stream->run_id)
                (void) snprintf(cursor, sizeof cursor, "\"next_cursor\":\"%" PRIu64 "\",", stream->end);
        return path_format("{\"schema\":%d,\"target\":\"%s\",\"interval_s\":%.15g,\"capacity\":%" PRIu64
                           ",%s\"dropped\":%" PRIu64 ",\"samples\":[",
                           JSON_SCHEMA, stream->target,
                           (double) view->config->sample_interval_ns / (double) NS_PER_S, capacity, cursor,
                           dropped);
}

static int read_request(const Request *request, Stream *stream, const Ring **ret_ring, Problem *problem)
{
        const char *const *values = request->query.values;
        TargetView view = { 0 };

        if (query_number("limit", values[2], 1, LIMIT_MAX, LIMIT_DEFAULT, &stream->limit, problem) < 0)
                return -1;
        if (values[3] && !run_id_is_valid(values[3]))
                return problem_set(problem, 400, "bad_parameter", "\"run\" is not the id of a run");
        if (values[3])
                (void) snprintf(stream->run_id, sizeof stream->run_id, "%s", values[3]);
        if (choose_target(request->server->service, values[0], &view, problem) < 0)
                return -1;
        if (!view.ring)
                return problem_set(problem, 503, "no_history", "the samples of this target cannot be kept");
        (void) snprintf(stream->target, sizeof stream->target, "%s", view.name);
        *ret_ring = view.ring;
        return 0;
}

enum MHD_Result handle_history(Request *request)
{
        const Service *service = request->server->service;
        Stream *stream = calloc(1, sizeof *stream);
        const Ring *ring = NULL;
        uint64_t dropped = 0;
        ServiceView view;
        Problem problem;

        if (!stream)
                return MHD_NO;
        stream->service = service;
        if (read_request(request, stream, &ring, &problem) < 0 ||
            place(stream, ring, request->query.values[1], &dropped, &problem) < 0) {
                stream_free(stream);
                return reply_problem(request, &problem);
        }
        service->get(service->userdata, &view);
        stream->head = print_head(stream, &view, ring_capacity(ring), dropped);
        struct MHD_Response *response =
                stream->head ? MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_SIZE, stream_read,
                                                                 stream, stream_free)
                             : NULL;
        if (!response)
                stream_free(stream);
        connection_set_deadline(request->connection, REPLY_TIMEOUT_NS);
        return reply_send(request, 200, response, "application/json", CACHE_NEVER, NULL);
}
