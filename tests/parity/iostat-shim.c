/* SPDX-License-Identifier: Apache-2.0 */
/* Makes an unmodified iostat read scripted counters: /proc/uptime and /proc/diskstats come from
 * $FAKE_DIR/STEP/, and each pause() of it goes on to the next step at once. */

/* With it <stdio.h> would give the function below the name fopen64; that one is here besides. */
#undef _FILE_OFFSET_BITS

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static unsigned step;

static FILE *open_scripted(const char *name, const char *path, const char *mode)
{
        FILE *(*real)(const char *, const char *) = NULL;
        void *symbol = dlsym(RTLD_NEXT, name);
        const char *dir = getenv("FAKE_DIR");
        char scripted[4096];

        if (!symbol)
                return NULL;
        memcpy(&real, &symbol, sizeof real); /* ISO C has no cast from object to function pointers */
        if (!dir || (strcmp(path, "/proc/uptime") != 0 && strcmp(path, "/proc/diskstats") != 0))
                return real(path, mode);
        (void) snprintf(scripted, sizeof scripted, "%s/%u/%s", dir, step, path + strlen("/proc/"));
        return real(scripted, mode);
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the C library's are reserved */
EXPORT FILE *fopen(const char *path, const char *mode)
{
        return open_scripted("fopen", path, mode);
}

/* What fopen() is called in a program built for large files. */
/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the C library's are reserved */
EXPORT FILE *fopen64(const char *path, const char *mode)
{
        return open_scripted("fopen64", path, mode);
}

EXPORT int pause(void);
EXPORT int pause(void)
{
        step++;
        return -1;
}

EXPORT unsigned alarm(unsigned seconds);
EXPORT unsigned alarm(unsigned seconds)
{
        (void) seconds;
        return 0;
}
