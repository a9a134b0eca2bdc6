/* SPDX-License-Identifier: Apache-2.0 */
/* Figures: printf is the oracle. */

#include "tierprobe/figure.h"

#include "tierprobe/cleanup.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SEED 20261130

static void test_known(void **state)
{
        static const struct {
                double value;
                const char *text;
        } cases[] = {
                { 0, "0" },
                { -0.0, "0" },
                { 1, "1" },
                { 10, "10" },
                { -1.5, "-1.5" },
                { 100, "100" },
                { 803520, "803520" },
                { 803.52, "803.52" },
                { 0.263157894736842, "0.263158" },
                { 2301344.7, "2301340" },
                { 999999.5, "1000000" },
                { 999999.4, "999999" },
                { 0.9999999, "1" },
                { 0.00012, "0.00012" },
                { 0.00001, "0.00001" },
                { 9.9999999, "10" },
                { 99.99995, "100" },
                { 123456789012345, "123457000000000" },
                { 1e15, "1e+15" },
                { 1.5e-7, "1.5e-07" },
                { 11.3, "11.3" },
                { 1.0003, "1.0003" },
                { (double) NAN, "null" },
                { (double) INFINITY, "null" },
                { -(double) INFINITY, "null" },
        };
        char buf[FIGURE_SIZE];

        (void) state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                assert_int_equal(figure_format(buf, cases[i].value), strlen(cases[i].text));
                assert_string_equal(buf, cases[i].text);
        }
        assert_true(isnan(figure_round((double) NAN)));
}

/* As near as printf's, as short as can be, and the same when read and written again. */
static void test_random(void **state)
{
        (void) state;
        srandom(SEED);
        for (int i = 0; i < 300000; i++) {
                char buf[FIGURE_SIZE], wanted[64], again[FIGURE_SIZE];
                double value = ((double) random() + (double) random() / 2147483648.0) *
                               pow(10, (double) (random() % 32) - 18);

                if (random() % 4 == 0)
                        value = floor(value);
                if (random() % 3 == 0)
                        value = -value;
                size_t length = figure_format(buf, value);
                (void) snprintf(wanted, sizeof wanted, "%.6g", value);
                double difference = fabs(strtod(buf, NULL) - strtod(wanted, NULL));
                /* A tie may go the other way: by one in the sixth digit, no more. */
                if (length != strlen(buf) || difference > fabs(value) * 1.01e-5 ||
                    fabs(strtod(buf, NULL) - value) > fabs(value) * 5.0001e-6)
                        fail_msg("seed %d, case %d: %.17g is written %s", SEED, i, value, buf);
                if (strchr(buf, '.') && !strchr(buf, 'e') && buf[length - 1] == '0')
                        fail_msg("seed %d, case %d: zeros at the end of %s", SEED, i, buf);
                (void) figure_format(again, strtod(buf, NULL));
                assert_string_equal(again, buf);
                assert_false(figure_round(value) < strtod(buf, NULL) ||
                             figure_round(value) > strtod(buf, NULL));
        }
}

/* What is shown never contradicts what was decided. */
static void test_beside(void **state)
{
        (void) state;
        srandom(SEED);
        for (int i = 0; i < 100000; i++) {
                double limit =
                        i % 2 ? pow(10, (double) (random() % 9) - 2) : (double) (1 + random() % 100000) / 100;
                double value = limit * (1 + ((double) (random() % 2001) - 1000) * 1e-9);
                double shown = figure_round_beside(value, limit);

                if ((value < limit) != (shown < limit) || fabs(shown - value) > 1.2e-5 * limit)
                        fail_msg("seed %d, case %d: %.17g beside %.17g is shown as %.17g", SEED, i, value,
                                 limit, shown);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_known), cmocka_unit_test(test_random),
                                            cmocka_unit_test(test_beside) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
