/* SPDX-License-Identifier: Apache-2.0 */
/* JSON without a tree, held against the library over random and damaged texts: what the library takes is
 * taken, what it refuses is refused, and the members put together again are the same object. */

#include "../../src/json/scan.h"

#include "tierprobe/cleanup.h"

#include <errno.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "seeds.h"

/* ---- random texts ---- */

static char text[65536];
static size_t size;

static void add(const char *piece)
{
        size_t length = strlen(piece);

        if (size + length < sizeof text) {
                memcpy(text + size, piece, length);
                size += length;
        }
}

static void add_one_of(const char *const *pieces, size_t n)
{
        add(pieces[(size_t) random() % n]);
}
#define ADD_ONE_OF(...)                                              \
        do {                                                         \
                static const char *const pieces[] = { __VA_ARGS__ }; \
                add_one_of(pieces, ELEMENTSOF(pieces));              \
        } while (false)

static void add_space(void)
{
        while (random() % 4 == 0)
                ADD_ONE_OF(" ", "\n", "\t", "\r");
}

static void add_string(void)
{
        add("\"");
        while (random() % 3)
                ADD_ONE_OF("a", "id", "\\n", "\\\"", "\\\\", "\\/", "\\u00e4", "\\ud83d\\ude00", "\xc3\xa4",
                           "\xf0\x9f\x98\x80", "{", "}", "[", "]", ",", ":");
        add("\"");
}

static void add_value(int depth)
{
        int kind = (int) (random() % (depth > 0 ? 8 : 6));
        bool object = kind == 6;

        add_space();
        if (kind < 2) {
                add_string();
        } else if (kind < 4) {
                ADD_ONE_OF("0", "-0", "1", "-12", "3.5", "1e5", "1E+2", "2.5e-3", "123456789012");
        } else if (kind < 6) {
                ADD_ONE_OF("true", "false", "null");
        } else {
                add(object ? "{" : "[");
                add_space();
                for (int n = (int) (random() % 5); n > 0; n--) {
                        if (object) {
                                add_string();
                                add_space();
                                add(":");
                        }
                        add_value(depth - 1);
                        if (n > 1)
                                add(",");
                        if (n > 1)
                                add_space();
                }
                add(object ? "}" : "]");
        }
        add_space();
}

static void make_object(void)
{
        int n = (int) (random() % 6);

        size = 0;
        add_space();
        add("{");
        for (int i = 0; i < n; i++) {
                char name[16];

                (void) snprintf(name, sizeof name, "%s\"m%d\":", i > 0 ? "," : "", i);
                add(name);
                add_value(4);
        }
        add("}");
        add_space();
}

/* ---- what the library says ---- */

/* The library holds numbers in 64 bits and refuses lone surrogates; the grammar does neither. */
static bool is_limit_of_library(const json_error_t *error)
{
        return json_error_code(error) == json_error_numeric_overflow ||
               strstr(error->text, "invalid Unicode") != NULL;
}

static char again[sizeof text + 2];
static size_t again_size;

static void put_together(JsonSpan name, JsonSpan value, void *userdata)
{
        (void) userdata;
        assert_true(name.text >= text && value.text + value.size <= text + size);
        again_size += (size_t) snprintf(again + again_size, sizeof again - again_size, "%s%.*s:%.*s",
                                        again_size == 0 ? "{" : ",", (int) name.size, name.text,
                                        (int) value.size, value.text);
}

/* Whether it was taken. */
static bool compare(void)
{
        json_error_t error;
        size_t at = 0;

        again_size = 0;
        json_auto_t *tree = json_loadb(text, size, JSON_ALLOW_NUL, &error);
        int r = json_scan_object(text, size, put_together, NULL, &at);

        if (json_is_object(tree) != (r == 0) && !(r == 0 && is_limit_of_library(&error)))
                fail_msg("scan says %d at %zu, the library %s: %.*s", r, at, tree ? "takes it" : error.text,
                         (int) size, text);
        if (r < 0) {
                assert_int_equal(r, -EINVAL);
                assert_true(at <= size);
                return false;
        }
        if (again_size == 0)
                again_size = (size_t) snprintf(again, sizeof again, "{");
        again[again_size++] = '}';
        json_auto_t *tree_again = json_loadb(again, again_size, JSON_ALLOW_NUL, NULL);
        assert_true(!tree || json_equal(tree, tree_again));
        return true;
}

/* ---- tests ---- */

static void test_random(void **state)
{
        (void) state;
        for (unsigned seed = 0; seed < seeds_of(20000); seed++) {
                srandom(seed);
                make_object();
                if (!compare())
                        fail_msg("seed %u", seed);
        }
}

static void test_damaged(void **state)
{
        unsigned n_refused = 0;

        (void) state;
        for (unsigned seed = 0; seed < seeds_of(50000); seed++) {
                srandom(seed);
                make_object();
                for (int n = (int) (random() % 3); n >= 0; n--)
                        text[(size_t) random() % size] =
                                "\"\\{}[],:0123.eE+-tfn u\x01\xff\xc3"[random() % 25];
                if (random() % 4 == 0)
                        size = (size_t) random() % size;
                n_refused += !compare();
        }
        assert_in_range(n_refused, seeds_of(20000), seeds_of(50000));
}

/* Every beginning of a text is none, but for white space at its end. */
static void test_truncated(void **state)
{
        (void) state;
        for (unsigned seed = 0; seed < seeds_of(500); seed++) {
                srandom(seed);
                make_object();
                size_t whole = size;
                while (whole > 0 && text[whole - 1] != '}')
                        whole--;
                for (size = 0; size < whole; size++)
                        assert_false(compare());
        }
}

static void test_depth(void **state)
{
        size_t at = 0;

        (void) state;
        for (size_t depth = SCAN_MAX_DEPTH - 1; depth <= SCAN_MAX_DEPTH + 1; depth++) {
                size = 0;
                add("{\"a\":");
                for (size_t i = 0; i < depth; i++)
                        add("[");
                for (size_t i = 0; i < depth; i++)
                        add("]");
                add("}");
                again_size = 0;
                assert_int_equal(json_scan_object(text, size, put_together, NULL, &at),
                                 depth <= SCAN_MAX_DEPTH ? 0 : -EINVAL);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_random),
                cmocka_unit_test(test_damaged),
                cmocka_unit_test(test_truncated),
                cmocka_unit_test(test_depth),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
