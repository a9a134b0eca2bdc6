/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration as a whole: defaults, files in their order, options, and what must fit together. Knows
 * base. */

#include "config-internal.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/history.h"
#include "tierprobe/units.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

/* ---- defaults ---- */

typedef struct BuiltIn {
        const char *name;
        uint64_t count;
        ProbePattern pattern;
        uint64_t duration_ns;
        unsigned streams;
        bool ramp;
} BuiltIn;

static const BuiltIn built_in_profiles[] = {
        { "procedure", 10000, PATTERN_ZERO, 0, 1, false },
        { "quick", 1000, PATTERN_ZERO, 0, 1, false },
        { "random", 10000, PATTERN_RANDOM, 0, 1, false },
        { "sustained", 10000, PATTERN_ZERO, 600 * NS_PER_S, 1, false },
        { "ramp", 10000, PATTERN_ZERO, 5 * NS_PER_S, 64, true },
};

static Config *config_new_default(void)
{
        _cleanup_(config_freep) Config *config = calloc(1, sizeof *config);

        if (!config)
                return NULL;
        if (address_parse(LISTEN_DEFAULT, &config->listen[0], NULL) == 0)
                config->n_listen = 1;
        config->sample_interval_ns = NS_PER_S;
        config->history_ns = 24 * 3600 * NS_PER_S;
        config->limits = limits_default();
        config->schedule = SCHEDULE_RULES_DEFAULT;
        config->guard = GUARD_RULES_DEFAULT;
        config->keep = HISTORY_RULES_DEFAULT;
        for (size_t i = 0; i < ELEMENTSOF(built_in_profiles); i++) {
                const BuiltIn *from = &built_in_profiles[i];
                Profile *profile = &config->profiles[config->n_profiles++];

                *profile = PROFILE_PROCEDURE;
                (void) snprintf(profile->name, sizeof profile->name, "%s", from->name);
                profile->count = from->count;
                profile->streams = from->streams;
                profile->ramp = from->ramp;
                profile->pattern = from->pattern;
                profile->duration_ns = from->duration_ns;
        }
        return TAKE_PTR(config);
}

static void section_clear(Section section, void *base)
{
        for (size_t i = 0; sections[section].parameter(i); i++)
                parameter_clear(sections[section].parameter(i), base);
}

static void targets_clear(Config *config)
{
        while (config->n_targets > 0) {
                TargetConfig *target = &config->targets[--config->n_targets];

                section_clear(SECTION_TARGET, target);
                memset(target, 0, sizeof *target);
        }
}

Config *config_free(Config *config)
{
        if (!config)
                return NULL;
        for (Section section = 0; section < _SECTION_MAX; section++)
                if (!sections[section].named)
                        section_clear(section, section_base(section, config));
        targets_clear(config);
        free(config);
        return NULL;
}

void config_freep(Config **config)
{
        (void) config_free(*config);
}

/* ---- files ---- */

typedef struct Names {
        char *items[CONFIG_MAX_DROP_INS];
        size_t n;
} Names;

static void names_clear(Names *names)
{
        while (names->n > 0)
                free(names->items[--names->n]);
}

static int compare_names(const void *a, const void *b)
{
        return strcmp(*(char *const *) a, *(char *const *) b);
}

static bool is_drop_in(const char *name)
{
        size_t length = strlen(name);

        return name[0] != '.' && length > 5 && strcmp(name + length - 5, ".conf") == 0;
}

static void list_drop_ins(Loader *loader, const char *folder, Names *names)
{
        ConfigOrigin origin;
        const struct dirent *entry = NULL;

        origin_set(origin, folder, 0);
        _cleanup_closedir_ DIR *dir = opendir(folder);
        if (!dir) {
                if (errno != ENOENT && errno != ENOTDIR)
                        fault(loader->faults, -errno, origin, "cannot be read: %s", strerror(errno));
                return;
        }
        /* The order of a folder is any; only the whole list can be sorted. */
        while ((entry = readdir(dir))) { /* NOLINT(concurrency-mt-unsafe): one thread */
                if (!is_drop_in(entry->d_name))
                        continue;
                if (names->n == CONFIG_MAX_DROP_INS) {
                        fault(loader->faults, -EINVAL, origin, "more than %d drop-in files",
                              CONFIG_MAX_DROP_INS);
                        return;
                }
                char *name = strdup(entry->d_name);
                if (!name) {
                        loader->faults->out_of_memory = true;
                        return;
                }
                names->items[names->n++] = name;
        }
        qsort(names->items, names->n, sizeof names->items[0], compare_names);
}

static void read_drop_ins(Loader *loader, const char *file)
{
        _cleanup_(names_clear) Names names = { .n = 0 };

        _cleanup_free_ char *folder = NULL;
        if (asprintf(&folder, "%s.d", file) < 0) {
                folder = NULL;
                loader->faults->out_of_memory = true;
                return;
        }
        list_drop_ins(loader, folder, &names);
        for (size_t i = 0; i < names.n; i++) {
                _cleanup_free_ char *path = NULL;

                if (asprintf(&path, "%s/%s", folder, names.items[i]) < 0) {
                        path = NULL;
                        loader->faults->out_of_memory = true;
                        return;
                }
                loader_read_file(loader, path, false);
        }
}

/* ---- options ---- */

/* PATH as seen from the current folder. Its leading ".." are taken off the folder's own name, which
 * getcwd() gives without symbolic links; any other stays for the kernel, which knows where links lead. */
static int make_absolute(const char *path, char **ret)
{
        char folder[PATH_MAX];

        if (path[0] == '/') {
                *ret = strdup(path);
                return *ret ? 0 : -ENOMEM;
        }
        if (!getcwd(folder, sizeof folder))
                return -errno;
        for (;;) {
                path += strspn(path, "/");
                size_t length = strcspn(path, "/");

                if (length == 2 && strncmp(path, "..", 2) == 0)
                        *strrchr(folder, '/') = '\0';
                else if (length != 1 || *path != '.')
                        break;
                if (!strchr(folder, '/'))
                        strcpy(folder, "/"); /* NOLINT(clang-analyzer-security.insecureAPI.strcpy): fits */
                path += length;
        }
        return asprintf(ret, "%s/%s", folder, path) < 0 ? -ENOMEM : 0;
}

static void take_path_option(Loader *loader, const char *path)
{
        _cleanup_free_ char *absolute = NULL;
        char why[WHY_SIZE] = "", quote[QUOTED_SIZE];
        char *normal = NULL;

        targets_clear(loader->config);
        int r = path[0] ? make_absolute(path, &absolute) : -EINVAL;
        if (r >= 0)
                r = path_normalize(absolute, &normal, why);
        if (r < 0) {
                fault(loader->faults, r, "--path", "\"%s\" is not right: %s; give an existing directory",
                      quoted(quote, path), why[0] ? why : strerror(-r));
                return;
        }
        TargetConfig *target = &loader->config->targets[0];
        target->device = strdup("auto");
        target->path = normal;
        loader->config->n_targets = 1;
        if (!target->device)
                loader->faults->out_of_memory = true;
        (void) snprintf(target->name, sizeof target->name, "cache");
        (void) snprintf(target->origin, sizeof target->origin, "--path");
}

static void take_listen_option(Loader *loader, const char *listen)
{
        char why[WHY_SIZE] = "", quote[QUOTED_SIZE];

        const Parameter *parameter = sections[SECTION_HTTP].parameter(section_find(SECTION_HTTP, "listen"));
        parameter_clear(parameter, loader->config);
        int r = parameter_set(parameter, loader->config, listen, why);
        if (r == -ENOMEM)
                loader->faults->out_of_memory = true;
        else if (r < 0)
                fault(loader->faults, r, "--listen", "\"%s\" is not right%s%s; give %s",
                      quoted(quote, listen), why[0] ? ": " : "", why, parameter->right);
}

/* ---- what must fit together ---- */

/* Where a key of an unnamed section was set; NULL: it has its default. */
static const char *key_origin(const Loader *loader, Section section, const char *name)
{
        const char *origin = loader->origins[section][section_find(section, name)];

        return origin[0] ? origin : NULL;
}

uint64_t config_ring_capacity(const Config *config)
{
        uint64_t n = (config->history_ns + config->sample_interval_ns - 1) / config->sample_interval_ns;

        return n < RING_CAPACITY_MIN ? RING_CAPACITY_MIN : n;
}

static void check_sampling(const Loader *loader)
{
        const char *origin = key_origin(loader, SECTION_SAMPLING, "history");

        if (!origin)
                origin = key_origin(loader, SECTION_SAMPLING, "interval");
        if (origin && config_ring_capacity(loader->config) > RING_CAPACITY_MAX)
                fault(loader->faults, -EINVAL, origin,
                      "history and interval of [sampling] make %llu samples; at most %d can be kept: shorten "
                      "history or lengthen interval",
                      (unsigned long long) config_ring_capacity(loader->config), RING_CAPACITY_MAX);
}

static void check_tls(const Loader *loader)
{
        const Config *config = loader->config;
        const char *present = config->tls_cert ? "tls_cert" : "tls_key";
        const char *origin = key_origin(loader, SECTION_HTTP, present);

        if (origin && !config->tls_cert != !config->tls_key)
                fault(loader->faults, -EINVAL, origin, "%s is set but %s is not; TLS needs both", present,
                      config->tls_cert ? "tls_key" : "tls_cert");
}

static void check_profiles(const Loader *loader)
{
        const Config *config = loader->config;
        char limit[FORMAT_SIZE];

        for (size_t i = 0; i < config->n_profiles; i++) {
                const Profile *profile = &config->profiles[i];
                const char *origin = loader->profile_origins[i];

                /* Those built in are not the reader's fault; a run of one simply ends at the limit. */
                if (origin[0] && profile->duration_ns > config->guard.max_duration_ns)
                        fault(loader->faults, -EINVAL, origin,
                              "the duration of [profile %s] is longer than max_duration of [guard], %s; "
                              "change one of them",
                              profile->name, format_duration(limit, config->guard.max_duration_ns));
        }
}

static void check_targets(const Loader *loader)
{
        const Config *config = loader->config;

        for (size_t i = 0; i < config->n_targets; i++) {
                const TargetConfig *target = &config->targets[i];

                if (!target->path) {
                        fault(loader->faults, -EINVAL, target->origin,
                              "[target %s] has no path; add path = DIR, the absolute path of the cache",
                              target->name);
                        continue;
                }
                for (size_t j = 0; j < i; j++)
                        if (config->targets[j].path && strcmp(config->targets[j].path, target->path) == 0)
                                fault(loader->faults, -EINVAL, target->origin,
                                      "[target %s] and [target %s] (%s) have the same path; a path has one "
                                      "target",
                                      target->name, config->targets[j].name, config->targets[j].origin);
        }
}

/* ---- all together ---- */

/* Whether FILE is there. What else may be wrong with it, reading it will tell. */
static bool file_exists(const char *file)
{
        return access(file, F_OK) == 0 || errno != ENOENT;
}

static void load_files(Loader *loader, const ConfigOptions *options, bool need_targets)
{
        const char *file = options->file ? options->file : CONFIG_FILE_DEFAULT;
        ConfigOrigin origin;

        origin_set(origin, file, 0);
        if (!options->file && !file_exists(file)) {
                if (need_targets && !options->path)
                        fault(loader->faults, -ENOENT, origin,
                              "no such file; write it with a [target cache] section and its path, or start "
                              "with --path DIR");
                return;
        }
        loader_read_file(loader, file, true);
        read_drop_ins(loader, file);
        if (need_targets && !options->path && !loader->config->n_targets && !loader->faults->n)
                fault(loader->faults, -EINVAL, origin,
                      "no target; add a section [target cache] with path = DIR, or start with --path DIR");
}

/* An unset jitter must not blur a short schedule. */
static void fill_in_jitter(Loader *loader)
{
        ScheduleRules *rules = &loader->config->schedule;

        if (!key_origin(loader, SECTION_SCHEDULE, "jitter") && rules->interval_ns &&
            rules->jitter_ns > rules->interval_ns / 10)
                rules->jitter_ns = rules->interval_ns / 10;
}

static int load(const ConfigOptions *options, bool need_targets, Config **ret, char **ret_error)
{
        Faults faults = { 0 };
        _cleanup_free_ Loader *loader = calloc(1, sizeof *loader);
        _cleanup_(config_freep) Config *config = config_new_default();

        *ret_error = NULL;
        if (!loader || !config)
                return -ENOMEM;
        loader->config = config;
        loader->faults = &faults;
        load_files(loader, options, need_targets);
        if (options->path)
                take_path_option(loader, options->path);
        if (options->listen)
                take_listen_option(loader, options->listen);

        fill_in_jitter(loader);
        check_sampling(loader);
        check_tls(loader);
        check_profiles(loader);
        if (need_targets)
                check_targets(loader);
        for (size_t i = 0; i < config->n_profiles; i++)
                config->profiles[i].certifying = profile_is_procedure(&config->profiles[i]);

        if (faults.n_left_out) {
                unsigned n = faults.n_left_out;

                faults.n = 0; /* one line more */
                fault(&faults, faults.error, options->file ? options->file : CONFIG_FILE_DEFAULT,
                      "and %u faults more", n);
                faults.n = CONFIG_MAX_FAULTS;
        }
        if (faults.out_of_memory) {
                free(faults.text);
                return -ENOMEM;
        }
        if (faults.n) {
                *ret_error = faults.text;
                return faults.error;
        }
        *ret = TAKE_PTR(config);
        return 0;
}

bool config_can_be_reread(const ConfigOptions *options)
{
        struct stat st;

        return stat(options->file ? options->file : CONFIG_FILE_DEFAULT, &st) < 0 || S_ISREG(st.st_mode);
}

int config_load(const ConfigOptions *options, Config **ret, char **ret_error)
{
        return load(options, true, ret, ret_error);
}

int config_load_without_targets(const ConfigOptions *options, Config **ret, char **ret_error)
{
        return load(options, false, ret, ret_error);
}

/* ---- looking things up ---- */

const Profile *config_find_profile(const Config *config, const char *name)
{
        for (size_t i = 0; i < config->n_profiles; i++)
                if (strcmp(config->profiles[i].name, name) == 0)
                        return &config->profiles[i];
        return NULL;
}

const TargetConfig *config_find_target(const Config *config, const char *name)
{
        for (size_t i = 0; i < config->n_targets; i++)
                if (strcmp(config->targets[i].name, name) == 0)
                        return &config->targets[i];
        return NULL;
}
