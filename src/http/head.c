/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a request. libmicrohttpd before 1.0 bears almost anything: a blank before the colon makes
 * another name of it, a NUL cuts a value (or ends the head) and hides what follows, folded lines, bare line
 * feeds and repeated blanks go unsaid. What it leaves out shows as a gap: it cuts the head into strings where
 * it lies, so that the strings of a well-formed one follow each other with nothing between them but their
 * delimiters. From 1.0 on its strict mode refuses all of this by itself. */

#include "head.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tierprobe/cleanup.h"

/* Follows the strings of the head through the library's buffer. */
typedef struct Wire {
        uintptr_t at; /* where the next string must begin */
        bool gap;
} Wire;

typedef struct Reading {
        RequestHead *head;
        Wire wire;
        bool valid;
} Reading;

/* The next string, and how many bytes stand between it and the one after it. */
static void wire_take(Wire *wire, const char *text, size_t size, size_t delimiter)
{
        wire->gap = wire->gap || (uintptr_t) text != wire->at;
        wire->at = (uintptr_t) text + size + delimiter;
}

static bool is_token_character(unsigned char c)
{
        return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
               (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

bool field_is_valid(const char *name, size_t name_size, const char *value, size_t value_size)
{
        for (size_t i = 0; i < name_size; i++)
                if (!is_token_character((unsigned char) name[i]))
                        return false;
        for (size_t i = 0; i < value_size; i++)
                if (((unsigned char) value[i] < ' ' && value[i] != '\t') || value[i] == 0x7f)
                        return false;
        return name_size > 0;
}

static void note_field(RequestHead *head, const char *name, const char *value)
{
        const struct {
                const char *name;
                Field *field;
        } wanted[] = {
                { MHD_HTTP_HEADER_HOST, &head->host },
                { MHD_HTTP_HEADER_CONTENT_LENGTH, &head->content_length },
                { MHD_HTTP_HEADER_TRANSFER_ENCODING, &head->transfer_encoding },
                { MHD_HTTP_HEADER_CONTENT_TYPE, &head->content_type },
                { MHD_HTTP_HEADER_ORIGIN, &head->origin },
                { "Sec-Fetch-Site", &head->sec_fetch_site },
                { MHD_HTTP_HEADER_AUTHORIZATION, &head->authorization },
                { MHD_HTTP_HEADER_ACCEPT, &head->accept },
                { MHD_HTTP_HEADER_ACCEPT_ENCODING, &head->accept_encoding },
                { MHD_HTTP_HEADER_IF_NONE_MATCH, &head->if_none_match },
        };

        for (size_t i = 0; i < ELEMENTSOF(wanted); i++)
                if (strcasecmp(name, wanted[i].name) == 0 && wanted[i].field->n++ == 0)
                        wanted[i].field->value = value;
}

static enum MHD_Result take_field(void *userdata, enum MHD_ValueKind kind, const char *name, size_t name_size,
                                  const char *value, size_t value_size)
{
        static const char empty[] = "";
        Reading *reading = userdata;

        (void) kind;
        if (!value) {
                value = empty;
                value_size = 0;
        }
        reading->valid = field_is_valid(name, name_size, value, value_size);
        if (!reading->valid)
                return MHD_NO;
        note_field(reading->head, name, value);

        /* Blanks between the colon and the value are anyone's right. */
        wire_take(&reading->wire, name, name_size, 1);
        if ((uintptr_t) value > reading->wire.at)
                reading->wire.at = (uintptr_t) value;
        wire_take(&reading->wire, value, value_size, strlen("\r\n"));
        return MHD_YES;
}

bool library_is_lenient(void)
{
        return atoi(MHD_get_version()) < 1;
}

void request_line_set_target(RequestLine *line, const char *target)
{
        line->target = target;
        line->target_size = strlen(target);
        line->target_valid = true;
        for (size_t i = 0; i < line->target_size; i++)
                if ((unsigned char) target[i] <= ' ' || target[i] == 0x7f)
                        line->target_valid = false;
}

int head_read(struct MHD_Connection *mhd, const RequestLine *line, RequestHead *head, Problem *problem)
{
        const union MHD_ConnectionInfo *size =
                MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
        Reading reading = { .head = head, .wire.at = (uintptr_t) line->method, .valid = true };
        Wire *wire = &reading.wire;

        wire_take(wire, line->method, strlen(line->method), strlen(" "));
        wire_take(wire, line->target, line->target_size, strlen(" "));
        wire_take(wire, line->version, strlen(line->version), strlen("\r\n"));
        (void) MHD_get_connection_values_n(mhd, MHD_HEADER_KIND, take_field, &reading);
        if (!reading.valid)
                return problem_set_closing(
                        problem, 400, "bad_header",
                        "a header line is malformed: a blank or another character that does not "
                        "belong in a name, or a control character in a value");
        if (head->host.n == 0 && strcmp(line->version, "HTTP/1.0") != 0)
                return problem_set_closing(problem, 400, "bad_host", "a Host is needed");
        if (!line->target_valid)
                return problem_set_closing(problem, 400, "bad_header",
                                           "the request line has a blank or control character too many");
        if (!library_is_lenient())
                return 0;
        bool whole = size && wire->at + strlen("\r\n") == (uintptr_t) line->method + size->header_size;
        if (wire->gap || !whole)
                return problem_set_closing(
                        problem, 400, "bad_header",
                        "the request is malformed: a NUL, a folded line, a line that does not end "
                        "with CR LF, or more blanks in the request line than two");
        return 0;
}
