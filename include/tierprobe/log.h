/* SPDX-License-Identifier: Apache-2.0 */
/* The log: leveled lines, each with optional journal fields. Knows libc.
 *
 * Where lines go is decided once, by the program: stderr until log_set_sink() says otherwise. Library
 * functions do not log; who knows the context does, once. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Levels are syslog's (<syslog.h>): LOG_ERR, LOG_WARNING, LOG_NOTICE, LOG_INFO, LOG_DEBUG. */
#include <syslog.h>

typedef struct LogField {
        const char *name; /* upper case, e.g. "TIERPROBE_RUN_ID" */
        const char *value;
} LogField;

typedef struct LogRecord {
        int level;
        const char *message;    /* one line, no newline */
        const char *message_id; /* 32 hex digits, or NULL */
        const LogField *fields;
        size_t n_fields;
} LogRecord;

typedef void (*LogSink)(const LogRecord *record);

/* Sends all further records to SINK; NULL is stderr. */
void log_set_sink(LogSink sink);

/* Records above LEVEL (less urgent) are dropped; the default is LOG_INFO. */
void log_set_max_level(int level);
bool log_enabled(int level);

/* Formats and sends one line. Control characters in it are replaced, so that outside text cannot forge
 * a line; at most 2047 bytes are kept. errno is kept. */
void log_line(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same with a message id and fields. */
void log_event(int level, const char *message_id, const LogField *fields, size_t n_fields, const char *format,
               ...) __attribute__((format(printf, 5, 6)));

#define log_error(...) log_line(LOG_ERR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_WARNING, __VA_ARGS__)
#define log_notice(...) log_line(LOG_NOTICE, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)
