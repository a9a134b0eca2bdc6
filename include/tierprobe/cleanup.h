/* SPDX-License-Identifier: Apache-2.0 */
/* Ownership: cleanup attributes and the hand-over of owned values. Knows libc. */
#pragma once

#include <dirent.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))
#define _printf_(a, b) __attribute__((format(printf, a, b)))

#define ELEMENTSOF(a) (sizeof(a) / sizeof((a)[0]))

static inline void freep(void *p)
{
        free(*(void **) p);
}

/* Closes *fd unless it is negative; errno is kept. */
void close_fdp(int *fd);
void fclosep(FILE **f);
void closedirp(DIR **d);

#define _cleanup_free_ _cleanup_(freep)
#define _cleanup_close_ _cleanup_(close_fdp)
#define _cleanup_fclose_ _cleanup_(fclosep)
#define _cleanup_closedir_ _cleanup_(closedirp)

/* Defines DESTRUCTORp() for _cleanup_() from a destructor that takes NULL. */
/* A type cannot be put in parentheses. NOLINTBEGIN(bugprone-macro-parentheses) */
#define DEFINE_CLEANUP(type, destructor)           \
        static inline void destructor##p(type **p) \
        {                                          \
                if (*p)                            \
                        destructor(*p);            \
        }
/* NOLINTEND(bugprone-macro-parentheses) */

/* Takes the value out of an owning variable, which is left empty. */
#define TAKE_PTR(p)                         \
        ({                                  \
                __typeof__(p) _taken = (p); \
                (p) = NULL;                 \
                _taken;                     \
        })
#define TAKE_FD(fd)                \
        ({                         \
                int _taken = (fd); \
                (fd) = -1;         \
                _taken;            \
        })
