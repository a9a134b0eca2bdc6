/* SPDX-License-Identifier: Apache-2.0 */
/* What a file is that is no capture. Inside the capture room. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define KIND_HEAD_SIZE 512 /* of a file, as much as its kind shows in */

/* What the first SIZE bytes show: a sentence about it and what to do, NULL when they show nothing. */
const char *kind_of_head(const char *head, size_t size);

/* The program that printed the line, as "sar -d" or "iostat of AIX", NULL when it cannot be told. */
const char *kind_of_line(const char *line, size_t size);
