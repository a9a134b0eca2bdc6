/* SPDX-License-Identifier: Apache-2.0 */
/* `tierprobe target add|prepare`: makes directories ready for the service, as root. Knows config. */

#include "target-prepare.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/cli.h"
#include "tierprobe/clock.h"
#include "tierprobe/config.h"
#include "tierprobe/file.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREPARE_TIMEOUT_NS (5 * NS_PER_S)

static const char help[] = "tierprobe target add PATH [--name NAME] [OPTION...]\n"
                           "tierprobe target prepare [OPTION...]\n"
                           "Makes a directory ready for the service, as root: the working folder "
                           "PATH/.tierprobe for its user, a way\n"
                           "through to it (an access list entry that lets this user pass, where owners and "
                           "modes do not), and a write\n"
                           "that proves it. 'add' then names PATH as a target in a file of its own beside "
                           "the configuration; 'prepare'\n"
                           "does the first part for every target of the configuration, as the service itself "
                           "does at each start.\n\n"
                           "  --name NAME     the target's name (the last part of PATH)\n"
                           "  --user USER     the service's user (tierprobe)\n"
                           "  --config FILE   the configuration (" CONFIG_FILE_DEFAULT ")\n"
                           "  --help          this text\n"
                           "  --version       the version\n\n"
                           "Exit status: 0 all is ready, 1 something is not mounted or does not answer now, "
                           "3 something is wrong.\n";

typedef struct TargetOptions {
        const char *name, *user, *config;
} TargetOptions;

enum { OPT_NAME = 256, OPT_USER, OPT_CONFIG, OPT_VERSION };

static const struct option long_options[] = {
        { "name", required_argument, NULL, OPT_NAME },
        { "user", required_argument, NULL, OPT_USER },
        { "config", required_argument, NULL, OPT_CONFIG },
        { "version", no_argument, NULL, OPT_VERSION },
        { "help", no_argument, NULL, 'h' },
        { 0 },
};

/* 0: go on, 1: all is done, negative: the usage was wrong (and that was said). */
static int parse_options(int argc, char *argv[], TargetOptions *options)
{
        int c;

        optind = 0; /* a test may call this more than once */
        while ((c = getopt_long(argc, argv, "h", long_options, NULL)) >= 0)
                switch (c) {
                case OPT_NAME:
                        options->name = optarg;
                        break;
                case OPT_USER:
                        options->user = optarg;
                        break;
                case OPT_CONFIG:
                        options->config = optarg;
                        break;
                case OPT_VERSION:
                        (void) printf("tierprobe %s\n", TIERPROBE_VERSION);
                        return 1;
                case 'h':
                        (void) fputs(help, stdout);
                        return 1;
                default: /* getopt_long() has said what is wrong */
                        return -EINVAL;
                }
        return 0;
}

static int usage(const char *what)
{
        (void) fprintf(stderr, "tierprobe target: %s\nTry 'tierprobe target --help'.\n", what);
        return CLI_UNKNOWN;
}

/* Returns the worst exit status of the N paths; each says what came of it. */
static int prepare(const char *const *paths, size_t n, const char *user)
{
        int status = CLI_PASS;

        if (n == 0)
                return CLI_PASS;
        _cleanup_free_ Preparation *them = calloc(n, sizeof *them);
        if (!them) {
                (void) fprintf(stderr, "tierprobe target: out of memory\n");
                return CLI_UNKNOWN;
        }
        target_prepare(paths, n, user, PREPARE_TIMEOUT_NS, them);
        for (size_t i = 0; i < n; i++) {
                int its = them[i].result == PREPARED         ? CLI_PASS
                          : them[i].result == PREPARE_FAILED ? CLI_UNKNOWN
                                                             : CLI_WARNING;

                (void) fprintf(its == CLI_PASS ? stdout : stderr, "%s: %s\n", paths[i], them[i].sentence);
                if (its > status)
                        status = its;
        }
        return status;
}

static int prepare_all(const TargetOptions *options)
{
        _cleanup_(config_freep) Config *config = NULL;
        _cleanup_free_ char *error = NULL;
        const char *paths[CONFIG_MAX_TARGETS];

        int r = config_load(&(ConfigOptions){ .file = options->config }, &config, &error);
        if (r < 0) {
                (void) fprintf(stderr, "%s\n", error ? error : strerror(-r));
                return CLI_UNKNOWN;
        }
        for (size_t i = 0; i < config->n_targets; i++)
                paths[i] = config->targets[i].path;
        return prepare(paths, config->n_targets, options->user);
}

/* ---- add ---- */

/* A target's name out of the last part of a path: "/db2/cache" gives "cache". */
static void name_from_path(const char *path, char ret[NAME_SIZE])
{
        const char *last = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
        size_t n = 0;

        for (; *last && n + 1 < NAME_SIZE; last++)
                if (name_is_valid((const char[]){ *last, '\0' }))
                        ret[n++] = *last;
        ret[n] = '\0';
}

/* What the configuration says of target NAME: taken over, as it is; another path's, which is said; or none.
 */
typedef enum Naming { NAMING_FREE, NAMING_DONE, NAMING_TAKEN } Naming;

static Naming find_naming(const TargetOptions *options, const char *name, const char *path)
{
        _cleanup_(config_freep) Config *config = NULL;
        _cleanup_free_ char *error = NULL;

        /* One that is not valid yet, for want of a target, may become so. */
        if (config_load(&(ConfigOptions){ .file = options->config }, &config, &error) < 0)
                return NAMING_FREE;
        const TargetConfig *target = config_find_target(config, name);
        if (!target)
                return NAMING_FREE;
        if (strcmp(target->path, path) == 0)
                return NAMING_DONE;
        (void) fprintf(stderr, "tierprobe target: target %s is %s already (%s); give another --name\n", name,
                       target->path, target->origin);
        return NAMING_TAKEN;
}

static int write_section(const TargetOptions *options, const char *name, const char *path)
{
        _cleanup_(config_freep) Config *config = NULL;
        _cleanup_free_ char *error = NULL;
        _cleanup_free_ char *folder = path_format("%s.d", options->config);
        _cleanup_free_ char *file = path_format("%s.d/target-%s.conf", options->config, name);
        _cleanup_free_ char *text = path_format("[target %s]\npath = %s\n", name, path);

        if (!folder || !file || !text)
                return CLI_UNKNOWN;
        int r = mkdir(folder, 0755) < 0 && errno != EEXIST
                        ? -errno
                        : write_file_atomic_at(AT_FDCWD, file, text, strlen(text), 0644);
        if (r < 0) {
                (void) fprintf(stderr, "tierprobe target: %s: %s\n", file, strerror(-r));
                return CLI_UNKNOWN;
        }
        r = config_load(&(ConfigOptions){ .file = options->config }, &config, &error);
        if (r < 0) {
                (void) unlink(file);
                (void) fprintf(stderr, "%s\n", error ? error : strerror(-r));
                return CLI_UNKNOWN;
        }
        (void) printf("%s names it target %s; 'systemctl reload-or-restart tierprobed' takes it\n", file,
                      name);
        return CLI_PASS;
}

static int add(const TargetOptions *options, const char *path)
{
        char name[NAME_SIZE], whole[PATH_MAX];

        if (!realpath(path, whole)) {
                (void) fprintf(stderr, "tierprobe target: %s: %s\n", path, strerror(errno));
                return CLI_UNKNOWN;
        }
        /* A link stays one: that it may lead elsewhere some day is what the daemon looks out for. */
        if (path[0] == '/')
                (void) snprintf(whole, sizeof whole, "%s", path);
        if (options->name)
                (void) snprintf(name, sizeof name, "%s", options->name);
        else
                name_from_path(whole, name);
        if (!name_is_valid(name))
                return usage("give the target a --name of letters, digits, '-', '_' and '.'");
        int status = prepare((const char *const[]){ whole }, 1, options->user), written = CLI_PASS;
        if (status == CLI_UNKNOWN)
                return status;
        switch (find_naming(options, name, whole)) {
        case NAMING_FREE:
                written = write_section(options, name, whole);
                break;
        case NAMING_DONE:
                (void) printf("it is target %s already\n", name);
                break;
        case NAMING_TAKEN:
                written = CLI_UNKNOWN;
                break;
        }
        return written != CLI_PASS ? written : status;
}

int cli_target(int argc, char *argv[])
{
        TargetOptions options = { .user = "tierprobe", .config = CONFIG_FILE_DEFAULT };
        int r = parse_options(argc, argv, &options);

        if (r != 0)
                return r < 0 ? usage("an option is wrong") : CLI_PASS;
        const char *verb = optind < argc ? argv[optind] : "";
        int n = argc - optind - 1;

        if (strcmp(verb, "prepare") == 0 ? n != 0 : strcmp(verb, "add") != 0 || n != 1)
                return usage("write 'target add PATH' or 'target prepare'");
        if (geteuid() != 0)
                return usage("this is for root: it makes a folder for another user");
        return strcmp(verb, "add") == 0 ? add(&options, argv[optind + 1]) : prepare_all(&options);
}
