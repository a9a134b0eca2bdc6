/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration as a whole: defaults, files in their order, options. */

#include "config-internal.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* ---- defaults ---- */

/* A service manager's folder for sockets, when it gives one that can be. */
static void add_default_socket(Config *config, const char *runtime_dir)
{
        bool is_one = runtime_dir && *runtime_dir == '/' && !strchr(runtime_dir, ':');
        _cleanup_free_ char *text = is_one ? path_format("unix:%s/tierprobed.sock", runtime_dir) : NULL;

        if (text && address_parse(text, &config->listen[config->n_listen], NULL) == 0)
                config->n_listen++;
}

static Config *config_new_default(const char *runtime_dir)
{
        _cleanup_(config_freep) Config *config = calloc(1, sizeof *config);
        const Profile *profile = NULL;

        if (!config)
                return NULL;
        if (address_parse(LISTEN_DEFAULT, &config->listen[0], NULL) == 0)
                config->n_listen = 1;
        add_default_socket(config, runtime_dir);
        config->sample_interval_ns = NS_PER_S;
        config->history_ns = 24 * 3600 * NS_PER_S;
        config->limits = limits_default();
        config->schedule = SCHEDULE_RULES_DEFAULT;
        config->guard = GUARD_RULES_DEFAULT;
        config->keep = HISTORY_RULES_DEFAULT;
        for (size_t i = 0; (profile = profile_built_in(i)); i++)
                config->profiles[config->n_profiles++] = *profile;
        return TAKE_PTR(config);
}

static void section_clear(Section section, void *base)
{
        for (size_t i = 0; config_sections[section].parameter(i); i++)
                parameter_clear(config_sections[section].parameter(i), base);
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
                if (!config_sections[section].named)
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

static int is_drop_in(const struct dirent *entry)
{
        size_t length = strlen(entry->d_name);

        return entry->d_name[0] != '.' && length > 5 && strcmp(entry->d_name + length - 5, ".conf") == 0;
}

static void read_drop_ins(Loader *loader, const char *file)
{
        _cleanup_free_ char *folder = path_format("%s.d", file);
        struct dirent **entries = NULL;
        ConfigOrigin origin;

        int n = folder ? scandir(folder, &entries, is_drop_in, alphasort) : -1;
        if (!folder || (n < 0 && errno == ENOMEM)) {
                loader->faults->out_of_memory = true;
                return;
        }
        origin_set(origin, folder, 0);
        if (n < 0 && errno != ENOENT && errno != ENOTDIR)
                config_fault(loader->faults, -errno, origin, "cannot be read: %s", strerror(errno));
        if (n > CONFIG_MAX_DROP_INS)
                config_fault(loader->faults, -EINVAL, origin, "more than %d drop-in files",
                             CONFIG_MAX_DROP_INS);
        for (int i = 0; i < n; i++) {
                _cleanup_free_ struct dirent *entry = entries[i];
                _cleanup_free_ char *path = path_format("%s/%s", folder, entry->d_name);

                if (!path)
                        loader->faults->out_of_memory = true;
                else if (n <= CONFIG_MAX_DROP_INS)
                        loader_read_file(loader, path, false);
        }
        free(entries);
}

/* ---- options ---- */

static void take_path_option(Loader *loader, const char *path)
{
        _cleanup_free_ char *absolute = NULL;
        char why[WHY_SIZE] = "", quote[QUOTED_SIZE];
        char *normal = NULL;

        targets_clear(loader->config);
        int r = path[0] ? path_absolute(path, &absolute) : -EINVAL;
        if (r >= 0)
                r = path_normalize(absolute, &normal, why);
        if (r < 0) {
                config_fault(loader->faults, r, "--path",
                             "\"%s\" is not right: %s; give an existing directory",
                             config_quoted(quote, path), why[0] ? why : strerror(-r));
                return;
        }
        TargetConfig *target = &loader->config->targets[0];
        target->device = strdup("auto");
        target->path = normal;
        loader->config->n_targets = 1;
        if (!target->device)
                loader->faults->out_of_memory = true;
        (void) snprintf(target->name, sizeof target->name, "cache");
        (void) snprintf(target->profile, sizeof target->profile, "%s", OFFICIAL_PROFILE_DEFAULT);
        (void) snprintf(target->origin, sizeof target->origin, "--path");
}

static void take_listen_option(Loader *loader, const char *listen)
{
        char why[WHY_SIZE] = "", quote[QUOTED_SIZE];

        const Parameter *parameter =
                config_sections[SECTION_HTTP].parameter(section_find(SECTION_HTTP, "listen"));
        parameter_clear(parameter, loader->config);
        int r = parameter_set(parameter, loader->config, listen, why);
        if (r == -ENOMEM)
                loader->faults->out_of_memory = true;
        else if (r < 0)
                config_fault(loader->faults, r, "--listen", "\"%s\" is not right%s%s; give %s",
                             config_quoted(quote, listen), why[0] ? ": " : "", why, parameter->right);
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
                        config_fault(
                                loader->faults, -ENOENT, origin,
                                "no such file; write it with a [target cache] section and its path, or start "
                                "with --path DIR");
                return;
        }
        loader_read_file(loader, file, true);
        read_drop_ins(loader, file);
        if (need_targets && !options->path && !loader->config->n_targets && !loader->faults->n)
                config_fault(
                        loader->faults, -EINVAL, origin,
                        "no target; add a section [target cache] with path = DIR, or start with --path DIR");
}

static int load(const ConfigOptions *options, bool need_targets, Config **ret, char **ret_error)
{
        Faults faults = { 0 };
        _cleanup_free_ Loader *loader = calloc(1, sizeof *loader);
        _cleanup_(config_freep) Config *config = config_new_default(options->runtime_dir);

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

        loader_settle(loader, need_targets);

        if (faults.n_left_out) {
                unsigned n = faults.n_left_out;

                faults.n = 0; /* one line more */
                config_fault(&faults, faults.error, options->file ? options->file : CONFIG_FILE_DEFAULT,
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
