/* SPDX-License-Identifier: Apache-2.0 */
/* Whether configured paths can be targets at all, and whether the host shows what is to be watched. Looks at
 * paths through children, at control groups itself. */

#include "paths.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/condition.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* One path of the configuration. */
typedef struct Entry {
        PathCheck *check;
        Look *look;  /* NULL: need not be looked at, or has been */
        char *fault; /* NULL: none, or not known yet */
} Entry;

struct PathCheck {
        const Config *config;
        bool writable;
        bool sees_no_pressure; /* the configuration wants others' io.pressure, and there is none */
        PathCheckDone done;
        void *userdata;
        Entry entries[CONFIG_MAX_TARGETS];
        size_t n_waiting;
        sd_event_source *timer; /* calls done */
};

const TargetConfig *paths_find_same(const Config *config, const TargetConfig *target)
{
        const TargetConfig *same = config ? config_find_target(config, target->name) : NULL;

        return same && strcmp(same->path, target->path) == 0 ? same : NULL;
}

/* The faults in the order of the configuration; NULL when there is none, or no memory. */
static char *list_faults(const PathCheck *check)
{
        char *text = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);

        if (!out)
                return NULL;
        for (size_t i = 0; i < check->config->n_targets; i++)
                if (check->entries[i].fault)
                        (void) fprintf(out, "%s: %s\n", check->config->targets[i].origin,
                                       check->entries[i].fault);
        if (check->sees_no_pressure)
                (void) fprintf(
                        out,
                        "[guard] abort_io_pressure = %g: no control group beside the own one shows its "
                        "io.pressure here; it takes version 2 of control groups, a kernel with PSI "
                        "(psi=1) and a view of the whole host, else leave the key out\n",
                        check->config->guard.abort_io_pressure);
        if (fclose(out) != 0 || size == 0) {
                free(text);
                return NULL;
        }
        text[size - 1] = '\0'; /* the last newline */
        return text;
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata)
{
        PathCheck *check = userdata;
        _cleanup_free_ char *faults = list_faults(check);

        (void) source;
        (void) usec;
        check->done(faults, check->userdata);
        return 0;
}

/* What only the device's owner can mend is told by the target. The configuration is right, and the other
 * targets are to go on. */
static bool is_fault_of_disk(int error)
{
        ReasonCode code = path_error_find(error).code;

        return (code == REASON_WRITE_ERROR && error != EROFS) || code == REASON_STALLED;
}

static void on_seen(Look *look, const PathFacts *facts, void *userdata)
{
        Entry *entry = userdata;
        PathCheck *check = entry->check;
        const TargetConfig *target = &check->config->targets[entry - check->entries];
        int error = facts->error != 0 ? facts->error : check->writable ? facts->write_error : 0;
        char detail[PATH_ERROR_SIZE];

        (void) look;
        if (error != 0 && !is_fault_of_disk(error)) {
                path_error_describe(detail, sizeof detail, target->path, error, &facts->denial);
                entry->fault = strdup(detail);
        }
        entry->look = look_free(entry->look);
        if (--check->n_waiting == 0)
                (void) sd_event_source_set_time(check->timer, 0);
}

static bool sees_no_pressure(const DeviceRoots *roots, const Config *config)
{
        OthersPressure pressure;

        if (config->guard.abort_io_pressure <= 0)
                return false;
        others_pressure_read(roots, &pressure);
        return !isfinite(pressure.percent);
}

int path_check_new(PathCheck **ret, sd_event *event, Looks *looks, const DeviceRoots *roots,
                   const Config *config, const Config *known, bool writable, uint64_t timeout_ns,
                   PathCheckDone done, void *userdata)
{
        _cleanup_(path_check_freep) PathCheck *check = calloc(1, sizeof *check);

        if (!check)
                return -ENOMEM;
        check->config = config;
        check->writable = writable;
        check->sees_no_pressure = sees_no_pressure(roots, config);
        check->done = done;
        check->userdata = userdata;
        for (size_t i = 0; i < config->n_targets; i++) {
                Entry *entry = &check->entries[i];

                entry->check = check;
                if (paths_find_same(known, &config->targets[i]))
                        continue;
                int r = look_new(&entry->look, looks, config->targets[i].path, timeout_ns, on_seen, entry);
                if (r < 0)
                        return r;
                /* That no child can be started now is no fault of the path. */
                if (look_ask(entry->look) < 0)
                        entry->look = look_free(entry->look);
                else
                        check->n_waiting++;
        }
        int r = sd_event_add_time_relative(event, &check->timer, CLOCK_MONOTONIC,
                                           check->n_waiting > 0 ? timeout_ns / NS_PER_US : 0, 1, on_time,
                                           check);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(check);
        return 0;
}

PathCheck *path_check_free(PathCheck *check)
{
        if (!check)
                return NULL;
        for (size_t i = 0; i < ELEMENTSOF(check->entries); i++) {
                look_free(check->entries[i].look);
                free(check->entries[i].fault);
        }
        sd_event_source_disable_unref(check->timer);
        free(check);
        return NULL;
}

void path_check_freep(PathCheck **check)
{
        path_check_free(*check);
}

/* ---- on a loop of its own ---- */

typedef struct Wait {
        bool over;
        char *error;
} Wait;

static void on_done(const char *error, void *userdata)
{
        Wait *wait = userdata;

        wait->over = true;
        wait->error = error ? strdup(error) : NULL;
}

int paths_check_now(const DeviceRoots *roots, const Config *config, uint64_t timeout_ns, char **ret_error)
{
        _cleanup_(sd_event_unrefp) sd_event *event = NULL;
        _cleanup_(looks_freep) Looks *looks = NULL;
        _cleanup_(path_check_freep) PathCheck *check = NULL;
        Wait wait = { 0 };

        int r = sd_event_new(&event);
        if (r >= 0)
                r = looks_new(&looks, event, false);
        if (r >= 0)
                r = path_check_new(&check, event, looks, roots, config, NULL, true, timeout_ns, on_done,
                                   &wait);
        while (r >= 0 && !wait.over)
                r = sd_event_run(event, UINT64_MAX);
        if (r < 0 || !wait.error)
                return r < 0 ? r : 0;
        *ret_error = wait.error;
        return -EINVAL;
}
