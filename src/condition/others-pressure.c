/* SPDX-License-Identifier: Apache-2.0 */
/* How much those beside this process wait for their disks. Plain reads below the given roots. */

#include "tierprobe/condition.h"

#include "cgroup.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/text.h"
#include "tierprobe/units.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GROUPS_MAX 1024 /* of one reading: a host has some hundred units, a reading takes some 10 us */

typedef struct Search {
        OthersPressure *found;
        ino_t below; /* the group that was come from: this process is in it; 0: none */
        unsigned n;
} Search;

/* "some avg10=12.34 avg60=..." */
static void take_some(char *line, void *userdata)
{
        static const char start[] = "some avg10=";
        double *percent = userdata;

        if (strncmp(line, start, strlen(start)) != 0)
                return;
        char *number = line + strlen(start);
        number[strcspn(number, " ")] = '\0';
        if (parse_number(number, percent) < 0 || *percent < 0)
                *percent = NAN;
}

static void read_neighbour(Search *search, const Group *parent, int fd, const char *name)
{
        double percent = NAN;
        char where[4096];

        group_lines(&(Group){ .fd = fd }, "io.pressure", take_some, &percent);
        if (!isfinite(percent) || (isfinite(search->found->percent) && percent <= search->found->percent))
                return;
        search->found->percent = percent;
        (void) snprintf(where, sizeof where, "%.3500s/%s", parent->path, name);
        text_copy_clean(search->found->where, sizeof search->found->where, where);
}

/* All groups in GROUP but the one that this process is in: where it is in GROUP itself, all. */
static void read_neighbours(const Group *group, void *userdata)
{
        Search *search = userdata;
        struct stat st;
        ino_t below = search->below;

        search->below = fstat(group->fd, &st) == 0 ? st.st_ino : 0;
        int list_fd = openat(group->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        _cleanup_closedir_ DIR *list = list_fd < 0 ? NULL : fdopendir(list_fd);
        if (!list && list_fd >= 0)
                (void) close(list_fd);
        for (struct dirent *entry; list && (entry = readdir(list)) && search->n < GROUPS_MAX;) {
                if (entry->d_name[0] == '.' || entry->d_type != DT_DIR || entry->d_ino == below)
                        continue;
                _cleanup_close_ int fd =
                        openat(group->fd, entry->d_name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                if (fd < 0)
                        continue;
                search->n++;
                read_neighbour(search, group, fd, entry->d_name);
        }
}

void others_pressure_read(const DeviceRoots *roots, OthersPressure *ret)
{
        Search search = { .found = ret };

        *ret = (OthersPressure){ .percent = NAN };
        groups_visit(roots, NULL, read_neighbours, &search);
}
