/* SPDX-License-Identifier: Apache-2.0 */
/* /history: samples of the ring, or buckets of them, read and printed while the reply is sent. */

#include "accept.h"
#include "gzip.h"
#include "named.h"
#include "reply.h"
#include "routes.h"
#include "stream.h"

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
#define RECORDS_PER_PIECE 300 /* of a ring looked at, or samples printed: some 0.3 ms */
#define SUMMED_PER_PIECE 1000 /* into buckets, ditto */
#define STEP_MAX_S (31 * UINT64_C(86400))
#define BUCKETS_MAX 10000

#define TYPE_CSV "text/csv; charset=utf-8; header=present"

typedef enum Phase { PHASE_BEGIN, PHASE_SEEK, PHASE_SAMPLES, PHASE_BUCKETS } Phase;

/* A page is the records [seq, end) of the ring, fixed when the request came. With a run's id it is those
 * among them that were taken during the run; the newest LIMIT of them are found by going backwards first. */
typedef struct Page {
        const Service *service;
        char target[NAME_SIZE];
        char run_id[RUN_ID_SIZE]; /* empty: all records */
        bool seeks;               /* the page's begin */
        Phase phase;
        uint64_t seq, end;
        uint64_t first;   /* PHASE_SEEK: where the page may begin at the earliest */
        uint64_t matched; /* PHASE_SEEK: how many records of the run were passed */
        uint64_t limit, printed;
        char *head; /* the document up to its samples */
        bool csv;
        int64_t from_ns, to_ns; /* REALTIME; INT64_MIN and INT64_MAX: not asked for */
        int64_t step_ns;        /* of buckets; 0: samples */
        RingReader reader;
        Bucket bucket;
        bool bucket_is_open;
} Page;

static void page_free(void *userdata)
{
        Page *page = userdata;

        free(page->head);
        free(page);
}

/* The ring is asked for anew each time: the target may have gone since the last piece. */
static const Ring *find_ring(const Service *service, const char *target)
{
        TargetView view;

        for (size_t i = 0; service->get_target(service->userdata, i, &view); i++)
                if (strcmp(view.name, target) == 0)
                        return view.ring;
        return NULL;
}

/* Goes back from the newest record to the oldest one that belongs on the page. The records of a run stand
 * together, so the first stranger after them ends the search. */
static void seek(Page *page, const Ring *ring)
{
        RingRecord record;

        for (int n = 0; n < RECORDS_PER_PIECE; n++) {
                if (page->seq <= page->first || page->matched == page->limit) {
                        page->phase = PHASE_SAMPLES;
                        return;
                }
                if (ring_read(ring, page->seq - 1, &record) == 0) {
                        bool match = strcmp(record.run_id, page->run_id) == 0;

                        if (!match && page->matched > 0) {
                                page->phase = PHASE_SAMPLES;
                                return;
                        }
                        page->matched += match;
                }
                page->seq--;
        }
}

static void print_sample(Page *page, Text *out, const RingRecord *record, const Delta *delta, Gap gap)
{
        char text[SAMPLE_TEXT_SIZE];

        if (page->printed++ > 0 && !page->csv)
                text_add_string(out, ",");
        text_add(out, text,
                 page->csv ? csv_sample_row(text, sizeof text, record, delta, gap)
                           : json_sample_text(text, sizeof text, record, delta, gap));
}

/* Adds the samples of the next records. False: the page ends here. */
static bool print_samples(Page *page, const Ring *ring, Text *out)
{
        for (int n = 0; n < RECORDS_PER_PIECE; n++) {
                const RingRecord *record = &page->reader.record;
                Delta delta;
                Gap gap = GAP_NONE;

                if (page->seq >= page->end || page->printed == page->limit)
                        return false;
                if (ring_read_next(ring, &page->reader, page->seq++, &delta, &gap) < 0 || gap == GAP_FIRST)
                        continue;
                if (*page->run_id && strcmp(record->run_id, page->run_id) != 0)
                        continue;
                print_sample(page, out, record, &delta, gap);
        }
        return true;
}

/* ---- buckets ---- */

static void print_bucket(Page *page, Text *out)
{
        char text[BUCKET_TEXT_SIZE];

        if (!page->bucket_is_open)
                return;
        page->bucket_is_open = false;
        if (page->printed++ > 0 && !page->csv)
                text_add_string(out, ",");
        text_add(out, text,
                 page->csv ? csv_bucket_row(text, sizeof text, &page->bucket)
                           : json_bucket_text(text, sizeof text, &page->bucket));
}

/* Sums up the next records; a stretch of time without any makes no bucket. False: the page ends here. */
static bool print_buckets(Page *page, const Ring *ring, Text *out)
{
        for (int n = 0; n < SUMMED_PER_PIECE; n++) {
                Delta delta;
                Gap gap = GAP_NONE;

                if (page->seq >= page->end) {
                        print_bucket(page, out);
                        return false;
                }
                if (ring_read_next(ring, &page->reader, page->seq++, &delta, &gap) < 0 || gap != GAP_NONE)
                        continue;
                const RingRecord *record = &page->reader.record;
                int64_t real_ns = record->snapshot.real_ns;
                if (real_ns < page->from_ns || real_ns >= page->to_ns ||
                    (*page->run_id && strcmp(record->run_id, page->run_id) != 0))
                        continue;
                int64_t begin_ns = real_ns - real_ns % page->step_ns;
                if (!page->bucket_is_open || page->bucket.begin_real_ns != begin_ns) {
                        print_bucket(page, out);
                        bucket_begin(&page->bucket, begin_ns);
                        page->bucket_is_open = true;
                }
                bucket_add(&page->bucket, record, &delta);
        }
        return true;
}

/* What stands behind the samples. A page of a run's samples ends where its last one was found. */
static void print_tail(const Page *page, Text *out)
{
        char cursor[64] = "";

        if (page->csv)
                return;
        if (*page->run_id && !page->step_ns)
                (void) snprintf(cursor, sizeof cursor, ",\"next_cursor\":\"%" PRIu64 "\"", page->seq);
        text_add_string(out, "]");
        text_add_string(out, cursor);
        text_add_string(out, "}\n");
}

static StreamStep next_piece(void *userdata, Text *out)
{
        Page *page = userdata;
        const Ring *ring = find_ring(page->service, page->target);

        if (!ring)
                return STREAM_FAILED;
        switch (page->phase) {
        case PHASE_BEGIN:
                text_add_string(out, page->head);
                page->phase = page->step_ns ? PHASE_BUCKETS : page->seeks ? PHASE_SEEK : PHASE_SAMPLES;
                return STREAM_MORE;
        case PHASE_SEEK:
                seek(page, ring);
                return STREAM_MORE;
        case PHASE_SAMPLES:
                if (print_samples(page, ring, out))
                        return STREAM_MORE;
                break;
        case PHASE_BUCKETS:
                if (print_buckets(page, ring, out))
                        return STREAM_MORE;
                break;
        }
        print_tail(page, out);
        return STREAM_END;
}

/* ---- the request ---- */

/* The target called NAME; without one, the only one there is. */
static int choose_target(const Service *service, const char *name, TargetView *ret, Problem *problem)
{
        TargetView second;

        if (name)
                return target_by_name(service, name, ret, problem);
        if (!service->get_target(service->userdata, 0, ret))
                return target_unknown(service, problem);
        return service->get_target(service->userdata, 1, &second) ? target_needed(service, problem) : 0;
}

/* Those records that the times leave. */
static int place_buckets(Page *page, const Ring *ring, Problem *problem)
{
        RingRecord oldest;
        int64_t from_ns = page->from_ns, to_ns = page->to_ns, now_ns = (int64_t) clock_ns(CLOCK_REALTIME);

        page->seq = page->first;
        if (ring_read(ring, page->first, &oldest) >= 0 && oldest.snapshot.real_ns > from_ns)
                from_ns = oldest.snapshot.real_ns;
        if (to_ns > now_ns)
                to_ns = now_ns;
        if (from_ns > 0 && to_ns > from_ns && (to_ns - from_ns) / page->step_ns > BUCKETS_MAX)
                return problem_set(problem, 400, "bad_parameter",
                                   "that makes more than %d buckets; write a \"step\" of at least %" PRId64
                                   ", or \"from\" and \"to\" closer together",
                                   BUCKETS_MAX, (to_ns - from_ns) / BUCKETS_MAX / (int64_t) NS_PER_S + 1);
        return 0;
}

/* The page's place in the ring. */
static int place(Page *page, const Ring *ring, const Query *query, uint64_t *ret_dropped, Problem *problem)
{
        uint64_t first = ring_first_seq(ring), next = ring_next_seq(ring), cursor = 0;

        if (page->from_ns != INT64_MIN)
                first = ring_find_time(ring, page->from_ns);
        if (page->to_ns != INT64_MAX)
                next = ring_find_time(ring, page->to_ns);
        if (first > next)
                first = next;
        *ret_dropped = 0;
        page->first = first;
        page->end = next;
        if (page->step_ns)
                return place_buckets(page, ring, problem);
        if (query_value(query, "since")) {
                if (query_number(query, "since", 0, UINT64_MAX, 0, &cursor, problem) < 0 ||
                    cursor > ring_next_seq(ring))
                        return problem_set(problem, 400, "bad_cursor",
                                           "\"since\" is no cursor of this ring; start again without it");
                if (cursor == 0)
                        cursor = 1;
                *ret_dropped = cursor < first ? first - cursor : 0;
                page->seq = cursor < first ? first : cursor;
                if (page->end < page->seq)
                        page->end = page->seq; /* "to" is before it: nothing follows */
                if (!*page->run_id && page->end - page->seq > page->limit)
                        page->end = page->seq + page->limit;
        } else if (*page->run_id) {
                page->seq = next;
                page->seeks = true;
        } else {
                page->seq = next - first > page->limit ? next - page->limit : first;
        }
        return 0;
}

/* A name of a target needs no escaping. The cursor of a page of all records is known beforehand; that of a
 * run's samples follows them. */
static char *print_head(const Page *page, const ServiceView *view, uint64_t capacity, uint64_t dropped)
{
        char cursor[64] = "", text[BUCKET_TEXT_SIZE];

        if (page->csv) {
                size_t size = page->step_ns ? csv_bucket_header(text, sizeof text)
                                            : csv_sample_header(text, sizeof text);
                return strndup(text, size);
        }
        if (page->step_ns)
                return path_format("{\"schema\":%d,\"target\":\"%s\",\"step_s\":%" PRId64 ",\"buckets\":[",
                                   JSON_SCHEMA, page->target, page->step_ns / (int64_t) NS_PER_S);
        if (!*page->run_id)
                (void) snprintf(cursor, sizeof cursor, "\"next_cursor\":\"%" PRIu64 "\",", page->end);
        return path_format("{\"schema\":%d,\"target\":\"%s\",\"interval_s\":%.15g,\"capacity\":%" PRIu64
                           ",%s\"dropped\":%" PRIu64 ",\"samples\":[",
                           JSON_SCHEMA, page->target,
                           (double) view->config->sample_interval_ns / (double) NS_PER_S, capacity, cursor,
                           dropped);
}

/* A time as RFC 3339 has it, or in whole seconds since 1970. */
static int read_times(const Query *query, Page *page, Problem *problem)
{
        uint64_t step_s = 0;

        if (query_number(query, "step", 1, STEP_MAX_S, 0, &step_s, problem) < 0 ||
            query_time(query, "from", INT64_MIN, &page->from_ns, problem) < 0 ||
            query_time(query, "to", INT64_MAX, &page->to_ns, problem) < 0)
                return -1;
        page->step_ns = (int64_t) (step_s * NS_PER_S);
        if (page->to_ns <= page->from_ns)
                return problem_set(problem, 400, "bad_parameter", "\"to\" is not after \"from\"");
        if (page->step_ns && (query_value(query, "since") || query_value(query, "limit")))
                return problem_set(problem, 400, "bad_parameter",
                                   "\"since\" and \"limit\" are of samples; buckets (\"step\") have \"from\" "
                                   "and \"to\"");
        return 0;
}

static bool run_is_known(const Service *service, const char *id)
{
        return service->find_current(service->userdata, id) ||
               service->read_run(service->userdata, id, NULL, NULL, NULL) != -ENOENT;
}

static int read_request(const Request *request, Page *page, const Ring **ret_ring, Problem *problem)
{
        const Query *query = &request->query;
        const char *run_id = query_value(query, "run");
        TargetView view = { 0 };

        if (query_number(query, "limit", 1, LIMIT_MAX, LIMIT_DEFAULT, &page->limit, problem) < 0)
                return -1;
        if (run_id && !run_id_is_valid(run_id))
                return problem_set(problem, 400, "bad_parameter", "\"run\" is not the id of a run");
        if (run_id && !run_is_known(request->server->service, run_id))
                return problem_set(problem, 404, "unknown_run",
                                   "no run has the id %s; it may be too old to be kept", run_id);
        if (read_times(query, page, problem) < 0)
                return -1;
        if (run_id)
                (void) snprintf(page->run_id, sizeof page->run_id, "%s", run_id);
        if (choose_target(request->server->service, query_value(query, "target"), &view, problem) < 0)
                return -1;
        if (!view.ring)
                return problem_set(problem, 503, "no_history", "the samples of this target cannot be kept");
        (void) snprintf(page->target, sizeof page->target, "%s", view.name);
        *ret_ring = view.ring;
        return 0;
}

enum MHD_Result handle_history(Request *request)
{
        const Service *service = request->server->service;
        Page *page = calloc(1, sizeof *page);
        const Ring *ring = NULL;
        uint64_t dropped = 0;
        ServiceView view;
        Problem problem;

        if (!page)
                return MHD_NO;
        page->service = service;
        page->csv = request->head.accept.value &&
                    accept_quality(request->head.accept.value, "text/csv") >
                            accept_quality(request->head.accept.value, "application/json");
        if (read_request(request, page, &ring, &problem) < 0 ||
            place(page, ring, &request->query, &dropped, &problem) < 0) {
                page_free(page);
                return reply_problem(request, &problem);
        }
        service->get(service->userdata, &view);
        page->head = print_head(page, &view, ring_capacity(ring), dropped);
        if (!page->head) {
                page_free(page);
                return MHD_NO;
        }
        const char *type = page->csv ? TYPE_CSV : TYPE_JSON;
        StreamSource source = { .userdata = page, .next = next_piece, .free = page_free };
        bool zipped = accept_gzip(request->head.accept_encoding.value) && gzip_source(&source) >= 0;
        const ReplyHeader headers[] = { { MHD_HTTP_HEADER_VARY, "Accept, Accept-Encoding" },
                                        { MHD_HTTP_HEADER_CONTENT_ENCODING, zipped ? "gzip" : NULL },
                                        { NULL, NULL } };
        return reply_stream(request, type, headers, &source);
}
