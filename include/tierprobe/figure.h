/* SPDX-License-Identifier: Apache-2.0 */
/* Measured figures as text: six significant digits, which is more than any of them is good for. Knows libc.
 */
#pragma once

#include <stddef.h>

#define FIGURE_SIZE 32

/* Writes VALUE as a JSON number, without an exponent from 1e-5 up to 1e15: "803.52", "2301340", "0.00012";
 * what is not a finite number is "null". Returns the length. Several times as fast as printf, which would be
 * most of the cost of a long history. */
size_t figure_format(char buf[FIGURE_SIZE], double value);

/* The double nearest to what figure_format() writes. */
double figure_round(double value);

/* The same, but on that side of LIMIT where VALUE is: 19.9999999 is under 20, and must not be shown as 20. */
double figure_round_beside(double value, double limit);
