/* SPDX-License-Identifier: Apache-2.0 */
/* The judge of captures: cuts the stream into lines and gives each to the reader of text or of JSON. Knows
 * verdict. */

#include "tierprobe/cleanup.h"

#include "capture-internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What else prints something is looked for in so much text without a header. */
#define KIND_SEARCH ((size_t) 64 << 10)

int capture_judge_new(const Limits *limits, const char *device, CaptureJudge **ret)
{
        _cleanup_(capture_judge_freep) CaptureJudge *judge = calloc(1, sizeof *judge);
        if (!judge)
                return -ENOMEM;

        int r = rows_init(&judge->rows);
        if (r < 0)
                return r;
        judge->limits = *limits;
        if (device) {
                judge->wanted = strdup(device);
                if (!judge->wanted)
                        return -ENOMEM;
        }
        capture_text_init(&judge->text, &judge->rows);
        capture_json_init(&judge->json, &judge->rows);
        *ret = TAKE_PTR(judge);
        return 0;
}

CaptureJudge *capture_judge_free(CaptureJudge *judge)
{
        if (!judge)
                return NULL;
        rows_done(&judge->rows);
        free(judge->devices);
        free(judge->wanted);
        free(judge);
        return NULL;
}

void capture_judge_freep(CaptureJudge **judge)
{
        capture_judge_free(*judge);
}

/* ---- lines ---- */

static bool contains(const char *text, size_t size, const char *part)
{
        return memmem(text, size, part, strlen(part)) != NULL;
}

/* Whether the line is of iostat's JSON, or of a part of it that was cut out. */
static bool is_json(const char *line, size_t size)
{
        return memchr(line, '"', size) &&
               (contains(line, size, "\"sysstat\"") || contains(line, size, "\"statistics\"") ||
                contains(line, size, "\"disk\"") || contains(line, size, "\"disk_device\""));
}

/* Whether the line only opens a bracket, behind what stands in front of every line: that of JSON. */
static bool opens_brackets(const char *line, size_t size)
{
        Token tokens[LINE_MAX_TOKENS];
        size_t n = line_split(line, size, SEPARATED_BY_BLANKS, tokens);

        if (n == 0 || n == SIZE_MAX || (!token_is(&tokens[n - 1], "{") && !token_is(&tokens[n - 1], "[")))
                return false;
        return line_lead(tokens, n) == n - 1;
}

/* "Linux 6.1.0 (host)   11/30/2026": captures of several hosts in one file are told apart by it. */
static void look_for_host(CaptureJudge *judge, const char *line, size_t size)
{
        const char *end = line + size, *linux_word = memmem(line, size, "Linux ", strlen("Linux "));
        const char *open = linux_word ? memchr(linux_word, '(', (size_t) (end - linux_word)) : NULL;
        const char *close = open ? memchr(open, ')', (size_t) (end - open)) : NULL;

        if (!close || close == open + 1 || (size_t) (close - open) > HOST_SIZE)
                return;
        size_t length = (size_t) (close - open) - 1;
        if (judge->host[0] == '\0')
                memcpy(judge->host, open + 1, length);
        else if (strlen(judge->host) != length || memcmp(judge->host, open + 1, length) != 0) {
                memset(judge->other_host, 0, sizeof judge->other_host);
                memcpy(judge->other_host, open + 1, length);
        }
}

static int feed_json(CaptureJudge *judge, const char *line, size_t size)
{
        int r = capture_json_feed(&judge->json, line, size);

        capture_json_end_line(&judge->json);
        return r;
}

/* A line that is neither row nor header of a table. */
static int take_other(CaptureJudge *judge, const char *line, size_t size)
{
        if (is_json(line, size)) {
                judge->format = FORMAT_JSON;
                judge->is_mixed = judge->is_mixed || (judge->has_text && !judge->is_json);
                judge->is_json = true;
                return feed_json(judge, line, size);
        }
        if (opens_brackets(line, size))
                return feed_json(judge, line, size);
        judge->has_text = true;
        judge->joined = judge->joined || (contains(line, size, "Device") && contains(line, size, "w_await") &&
                                          contains(line, size, "/s "));
        look_for_host(judge, line, size);
        if (!judge->kind && judge->text.n_headers == 0 && judge->searched < KIND_SEARCH) {
                judge->searched += size;
                judge->kind = kind_of_line(line, size);
        }
        return 0;
}

static int take_text(CaptureJudge *judge, const char *line, size_t size, bool last)
{
        int r = capture_text_take_line(&judge->text, line, size, last);

        return r > 0 ? take_other(judge, line, size) : r;
}

static int take_line(CaptureJudge *judge, const char *line, size_t size, bool last)
{
        const char *cr = NULL;
        int r = 0;

        if (judge->format == FORMAT_JSON) {
                TextHeader header;
                if (!contains(line, size, "Device") || !header_parse(line, size, &header))
                        return feed_json(judge, line, size);
                judge->format = FORMAT_TEXT;
        }
        if (!judge->has_cr)
                return take_text(judge, line, size, last);
        while (size > 0 && line[size - 1] == '\r')
                size--;
        /* What a terminal overwrites: the progress of dd, then a row. */
        while (r >= 0 && (cr = memchr(line, '\r', size))) {
                size_t part = (size_t) (cr - line);
                if (part > 0)
                        r = take_text(judge, line, part, false);
                line += part + 1;
                size -= part + 1;
        }
        return r < 0 ? r : take_text(judge, line, size, last);
}

/* A line grows beyond what is kept of one. */
static int begin_long(CaptureJudge *judge)
{
        judge->in_long = true;
        if (judge->format == FORMAT_TEXT && !is_json(judge->line, judge->line_size))
                return 0;
        judge->format = FORMAT_JSON;
        judge->is_json = true;
        return capture_json_feed(&judge->json, judge->line, judge->line_size);
}

static int add_piece(CaptureJudge *judge, const char *data, size_t size)
{
        if (!judge->in_long) {
                size_t room = CAPTURE_MAX_LINE - judge->line_size, part = size < room ? size : room;

                memcpy(judge->line + judge->line_size, data, part);
                judge->line_size += part;
                data += part;
                size -= part;
                if (size == 0)
                        return 0;
                int r = begin_long(judge);
                if (r < 0)
                        return r;
        }
        return judge->format == FORMAT_JSON ? capture_json_feed(&judge->json, data, size) : 0;
}

static int end_line(CaptureJudge *judge, bool last)
{
        size_t size = judge->line_size;
        bool in_long = judge->in_long;

        judge->line_size = 0;
        judge->in_long = false;
        judge->line[size] = ' ';
        if (!in_long)
                return take_line(judge, judge->line, size, last);
        if (judge->format == FORMAT_JSON) {
                capture_json_end_line(&judge->json);
                return 0;
        }
        judge->n_overlong++;
        judge->has_text = true;
        judge->joined = judge->joined ||
                        (contains(judge->line, size, "Device") && contains(judge->line, size, "w_await"));
        return judge->text.in_table ? rows_mark_lost(&judge->rows) : 0;
}

int capture_judge_feed(CaptureJudge *judge, const char *data, size_t size)
{
        if (judge->size < sizeof judge->head) {
                size_t room = sizeof judge->head - (size_t) judge->size;
                memcpy(judge->head + judge->size, data, size < room ? size : room);
        }
        judge->size += size;
        judge->has_cr = judge->has_cr || memchr(data, '\r', size);
        while (size > 0) {
                const char *newline = memchr(data, '\n', size);
                size_t part = newline ? (size_t) (newline - data) : size;
                int r = 0;

                if (newline && judge->line_size == 0 && !judge->in_long && part <= CAPTURE_MAX_LINE)
                        r = take_line(judge, data, part, false);
                else {
                        r = add_piece(judge, data, part);
                        if (r >= 0 && newline)
                                r = end_line(judge, false);
                }
                if (r < 0)
                        return r;
                data += part + (newline != NULL);
                size -= part + (newline != NULL);
        }
        return 0;
}

int capture_judge_finish(CaptureJudge *judge)
{
        int r = judge->line_size > 0 || judge->in_long ? end_line(judge, true) : 0;
        if (r < 0)
                return r;
        r = capture_decide(judge);
        if (r < 0)
                return r;
        capture_add_notes(judge);
        return 0;
}

/* ---- the result ---- */

size_t capture_judge_n_devices(const CaptureJudge *judge)
{
        return judge->n_devices;
}

const CaptureDevice *capture_judge_device(const CaptureJudge *judge, size_t index)
{
        return index < judge->n_devices ? &judge->devices[index] : NULL;
}

const CaptureDevice *capture_judge_decider(const CaptureJudge *judge)
{
        return judge->decider;
}

const Judgement *capture_judge_overall(const CaptureJudge *judge)
{
        return &judge->overall;
}

const char *capture_judge_note(const CaptureJudge *judge, size_t index)
{
        return index < judge->n_notes ? judge->notes[index] : NULL;
}
