/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one configuration file: bounds and lines are ours, what a line means is inih's. Knows base, inih.
 *
 * inih alone would cut long lines and section names, take indented keys for continued values, drop
 * sections without keys and name the first faulty line only. So it is fed line by line through a
 * reader that looks at each line first; section headers are taken in here, and a line with a key that inih
 * did not hand back is known to be faulty. */

#include "config-internal.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/file.h"
#include "tierprobe/text.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <string.h>

/* A path of PATH_MAX and its key fit. Where inih's limit is fixed when it is built (200 upstream), that one
 * holds. */
#define LINE_MAX_BYTES 8192

#define INPUT_TIMEOUT_NS (10 * NS_PER_S) /* of a pipe */

typedef enum Where {
        BEFORE_SECTIONS,
        IN_SECTION,
        IN_UNKNOWN_SECTION, /* its header was faulty: its keys would only repeat that */
} Where;

typedef struct Reader {
        Loader *loader;
        const char *at, *end;
        unsigned line;
        bool pending; /* a line with a key went to inih and has not come back */
        Where where;
        Section section;
        void *base; /* that the section's keys are set in */
        bool out_of_memory;
} Reader;

static void reader_fault(Reader *reader, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void reader_fault(Reader *reader, const char *format, ...)
{
        _cleanup_free_ char *text = NULL;
        ConfigOrigin origin;
        va_list ap;

        origin_set(origin, reader->loader->file, reader->line);
        va_start(ap, format);
        if (vasprintf(&text, format, ap) < 0)
                text = NULL;
        va_end(ap);
        config_fault(reader->loader->faults, -EINVAL, origin, "%s", text ? text : "out of memory");
}

/* ---- section headers ---- */

static void unknown_section(Reader *reader, const char *kind)
{
        char quote[QUOTED_SIZE], known[160];
        const char *names[_SECTION_MAX];

        for (Section section = 0; section < _SECTION_MAX; section++)
                names[section] = config_sections[section].name;
        const char *near = config_nearest(kind, names, _SECTION_MAX);
        list_names(known, sizeof known, names, _SECTION_MAX);
        reader_fault(reader, "unknown section [%s]; %s%s%sknown sections: %s", config_quoted(quote, kind),
                     near ? "did you mean [" : "", near ? near : "", near ? "]? " : "", known);
}

/* The profile NAME, a new one with the procedure's values if need be. NULL: faulty, noted. */
static Profile *enter_profile(Reader *reader, const char *name)
{
        Config *config = reader->loader->config;
        Profile *profile = (Profile *) config_find_profile(config, name); /* of our own */

        if (!profile) {
                if (config->n_profiles == CONFIG_MAX_PROFILES) {
                        reader_fault(reader, "more than %d profiles", CONFIG_MAX_PROFILES);
                        return NULL;
                }
                profile = &config->profiles[config->n_profiles++];
                *profile = PROFILE_PROCEDURE;
                (void) snprintf(profile->name, sizeof profile->name, "%s", name);
        }
        size_t index = (size_t) (profile - config->profiles);
        if (reader->loader->seen_profiles[index]) {
                reader_fault(reader,
                             "[profile %s] is there twice in this file, first at %s; one section holds "
                             "all keys of a profile",
                             name, reader->loader->profile_origins[index]);
                return NULL;
        }
        reader->loader->seen_profiles[index] = true;
        origin_set(reader->loader->profile_origins[index], reader->loader->file, reader->line);
        return profile;
}

static TargetConfig *enter_target(Reader *reader, const char *name)
{
        Config *config = reader->loader->config;
        TargetConfig *target = (TargetConfig *) config_find_target(config, name);

        if (!target) {
                if (config->n_targets == CONFIG_MAX_TARGETS) {
                        reader_fault(reader, "more than %d targets", CONFIG_MAX_TARGETS);
                        return NULL;
                }
                target = &config->targets[config->n_targets];
                target->device = strdup("auto");
                if (!target->device) {
                        reader->out_of_memory = true;
                        return NULL;
                }
                config->n_targets++;
                (void) snprintf(target->name, sizeof target->name, "%s", name);
                (void) snprintf(target->profile, sizeof target->profile, "%s", OFFICIAL_PROFILE_DEFAULT);
                origin_set(target->origin, reader->loader->file, reader->line);
        }
        size_t index = (size_t) (target - config->targets);
        if (reader->loader->seen_targets[index]) {
                reader_fault(reader,
                             "two targets of the name \"%s\", the first at %s; give each [target NAME] "
                             "a name of its own",
                             name, target->origin);
                return NULL;
        }
        reader->loader->seen_targets[index] = true;
        return target;
}

static void *enter_named(Reader *reader, Section section, const char *name)
{
        char quote[QUOTED_SIZE];

        if (!name[0]) {
                reader_fault(reader, "[%s] has no name; [%s %s] has one", config_sections[section].name,
                             config_sections[section].name, section == SECTION_TARGET ? "cache" : "nightly");
                return NULL;
        }
        if (!name_is_valid(name)) {
                reader_fault(reader,
                             "\"%s\" is not a %s's name; 1 to 63 letters, digits, \"_\", \".\" and \"-\", "
                             "not starting with \".\"",
                             config_quoted(quote, name), config_sections[section].name);
                return NULL;
        }
        memset(reader->loader->seen[section], 0, sizeof reader->loader->seen[section]);
        return section == SECTION_TARGET ? (void *) enter_target(reader, name)
                                         : (void *) enter_profile(reader, name);
}

/* Cuts blanks off the end of TEXT. */
static void strip_end(char *text)
{
        size_t length = strlen(text);

        while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\t'))
                text[--length] = '\0';
}

/* LINE begins with "[". */
static void take_header(Reader *reader, char *line)
{
        char quote[QUOTED_SIZE];
        char *close = strchr(line, ']');

        reader->where = IN_UNKNOWN_SECTION;
        if (!close || !strchr(";#", close[1 + strspn(close + 1, " \t")])) {
                reader_fault(reader, "\"%s\" is not a section's header; [sampling] or [target cache] is one",
                             config_quoted(quote, line));
                return;
        }
        *close = '\0';
        char *kind = line + 1 + strspn(line + 1, " \t");
        strip_end(kind);
        char *name = kind + strcspn(kind, " \t");
        if (*name) {
                *name++ = '\0';
                name += strspn(name, " \t");
        }

        Section section = 0;
        while (section < _SECTION_MAX && strcmp(config_sections[section].name, kind) != 0)
                section++;
        if (section == _SECTION_MAX) {
                unknown_section(reader, kind);
                return;
        }
        if (!config_sections[section].named && *name) {
                reader_fault(reader, "[%s] takes no name", config_sections[section].name);
                return;
        }
        reader->section = section;
        reader->base = config_sections[section].named ? enter_named(reader, section, name)
                                                      : section_base(section, reader->loader->config);
        if (reader->base)
                reader->where = IN_SECTION;
}

/* ---- keys ---- */

static void unknown_key(Reader *reader, const char *name)
{
        char quote[QUOTED_SIZE], known[160];
        const char *names[SECTION_MAX_PARAMETERS];
        size_t n = 0;

        for (; config_sections[reader->section].parameter(n); n++)
                names[n] = config_sections[reader->section].parameter(n)->name;
        const char *near = config_nearest(name, names, n);
        list_names(known, sizeof known, names, n);
        reader_fault(reader, "unknown key \"%s\" in [%s]; %s%s%sknown keys: %s", config_quoted(quote, name),
                     config_sections[reader->section].name, near ? "did you mean \"" : "", near ? near : "",
                     near ? "\"? " : "", known);
}

static void wrong_value(Reader *reader, const Parameter *parameter, const char *value, const char *why)
{
        char quote[QUOTED_SIZE];

        reader_fault(reader, "%s = \"%s\" is not right%s%s; write %s%s", parameter->name,
                     config_quoted(quote, value), why[0] ? ": " : "", why, parameter->right,
                     strstr(value, " #") ? " (a comment behind a value begins with \";\")" : "");
}

static void take_key(Reader *reader, const char *name, const char *value)
{
        Loader *loader = reader->loader;
        Section section = reader->section;
        char why[WHY_SIZE];

        size_t index = section_find(section, name);
        const Parameter *parameter = config_sections[section].parameter(index);
        if (!parameter) {
                unknown_key(reader, name);
                return;
        }
        bool again = loader->seen[section][index];
        loader->seen[section][index] = true;
        if (again && !parameter_adds(parameter)) {
                reader_fault(reader, "\"%s\" is set twice in this section of this file; remove one of them",
                             name);
                return;
        }
        if (parameter_adds(parameter) && !again)
                parameter_clear(parameter, reader->base); /* those of an earlier file, or the default */

        int r = parameter_set(parameter, reader->base, value, why);
        if (r == -ENOMEM)
                reader->out_of_memory = true;
        else if (r < 0)
                wrong_value(reader, parameter, value, why);
        if (!config_sections[section].named)
                origin_set(loader->origins[section][index], loader->file, reader->line);
        else if (section == SECTION_TARGET && parameter_origin(parameter, reader->base))
                origin_set(*parameter_origin(parameter, reader->base), loader->file, reader->line);
}

/* inih's handler. */
static int handle(void *userdata, const char *section, const char *name, const char *value)
{
        Reader *reader = userdata;

        (void) section; /* never anything: headers are not handed to inih */
        reader->pending = false;
        switch (reader->where) {
        case BEFORE_SECTIONS:
                reader_fault(reader,
                             "a key before the first section; begin with one, such as [target cache]");
                reader->where = IN_UNKNOWN_SECTION;
                break;
        case IN_SECTION:
                take_key(reader, name, value);
                break;
        case IN_UNKNOWN_SECTION:
                break;
        }
        return 1;
}

/* ---- lines ---- */

static bool has_control(const char *line, size_t length)
{
        for (size_t i = 0; i < length; i++)
                if (text_is_control(line[i]) && line[i] != '\t')
                        return true;
        return false;
}

/* What is wrong with a line before its meaning is looked at. */
static bool line_is_sound(Reader *reader, const char *line, size_t length, size_t limit)
{
        if (length > limit)
                reader_fault(reader, "a line of %zu bytes; at most %zu are possible", length, limit);
        else if (has_control(line, length))
                reader_fault(reader, "a control character; the file must be plain text");
        else if (!utf8_is_valid(line, length))
                reader_fault(reader, "bytes that are not UTF-8; save the file in that encoding");
        else
                return true;
        return false;
}

/* inih's reader: the next line with a key, as fgets() would. */
static char *read_line(char *buf, int size, void *stream)
{
        Reader *reader = stream;
        size_t limit = (size_t) size - 2;

        if (reader->pending)
                reader_fault(reader, "not of the form KEY = VALUE");
        reader->pending = false;
        while (reader->at < reader->end && !reader->out_of_memory) {
                const char *line = reader->at;
                const char *newline = memchr(line, '\n', (size_t) (reader->end - line));
                size_t length = (size_t) ((newline ? newline : reader->end) - line);

                reader->at = newline ? newline + 1 : reader->end;
                reader->line++;
                if (length > 0 && line[length - 1] == '\r')
                        length--;
                for (; length > 0 && (*line == ' ' || *line == '\t'); line++)
                        length--;
                if (length == 0 || *line == '#' || *line == ';')
                        continue;
                if (!line_is_sound(reader, line, length, limit)) {
                        if (*line == '[')
                                reader->where = IN_UNKNOWN_SECTION;
                        continue;
                }
                memcpy(buf, line, length);
                buf[length] = '\0';
                if (*buf == '[') {
                        take_header(reader, buf);
                        continue;
                }
                buf[length] = '\n';
                buf[length + 1] = '\0';
                reader->pending = true;
                return buf;
        }
        return NULL;
}

void loader_read_file(Loader *loader, const char *file, bool may_wait)
{
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        ConfigOrigin origin;

        origin_set(origin, file, 0);
        int r = may_wait ? read_file_waiting(file, CONFIG_MAX_FILE_BYTES, INPUT_TIMEOUT_NS, &text, &size)
                         : read_file_at(AT_FDCWD, file, CONFIG_MAX_FILE_BYTES, &text, &size);
        if (r == -ETIMEDOUT) {
                config_fault(loader->faults, r, origin, "nothing came for 10 s; close what writes into it");
                return;
        }
        if (r < 0) {
                config_fault(loader->faults, r, origin, "cannot be read: %s%s", strerror(-r),
                             r == -EFBIG ? "; a configuration has at most 1 MiB" : "");
                return;
        }

        Reader reader = { .loader = loader, .at = text, .end = text + size, .where = BEFORE_SECTIONS };
        loader->file = file;
        memset(loader->seen, 0, sizeof loader->seen);
        memset(loader->seen_profiles, 0, sizeof loader->seen_profiles);
        memset(loader->seen_targets, 0, sizeof loader->seen_targets);

        const char *nul = memchr(text, '\0', size);
        if (nul) {
                for (const char *p = text; p < nul; p++)
                        reader.line += *p == '\n';
                reader.line++;
                reader_fault(&reader, "a NUL byte; the file must be plain text");
                return;
        }
        if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
                reader.at += 3;
#ifdef HAVE_INI_MAX_LINE
        ini_max_line = LINE_MAX_BYTES;
#endif
        r = ini_parse_stream(read_line, &reader, handle, &reader);
        if (r == -2 || reader.out_of_memory)
                loader->faults->out_of_memory = true;
}
