/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at paths through children, at most one child a path. Touches no path itself. */

#include "looks.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/log.h"

#include <errno.h>
#include <string.h>

/* A path with its child, for as long as someone is interested or the child is there. */
typedef struct Place Place;

struct Place {
        Looks *looks;
        Place *next;
        char *path;
        unsigned refs; /* Looks, the child, and calls that use it */
        PathInspection *child;
        sd_event_source *child_source;
        uint64_t began_ns; /* MONOTONIC */
        bool swept;
};

struct Look {
        Place *place;
        Look *next; /* of all */
        LookSeen seen;
        void *userdata;
        uint64_t timeout_ns;
        sd_event_source *timer;
        bool waiting, again;
        bool due; /* the answer is being told around, and this one has not had it */
};

struct Looks {
        sd_event *event;
        Place *places;
        Look *all;
        bool sweep;
};

/* ---- places ---- */

static void drop_child(Place *place)
{
        place->child_source = sd_event_source_disable_unref(place->child_source);
        place->child = path_inspection_free(place->child);
        place->began_ns = 0;
}

static void place_unref(Place *place)
{
        Place **p = &place->looks->places;

        if (--place->refs > 0)
                return;
        while (*p != place)
                p = &(*p)->next;
        *p = place->next;
        drop_child(place);
        free(place->path);
        free(place);
}

static Place *place_get(Looks *looks, const char *path)
{
        for (Place *place = looks->places; place; place = place->next)
                if (strcmp(place->path, path) == 0) {
                        place->refs++;
                        return place;
                }
        Place *place = calloc(1, sizeof *place);
        if (!place)
                return NULL;
        *place = (Place){ .looks = looks, .next = looks->places, .path = strdup(path), .refs = 1 };
        if (!place->path) {
                free(place);
                return NULL;
        }
        return looks->places = place;
}

static int on_child(sd_event_source *source, int fd, uint32_t revents, void *userdata);

/* Sends the child. */
static int begin(Place *place)
{
        int r = path_inspection_new(place->path, place->looks->sweep && !place->swept, &place->child);

        if (r >= 0)
                r = sd_event_add_io(place->looks->event, &place->child_source,
                                    path_inspection_get_fd(place->child), EPOLLIN, on_child, place);
        if (r < 0) {
                drop_child(place);
                return r;
        }
        place->began_ns = clock_ns(CLOCK_MONOTONIC);
        place->refs++;
        return 0;
}

/* ---- answers ---- */

static int on_timeout(sd_event_source *source, uint64_t usec, void *userdata)
{
        Look *look = userdata;

        (void) source;
        (void) usec;
        look->seen(look, &(PathFacts){ .error = ETIMEDOUT }, look->userdata);
        return 0;
}

static void stop_waiting(Look *look)
{
        look->timer = sd_event_source_disable_unref(look->timer);
        look->waiting = look->again = false;
}

static int start_waiting(Look *look)
{
        look->timer = sd_event_source_disable_unref(look->timer);
        look->again = false;
        int r = sd_event_add_time_relative(look->place->looks->event, &look->timer, CLOCK_MONOTONIC,
                                           look->timeout_ns / NS_PER_US, 0, on_timeout, look);
        look->waiting = r >= 0;
        return r;
}

static Look *next_due(const Place *place)
{
        Look *look = place->looks->all;

        while (look && !(look->due && look->place == place))
                look = look->next;
        return look;
}

/* Calls back all that wait. Each callback may free Look objects, and the last one this place. */
static void tell(Place *place, const PathFacts *facts)
{
        bool again = false;

        for (Look *look = place->looks->all; look; look = look->next)
                if (look->place == place && look->waiting) {
                        look->due = true;
                        again = again || look->again;
                }
        bool more = again && begin(place) >= 0;
        for (Look *look; (look = next_due(place));) {
                look->due = false;
                if (!look->again || !more || start_waiting(look) < 0)
                        stop_waiting(look);
                look->seen(look, facts, look->userdata);
        }
}

static int on_child(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        Place *place = userdata;
        PathFacts facts;

        (void) source;
        (void) fd;
        (void) revents;
        int r = path_inspection_collect(place->child, &facts);
        if (r == -EAGAIN)
                return 0;
        if (r < 0)
                facts = (PathFacts){ .error = -r };
        place->swept = true;
        if (facts.swept > 0)
                log_info("removed %u empty file%s that a killed test had left in %s", facts.swept,
                         facts.swept == 1 ? "" : "s", place->path);
        drop_child(place); /* its reference is kept until all have been told */
        tell(place, &facts);
        place_unref(place);
        return 0;
}

/* ---- the outside ---- */

int looks_new(Looks **ret, sd_event *event, bool sweep)
{
        Looks *looks = calloc(1, sizeof *looks);

        if (!looks)
                return -ENOMEM;
        looks->event = sd_event_ref(event);
        looks->sweep = sweep;
        *ret = looks;
        return 0;
}

Looks *looks_free(Looks *looks)
{
        if (!looks)
                return NULL;
        while (looks->places)
                place_unref(looks->places);
        sd_event_unref(looks->event);
        free(looks);
        return NULL;
}

void looks_freep(Looks **looks)
{
        (void) looks_free(*looks);
}

int look_new(Look **ret, Looks *looks, const char *path, uint64_t timeout_ns, LookSeen seen, void *userdata)
{
        Look *look = calloc(1, sizeof *look);

        if (!look)
                return -ENOMEM;
        *look = (Look){ .place = place_get(looks, path),
                        .next = looks->all,
                        .seen = seen,
                        .userdata = userdata,
                        .timeout_ns = timeout_ns };
        if (!look->place) {
                free(look);
                return -ENOMEM;
        }
        *ret = looks->all = look;
        return 0;
}

Look *look_free(Look *look)
{
        if (!look)
                return NULL;

        Look **p = &look->place->looks->all;
        while (*p != look)
                p = &(*p)->next;
        *p = look->next;
        stop_waiting(look);
        place_unref(look->place);
        free(look);
        return NULL;
}

void look_freep(Look **look)
{
        (void) look_free(*look);
}

int look_ask(Look *look)
{
        if (look->waiting) {
                look->again = true;
                return 0;
        }
        int r = look->place->child ? 0 : begin(look->place);
        return r < 0 ? r : start_waiting(look);
}

bool look_is_waiting(const Look *look)
{
        return look->waiting;
}

uint64_t look_began_ns(const Look *look)
{
        return look->place->began_ns;
}
