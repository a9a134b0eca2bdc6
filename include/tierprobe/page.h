/* SPDX-License-Identifier: Apache-2.0 */
/* What people look at: the daemon's documents as HTML, and the files that go with it. Pure: JSON in, text
 * out. Knows base and jansson.
 *
 * All that is said is in the HTML as made here; the scripts only keep it fresh and add what moves. Every text
 * of a document goes out escaped, and every figure is looked at: a document may be of another release, or of
 * a daemon that nobody knows. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <jansson.h>

/* A file that is built into the program. */
typedef struct PageFile {
        const char *name; /* "page.css" */
        const char *type; /* its media type */
        const unsigned char *data, *gzip;
        size_t size, gzip_size;
        const char *etag; /* quoted, of the contents */
} PageFile;

extern const PageFile page_files[];
extern const size_t n_page_files;

const PageFile *page_file_find(const char *name); /* NULL: there is none */

/* The page of a daemon: STATUS is its /status, RUNS its /runs (may be NULL), HOST its name. */
void page_write_status(FILE *out, const json_t *status, const json_t *runs, const char *host);

/* The page of one run: RUN is its document of /runs/ID, with evidence or without. */
void page_write_run(FILE *out, const json_t *run, const char *host);

/* One file for all that is given, with its style inside and without scripts: N documents, each a RUN or a
 * STATUS; NAMES says of each whence it came, ERRORS (members may be NULL) why one is missing. */
void page_write_report(FILE *out, const json_t *const *documents, const char *const *names,
                       const char *const *errors, size_t n);

/* The same as Markdown. */
void page_write_markdown(FILE *out, const json_t *const *documents, const char *const *names,
                         const char *const *errors, size_t n);
