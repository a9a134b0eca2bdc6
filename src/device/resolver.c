/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the room share while one device is being resolved: the roots, the mount table, the notes.
 * Reads the mount table. */

#include "device-internal.h"

#include "tierprobe/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define MOUNTINFO_MAX (16U << 20)

int resolver_note(Resolver *resolver, const char *format, ...)
{
        _cleanup_free_ char *sentence = NULL;
        va_list ap;

        va_start(ap, format);
        int n = vasprintf(&sentence, format, ap);
        va_end(ap);
        if (n < 0) {
                sentence = NULL;
                return -ENOMEM;
        }
        char *notes = resolver->notes ? path_format("%s; %s", resolver->notes, sentence) : TAKE_PTR(sentence);
        if (!notes)
                return -ENOMEM;
        free(resolver->notes);
        resolver->notes = notes;
        return 0;
}

void resolver_done(Resolver *resolver)
{
        blocks_done(&resolver->blocks);
        free(resolver->mountinfo);
        free(resolver->notes);
}

int resolver_open(Resolver *resolver, const DeviceRoots *roots)
{
        blocks_open(&resolver->blocks, roots);
        _cleanup_free_ char *path = path_format("%s/self/mountinfo", roots->procfs);
        if (!path)
                return -ENOMEM;
        return read_file_at(AT_FDCWD, path, MOUNTINFO_MAX, &resolver->mountinfo, &resolver->mountinfo_size);
}
