/* SPDX-License-Identifier: Apache-2.0 */
/* A parameter: a field of a struct with its name, its bounds and its form as text. Each room lists its own in
 * a table; configuration files, options of commands, help and documents are fed from those tables. Knows
 * libc. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define WHY_SIZE 256

typedef struct Parameter Parameter;

/* How values of a kind are read and printed. FIELD is where the value is. */
typedef struct ParameterType {
        const char *word; /* for a value in --help: "N", "SIZE" */
        size_t size;      /* of the field; one whose bytes are all zero is "not set" */

        /* Sets FIELD, untouched on failure. 0; -EINVAL (not of the form), -ERANGE (not within bounds), either
         * with a clause in WHY when there is more to say than the parameter's `right`; -ENOMEM. */
        int (*parse)(const Parameter *parameter, void *field, const char *text, char why[WHY_SIZE]);

        /* Prints what parse() reads back to the same. */
        void (*print)(const Parameter *parameter, const void *field, FILE *out);

        /* Frees what FIELD owns; NULL: it owns nothing. */
        void (*release)(void *field);
} ParameterType;

struct Parameter {
        const char *name; /* "block_size"; as an option "--block-size" */
        const ParameterType *type;
        size_t offset;     /* of the field in its struct */
        uint64_t min, max; /* of whole numbers */
        uint64_t multiple; /* that a whole number must be of; 0: any */
        double low, high;  /* of other numbers */
        const char *unset; /* the word for "not set"; NULL: it is always set */
        const char *right; /* what a right value looks like: "a number of writers from 1 to 128" */
        const char
                *help; /* what it is, for --help: "parallel writers"; NULL: no command has it as an option */
};

extern const ParameterType parameter_duration; /* uint64_t ns */
extern const ParameterType parameter_size;     /* uint64_t bytes */
extern const ParameterType parameter_count;    /* uint64_t */
extern const ParameterType parameter_unsigned; /* unsigned */
extern const ParameterType parameter_number;   /* double; rounded to the 15 digits that it is printed with */
extern const ParameterType parameter_bool;     /* bool */

/* Sets PARAMETER of BASE, the struct that its offset fits, from TEXT. 0, -ENOMEM, or -EINVAL with a clause in
 * WHY ("out of range") or nothing to add to `right`. */
int parameter_set(const Parameter *parameter, void *base, const char *text, char why[WHY_SIZE]);

/* Makes it "not set", and frees what it owned. */
void parameter_clear(const Parameter *parameter, void *base);

/* Prints its value in BASE. */
void parameter_print(const Parameter *parameter, const void *base, FILE *out);
