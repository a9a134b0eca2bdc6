/* SPDX-License-Identifier: Apache-2.0 */
/* The list of faults of a configuration, and what helps to word them. Knows libc. */

#include "config-internal.h"

#include "tierprobe/cleanup.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

static void append(Faults *faults, const char *line)
{
        size_t length = strlen(line);
        char *grown = realloc(faults->text, faults->size + length + 2);

        if (!grown) {
                faults->out_of_memory = true;
                return;
        }
        if (faults->size)
                grown[faults->size++] = '\n';
        memcpy(grown + faults->size, line, length + 1);
        faults->text = grown;
        faults->size += length;
}

void config_fault(Faults *faults, int error, const char *origin, const char *format, ...)
{
        _cleanup_free_ char *message = NULL, *line = NULL;
        va_list ap;

        if (!faults->n)
                faults->error = error;
        if (faults->n == CONFIG_MAX_FAULTS) {
                faults->n_left_out++;
                return;
        }
        faults->n++;
        va_start(ap, format);
        if (vasprintf(&message, format, ap) < 0)
                message = NULL;
        va_end(ap);
        if (!message || asprintf(&line, "%s: %s", origin, message) < 0) {
                line = NULL;
                faults->out_of_memory = true;
                return;
        }
        append(faults, line);
}

void origin_set(ConfigOrigin origin, const char *file, unsigned line)
{
        char number[16] = "";
        size_t room = sizeof(ConfigOrigin) - sizeof number;
        size_t length = strlen(file);

        if (line)
                (void) snprintf(number, sizeof number, ":%u", line);
        if (length > room)
                (void) snprintf(origin, sizeof(ConfigOrigin), "...%s%s", file + length - (room - 3), number);
        else
                (void) snprintf(origin, sizeof(ConfigOrigin), "%s%s", file, number);
}

const char *config_quoted(char buf[QUOTED_SIZE], const char *value)
{
        size_t length = strlen(value);

        if (length < QUOTED_SIZE) {
                memcpy(buf, value, length + 1);
                return buf;
        }
        length = QUOTED_SIZE - 4;
        while (length > 0 && ((unsigned char) value[length] & 0xc0) == 0x80)
                length--;
        (void) snprintf(buf, QUOTED_SIZE, "%.*s...", (int) length, value);
        return buf;
}

#define WORD_MAX 32

/* How many letters must be changed, added or left out to make B of A (Levenshtein). */
static unsigned distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
        unsigned row[WORD_MAX + 1];

        for (unsigned j = 0; j <= b_length; j++)
                row[j] = j;
        for (unsigned i = 1; i <= a_length; i++) {
                unsigned diagonal = row[0];

                row[0] = i;
                for (unsigned j = 1; j <= b_length; j++) {
                        unsigned best = diagonal + (a[i - 1] != b[j - 1]);

                        diagonal = row[j];
                        if (row[j] + 1 < best)
                                best = row[j] + 1;
                        if (row[j - 1] + 1 < best)
                                best = row[j - 1] + 1;
                        row[j] = best;
                }
        }
        return row[b_length];
}

const char *config_nearest(const char *word, const char *const *names, size_t n)
{
        size_t length = strlen(word);
        const char *found = NULL;
        unsigned best = 0;

        if (length > WORD_MAX)
                return NULL;
        for (size_t i = 0; i < n; i++) {
                size_t name_length = strlen(names[i]);
                unsigned d = 0;

                if (name_length > WORD_MAX)
                        continue;
                d = distance(word, length, names[i], name_length);
                /* Up to a third of the word may be mistyped; more is another word. */
                if (d <= (name_length + 2) / 3 && (!found || d < best)) {
                        found = names[i];
                        best = d;
                }
        }
        return found;
}

void list_names(char *buf, size_t size, const char *const *names, size_t n)
{
        size_t at = 0;

        buf[0] = '\0';
        for (size_t i = 0; i < n && at < size; i++)
                at += (size_t) snprintf(buf + at, size - at, "%s%s", i ? ", " : "", names[i]);
}
