/* SPDX-License-Identifier: Apache-2.0 */
/* The log: formats lines and hands them to the one sink the program chose. */

#include "tierprobe/log.h"

#include "tierprobe/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#define MESSAGE_SIZE 2048

static LogSink log_sink;
static int log_max_level = LOG_INFO;

void log_set_sink(LogSink sink)
{
        log_sink = sink;
}

void log_set_max_level(int level)
{
        log_max_level = level;
}

bool log_enabled(int level)
{
        return level <= log_max_level;
}

static void sink_stderr(const LogRecord *record)
{
        (void) fprintf(stderr, "%s\n", record->message);
}

/* Outside text (a path, a header, a device's model) may hold control characters: no second line, no escape
 * sequence leaves here. Bytes from 0x80 on stay, they are UTF-8. */
static void replace_controls(char *text)
{
        for (; *text; text++)
                if (text_is_control(*text))
                        *text = '?';
}

static void emit(int level, const char *message_id, const LogField *fields, size_t n_fields,
                 const char *format, va_list ap) __attribute__((format(printf, 5, 0)));

static void emit(int level, const char *message_id, const LogField *fields, size_t n_fields,
                 const char *format, va_list ap)
{
        char message[MESSAGE_SIZE];
        int saved_errno = errno;

        (void) vsnprintf(message, sizeof message, format, ap);
        replace_controls(message);
        LogRecord record = { .level = level,
                             .message = message,
                             .message_id = message_id,
                             .fields = fields,
                             .n_fields = n_fields };
        (log_sink ? log_sink : sink_stderr)(&record);
        errno = saved_errno;
}

void log_line(int level, const char *format, ...)
{
        va_list ap;

        if (!log_enabled(level))
                return;
        va_start(ap, format);
        emit(level, NULL, NULL, 0, format, ap);
        va_end(ap);
}

void log_event(int level, const char *message_id, const LogField *fields, size_t n_fields, const char *format,
               ...)
{
        va_list ap;

        if (!log_enabled(level))
                return;
        va_start(ap, format);
        emit(level, message_id, fields, n_fields, format, ap);
        va_end(ap);
}
