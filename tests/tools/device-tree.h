/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded machines for tests: unpacks a tests/data/device/KIND.tree (see README there) into a temporary
 * directory with proc and sys in it, and hands out its questions. */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

typedef struct Tree {
        char root[64];
        char *proc, *sys;
} Tree;

/* Dies with a message when the file is not of the form: it is ours. */
void tree_unpack(Tree *tree, const char *file);
void tree_remove(Tree *tree);

/* One question of the file: what to resolve and the lines that must be in the answer. */
typedef struct Question {
        unsigned line; /* of the file, for messages */
        char path[256], device[128];
        dev_t dev;
        char *expected; /* newline after each */
} Question;

/* Reads the next question; false at the end. The caller frees EXPECTED. */
bool tree_question(FILE *file, unsigned *line, Question *ret);
