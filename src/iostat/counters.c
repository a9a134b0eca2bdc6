/* SPDX-License-Identifier: Apache-2.0 */
/* Counters: parses rows of the kernel's block statistics. Pure; every byte is taken for hostile. */

#include "tierprobe/iostat.h"

#include <errno.h>
#include <string.h>

/* What one row may hold at most that is looked at; sysstat too ignores fields of kernels to come. */
#define MAX_STATISTICS 17

typedef struct Cursor {
        const char *p, *end;
} Cursor;

/* Carriage returns are blank, so that a record that went through another system still reads. */
static bool is_blank(char c)
{
        return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Takes the next word; false at the end. */
static bool take_word(Cursor *cursor, const char **ret_word, size_t *ret_size)
{
        while (cursor->p < cursor->end && is_blank(*cursor->p))
                cursor->p++;
        if (cursor->p == cursor->end)
                return false;
        *ret_word = cursor->p;
        while (cursor->p < cursor->end && !is_blank(*cursor->p))
                cursor->p++;
        *ret_size = (size_t) (cursor->p - *ret_word);
        return true;
}

/* Digits only, and it fits. */
static int word_to_u64(const char *word, size_t size, uint64_t *ret)
{
        uint64_t value = 0;

        if (size == 0)
                return -EINVAL;
        for (size_t i = 0; i < size; i++) {
                if (word[i] < '0' || word[i] > '9')
                        return -EINVAL;
                if (__builtin_mul_overflow(value, 10U, &value) ||
                    __builtin_add_overflow(value, (uint64_t) (word[i] - '0'), &value))
                        return -EINVAL;
        }
        *ret = value;
        return 0;
}

int counters_parse(const char *text, size_t size, Counters *ret)
{
        enum { IN_FLIGHT = 8 };
        Cursor cursor = { text, text + size };
        uint64_t v[MAX_STATISTICS] = { 0 };
        const char *word = NULL;
        size_t word_size = 0, n = 0;

        while (n < MAX_STATISTICS && take_word(&cursor, &word, &word_size)) {
                /* The kernel's count of requests in flight can fall below zero, and is printed with or
                 * without a sign depending on its version. */
                bool negative = n == IN_FLIGHT && word_size > 1 && word[0] == '-';
                int r = word_to_u64(word + negative, word_size - negative, &v[n]);
                if (r < 0)
                        return r;
                if (negative)
                        v[n] = -v[n];
                n++;
        }
        if (n < 11)
                return -EINVAL;

        /* Milliseconds are kept modulo 2^32, which is how every kernel prints them; lxcfs prints more digits
         * and is so brought to the same. A group of which only a part is there does not count. */
        Counters c = {
                .r_ios = v[0],
                .r_merges = v[1],
                .r_sectors = v[2],
                .r_ms = (uint32_t) v[3],
                .w_ios = v[4],
                .w_merges = v[5],
                .w_sectors = v[6],
                .w_ms = (uint32_t) v[7],
                .in_flight = (int32_t) (uint32_t) v[IN_FLIGHT],
                .io_ms = (uint32_t) v[9],
                .queue_ms = (uint32_t) v[10],
                .n_fields = 11,
        };
        if (n >= 15) {
                c.d_ios = v[11];
                c.d_merges = v[12];
                c.d_sectors = v[13];
                c.d_ms = (uint32_t) v[14];
                c.n_fields = 15;
        }
        if (n >= 17) {
                c.f_ios = v[15];
                c.f_ms = (uint32_t) v[16];
                c.n_fields = 17;
        }
        *ret = c;
        return 0;
}

static int take_u32(Cursor *cursor, uint32_t *ret)
{
        const char *word = NULL;
        size_t size = 0;
        uint64_t value = 0;

        if (!take_word(cursor, &word, &size) || word_to_u64(word, size, &value) < 0 || value > UINT32_MAX)
                return -EINVAL;
        *ret = (uint32_t) value;
        return 0;
}

int diskstats_parse_line(const char *line, size_t size, DiskstatsRow *ret)
{
        Cursor cursor = { line, line + size };
        DiskstatsRow row = { 0 };
        const char *name = NULL;
        size_t name_size = 0;

        if (take_u32(&cursor, &row.major) < 0 || take_u32(&cursor, &row.minor) < 0 ||
            !take_word(&cursor, &name, &name_size) || name_size >= sizeof row.name)
                return -EINVAL;
        /* Names reach terminals and JSON: the kernel's are printable ASCII, others are no names. */
        for (size_t i = 0; i < name_size; i++)
                if (name[i] <= ' ' || name[i] > '~')
                        return -EINVAL;
        memcpy(row.name, name, name_size);
        if (counters_parse(cursor.p, (size_t) (cursor.end - cursor.p), &row.counters) < 0)
                return -EINVAL;
        *ret = row;
        return 0;
}

bool diskstats_next(Diskstats *rest, DiskstatsRow *ret)
{
        while (rest->size > 0) {
                const char *line = rest->text, *newline = memchr(line, '\n', rest->size);
                size_t size = newline ? (size_t) (newline - line) : rest->size;
                size_t used = newline ? size + 1 : size;

                rest->text += used;
                rest->size -= used;
                if (diskstats_parse_line(line, size, ret) == 0)
                        return true;
        }
        return false;
}

static void replace_char(char *text, char from, char to)
{
        for (; *text; text++)
                if (*text == from)
                        *text = to;
}

void name_to_diskstats(char *name)
{
        replace_char(name, '!', '/');
}

void name_to_sysfs(char *name)
{
        replace_char(name, '/', '!');
}
