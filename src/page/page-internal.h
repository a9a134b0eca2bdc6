/* SPDX-License-Identifier: Apache-2.0 */
/* The parts that several pages have. Inside the page room. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

/* <!DOCTYPE> to <body>; LIVE pages load style and script from the daemon, others hold their style. */
void page_begin(FILE *out, const char *title, bool live);
void page_end(FILE *out, bool live);

/* A run's or a target's requirements: value, limit, bar, each in words too. */
void page_criteria(FILE *out, const json_t *criteria);

/* The device and what it stands on, as a tree, with its temperatures out of HEAT, a list of sensors. */
void page_device(FILE *out, const json_t *device, const char *path, const json_t *heat);

/* All of a run below its title. */
void page_run_body(FILE *out, const json_t *run);

/* All of a target below its title; LIVE: with links into the daemon. */
void page_target_body(FILE *out, const json_t *target, bool live);

/* What goes into a ticket: a few lines of plain text with verdict, figures, device, versions, how to
 * reproduce. */
void page_ticket(FILE *out, const json_t *run, void (*text)(FILE *out, const char *text));

/* The run that a target's verdict is of; NULL: none. */
const json_t *page_deciding_run(const json_t *target);
