/* SPDX-License-Identifier: Apache-2.0 */
/* Every parameter of every room: what is printed is read back to the same, nothing out of bounds is taken,
 * and what is refused changes nothing. */

#include "tierprobe/cleanup.h"
#include "tierprobe/profile.h"
#include "tierprobe/schedule.h"
#include "tierprobe/units.h"
#include "tierprobe/verdict.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SEED 1

typedef union Base {
        Limits limits;
        Profile profile;
        ScheduleRules schedule;
        GuardRules guard;
        unsigned char bytes[1024];
} Base;

static const struct {
        const char *name;
        const Parameter *(*parameter)(size_t index);
} rooms[] = {
        { "limits", limits_parameter },
        { "profile", profile_parameter },
        { "schedule", schedule_parameter },
        { "guard", guard_parameter },
};

static uint64_t any_u64(void)
{
        uint64_t bits = (uint64_t) random() << 33 ^ (uint64_t) random() << 11 ^ (uint64_t) random();

        return bits >> random() % 64;
}

/* A value that may be right, in one of the forms that there are. */
static const char *any_text(char buf[64], const Parameter *parameter)
{
        static const char *const words[] = {
                "",     "yes",  "no",     "zero",        "random", "none", "never",
                "0",    "1",    "-1",     "01:00-05:00", "5%",     "nan",  "24:00-00:00",
                "1e99", "0x10", "1s 1ms", "23:59-23:59", "100%",   "1MM",  " 1"
        };

        switch (random() % 6) {
        case 0:
                return words[(size_t) random() % ELEMENTSOF(words)];
        case 1:
                return format_size(buf, any_u64());
        case 2:
                return format_duration(buf, any_u64());
        case 3:
                return format_number(buf, parameter->low + (parameter->high - parameter->low) *
                                                                   (double) random() / RAND_MAX);
        case 4:
                (void) snprintf(buf, 64, "%02ld:%02ld-%02ld:%02ld", random() % 25, random() % 60,
                                random() % 25, random() % 60);
                return buf;
        default:
                (void) snprintf(buf, 64, "%" PRIu64, any_u64());
                return buf;
        }
}

static char *printed(const Parameter *parameter, const Base *base)
{
        char *text = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);

        parameter_print(parameter, base, out);
        assert_int_equal(fclose(out), 0);
        return text;
}

static void try_text(const char *room, const Parameter *parameter, const char *text)
{
        char why[WHY_SIZE];
        Base base, before, again;

        memset(&base, 0, sizeof base);
        memset(&again, 0, sizeof again);
        base.bytes[sizeof base - 1] = again.bytes[sizeof again - 1] = 0xee;
        before = base;
        int r = parameter_set(parameter, &base, text, why);
        if (r < 0) {
                assert_int_equal(r, -EINVAL);
                assert_memory_equal(&base, &before, sizeof base);
                return;
        }
        _cleanup_free_ char *back = printed(parameter, &base);
        if (parameter_set(parameter, &again, back, why) < 0 || memcmp(&base, &again, sizeof base) != 0)
                fail_msg("seed %d, [%s] %s: \"%s\" is printed as \"%s\"", SEED, room, parameter->name, text,
                         back);
        if (parameter->type->size == sizeof(uint64_t) && parameter->max > 0) {
                uint64_t value = 0;

                memcpy(&value, base.bytes + parameter->offset, sizeof value);
                bool is_unset = parameter->unset && value == 0;
                assert_true(is_unset || (value >= parameter->min && value <= parameter->max));
        }
}

static void test_any_text(void **state)
{
        char buf[64];

        (void) state;
        srandom(SEED);
        for (size_t room = 0; room < ELEMENTSOF(rooms); room++)
                for (size_t i = 0; rooms[room].parameter(i); i++)
                        for (unsigned n = 0; n < 5000; n++)
                                try_text(rooms[room].name, rooms[room].parameter(i),
                                         any_text(buf, rooms[room].parameter(i)));
}

/* An option's name is made of the parameter's, which JSON and configuration have as well. */
static void test_names(void **state)
{
        (void) state;
        for (size_t room = 0; room < ELEMENTSOF(rooms); room++)
                for (size_t i = 0; rooms[room].parameter(i); i++) {
                        const char *name = rooms[room].parameter(i)->name;

                        assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz_"), strlen(name));
                        for (size_t j = 0; j < i; j++)
                                assert_string_not_equal(name, rooms[room].parameter(j)->name);
                }
}

static void test_procedure(void **state)
{
        const Limits limits = limits_default();
        const Profile profile = PROFILE_PROCEDURE;

        (void) state;
        assert_true(profile_is_procedure(&profile));
        assert_true(criterion_met(&limits, CRITERION_WRITE_THROUGHPUT, 600));
        assert_false(criterion_met(&limits, CRITERION_WRITE_THROUGHPUT, 599.999));
        assert_true(criterion_met(&limits, CRITERION_WRITE_LATENCY, 19.999));
        assert_false(criterion_met(&limits, CRITERION_WRITE_LATENCY, 20));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_any_text),
                cmocka_unit_test(test_names),
                cmocka_unit_test(test_procedure),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
