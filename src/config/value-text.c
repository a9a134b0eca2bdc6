/* SPDX-License-Identifier: Apache-2.0 */
/* Values that are text with a form of their own: addresses, host names, paths. Knows base. */

#include "config-internal.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/text.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#define SEPARATORS " \t,"
#define MAX_HOSTS 64
#define HOST_MAX 253 /* the longest name DNS can carry */

/* ---- paths ---- */

int path_normalize(const char *value, char **ret, char why[WHY_SIZE])
{
        size_t size = strlen(value);
        const char *wrong = NULL;

        if (value[0] != '/')
                wrong = "it is not absolute";
        else if (size >= PATH_MAX)
                wrong = "it is longer than 4095 bytes";
        else if (!utf8_is_valid(value, size))
                wrong = "it is not UTF-8";
        else if (value[size - 1] == ' ' || strstr(value, " ;"))
                wrong = "a blank at its end or before \";\" cannot be written in a configuration file";
        for (size_t i = 0; i < size && !wrong; i++)
                if (text_is_control(value[i]))
                        wrong = "it has a control character";
        if (wrong) {
                (void) snprintf(why, WHY_SIZE, "%s", wrong);
                return -EINVAL;
        }

        char *path = malloc(size + 1);
        if (!path)
                return -ENOMEM;
        char *out = path;
        for (const char *p = value; *p;) {
                size_t length = 0;

                p += strspn(p, "/");
                length = strcspn(p, "/");
                if (length > 0 && !(length == 1 && *p == '.')) {
                        *out++ = '/';
                        memcpy(out, p, length);
                        out += length;
                }
                p += length;
        }
        if (out == path)
                *out++ = '/';
        *out = '\0';
        *ret = path;
        return 0;
}

static int replace_text(char **at, char *text)
{
        free(*at);
        *at = text;
        return 0;
}

static int parse_path(const Parameter *parameter, void *field, const char *text, char why[WHY_SIZE])
{
        char *path = NULL;

        (void) parameter;
        int r = path_normalize(text, &path, why);
        return r < 0 ? r : replace_text(field, path);
}

static void print_text(const Parameter *parameter, const void *field, FILE *out)
{
        (void) parameter;
        (void) fputs(*(char *const *) field, out);
}

static void release_text(void *field)
{
        free(*(char **) field);
}

const ParameterType type_path = { "PATH", sizeof(char *), parse_path, print_text, release_text };

static int parse_device(const Parameter *parameter, void *field, const char *text, char why[WHY_SIZE])
{
        size_t length = strlen(text);

        (void) parameter;
        if (length == 0 || length > 255 || strpbrk(text, " \t") || strstr(text, "..") ||
            !utf8_is_valid(text, length))
                return -EINVAL;
        if (text[0] == '/' && strncmp(text, "/dev/", 5) != 0) {
                (void) snprintf(why, WHY_SIZE, "a device's path begins with /dev/");
                return -EINVAL;
        }
        char *device = strdup(text);
        return device ? replace_text(field, device) : -ENOMEM;
}

const ParameterType type_device = { "NAME", sizeof(char *), parse_device, print_text, release_text };

static int parse_name(const Parameter *parameter, void *field, const char *text, char why[WHY_SIZE])
{
        (void) parameter;
        (void) why;
        if (!name_is_valid(text))
                return -EINVAL;
        memcpy(field, text, strlen(text) + 1);
        return 0;
}

static void print_name(const Parameter *parameter, const void *field, FILE *out)
{
        (void) parameter;
        (void) fputs(field, out);
}

const ParameterType type_name = { "NAME", NAME_SIZE, parse_name, print_name, NULL };

/* ---- lists ---- */

/* Copies the next word of *P, at most SIZE - 1 bytes; its length, 0 at the end, SIZE when it does not fit. */
static size_t next_word(const char **p, char *buf, size_t size)
{
        const char *word = *p + strspn(*p, SEPARATORS);
        size_t length = strcspn(word, SEPARATORS);

        *p = word + length;
        if (length >= size)
                return size;
        memcpy(buf, word, length);
        buf[length] = '\0';
        return length;
}

/* ---- where to listen ---- */

static int wrong_address(char why[WHY_SIZE], const char *word, const char *what)
{
        char quote[QUOTED_SIZE];

        (void) snprintf(why, WHY_SIZE, "\"%s\" %s", config_quoted(quote, word), what);
        return -EINVAL;
}

static int take_address(const char *word, Address *ret, char why[WHY_SIZE])
{
        _cleanup_free_ char *path = NULL, *text = NULL;
        const char *wrong = NULL;

        if (strncmp(word, "unix:", 5) == 0) {
                int r = path_normalize(word + 5, &path, why);
                if (r < 0)
                        return r;
                if (asprintf(&text, "unix:%s", path) < 0)
                        return -ENOMEM;
        }
        if (address_parse(text ? text : word, ret, &wrong) < 0)
                return wrong_address(why, word, wrong);
        if (ret->any.sa_family != AF_UNIX && address_port(ret) == 0)
                return wrong_address(why, word, "has no port from 1 to 65535");
        return 0;
}

/* Adds the addresses in VALUE, separated by spaces or commas. */
static int parse_listen(const Parameter *parameter, void *field, const char *value, char why[WHY_SIZE])
{
        Config *config = field;
        char word[sizeof "unix:" + PATH_MAX];
        const char *p = value;
        size_t n_before = config->n_listen;

        (void) parameter;
        for (size_t length = 0; (length = next_word(&p, word, sizeof word)) > 0;) {
                Address address;

                if (length == sizeof word)
                        return -EINVAL;
                int r = take_address(word, &address, why);
                if (r < 0)
                        return r;
                for (size_t i = 0; i < config->n_listen; i++)
                        if (address_equal(&config->listen[i], &address))
                                return wrong_address(why, word, "is given twice");
                if (config->n_listen == CONFIG_MAX_LISTEN) {
                        (void) snprintf(why, WHY_SIZE, "more than %d addresses", CONFIG_MAX_LISTEN);
                        return -EINVAL;
                }
                config->listen[config->n_listen++] = address;
        }
        return config->n_listen > n_before ? 0 : -EINVAL;
}

static void print_listen(const Parameter *parameter, const void *field, FILE *out)
{
        const Config *config = field;
        char text[ADDRESS_TEXT_SIZE];

        (void) parameter;
        for (size_t i = 0; i < config->n_listen; i++) {
                address_format(&config->listen[i], text);
                (void) fprintf(out, "%s%s", i > 0 ? " " : "", text);
        }
}

static void forget_listen(void *field)
{
        ((Config *) field)->n_listen = 0;
}

const ParameterType type_listen = { "ADDR", 0, parse_listen, print_listen, forget_listen };

/* ---- host names ---- */

/* A name, an IPv4 address or an IPv6 address in brackets, as a browser's Host header has it before the
 * port. */
static bool host_is_valid(const char *host, size_t length)
{
        unsigned char address[sizeof(struct in6_addr)];
        char inner[INET6_ADDRSTRLEN];

        if (host[0] == '[') {
                if (length < 3 || length - 2 >= sizeof inner || host[length - 1] != ']')
                        return false;
                memcpy(inner, host + 1, length - 2);
                inner[length - 2] = '\0';
                return inet_pton(AF_INET6, inner, address) == 1;
        }
        return strspn(host, "abcdefghijklmnopqrstuvwxyz0123456789-._") == length && host[0] != '.' &&
               host[0] != '-' && !strstr(host, "..");
}

static int parse_hosts(const Parameter *parameter, void *field, const char *value, char why[WHY_SIZE])
{
        char word[HOST_MAX + 1];
        const char *p = value;
        char *out = NULL;
        unsigned n = 0;

        (void) parameter;
        _cleanup_free_ char *hosts = malloc(strlen(value) + 1);
        if (!hosts)
                return -ENOMEM;
        out = hosts;
        for (size_t length = 0; (length = next_word(&p, word, sizeof word)) > 0;) {
                if (length == sizeof word) {
                        (void) snprintf(why, WHY_SIZE, "a name is longer than %d bytes", HOST_MAX);
                        return -EINVAL;
                }
                for (size_t i = 0; i < length; i++)
                        word[i] = (char) tolower((unsigned char) word[i]);
                if (!host_is_valid(word, length))
                        return wrong_address(why, word,
                                             "is not a host name (without port and without wildcards)");
                if (++n > MAX_HOSTS) {
                        (void) snprintf(why, WHY_SIZE, "more than %d names", MAX_HOSTS);
                        return -EINVAL;
                }
                if (out > hosts)
                        *out++ = ' ';
                memcpy(out, word, length);
                out += length;
        }
        *out = '\0';
        if (n == 0)
                return -EINVAL;
        return replace_text(field, TAKE_PTR(hosts));
}

const ParameterType type_hosts = { "HOSTS", sizeof(char *), parse_hosts, print_text, release_text };
