/* SPDX-License-Identifier: Apache-2.0 */
/* Printed numbers as whole numbers of a fraction, exactly. Inside the capture room. */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Number {
        int64_t value;     /* in 10^-DIGITS; INT64_MAX when it does not fit */
        unsigned decimals; /* how many were printed */
        char suffix;       /* of --human: one of sBkMGTP; 0: none */
} Number;

/* "803520.00", "803520,00", "1.5M", "-3": reads the whole text. Decimals beyond DIGITS are cut. False when it
 * is nothing of the kind ("nan", "1.2.3", "12x4"). */
bool number_parse(const char *text, size_t size, unsigned digits, Number *ret);

/* The same where MARK, "." or ",", is known to stand before decimals and the other one between thousands:
 * "716,800.00", "1.024". False, too, when the groups are not of three digits. */
bool number_parse_grouped(const char *text, size_t size, unsigned digits, char mark, Number *ret);

/* Whether the only mark in TEXT may as well stand between thousands: "716,800", but not "0.800". */
bool number_may_be_grouped(const char *text, size_t size);

/* kB for one unit of the suffix, as iostat --human means it; 0: no such. */
double number_suffix_kb(char suffix);

/* VALUE x FACTOR, INT64_MAX when it does not fit. */
int64_t number_scale(int64_t value, double factor);

/* Half of the last printed digit. */
double number_rounding(const Number *number);
