/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading and writing a profile's tuning section: objects of strings with
 * numbers in them, in any locale. Needs no OpenCL.
 */
#include <config.h>

#include <locale.h>
#include <math.h>
#include <string.h>

#include "support/test_list.h"
#include "common/decimal.h"
#include "opencl/device/tuning_section.h"

static bool take_pair(void *user, const char *key, const char *value)
{
    char *list = user;
    strcat(strcat(strcat(list, key), "="), value);
    strcat(list, ",");
    return value[0] != '!';
}

TEST(sections_are_objects_of_strings)
{
    static const char *const wrong[] = {
        "",      "{",           "[]",
        "1",     "\"a\"",       "{\"a\": 1}",
        "{\"a\": null}",        "{\"a\": {}}",
        "{\"a\": \"1\", \"b\": [\"2\"]}",
        "{\"a\": \"1\", \"a\": \"2\"}",
        "{\"a\": \"1\"} x",
    };
    char list[256], why[64];
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        list[0] = '\0';
        ck_assert_msg(
            !tuning_section_read(wrong[i], take_pair, list, why, sizeof(why)),
            "%s", wrong[i]);
        ck_assert_str_eq(list, "");
    }
    list[0] = '\0';
    ck_assert(tuning_section_read("{\"a\": \"1\"}", take_pair, list, why,
                                  sizeof(why)));
    ck_assert_str_eq(list, "a=1,");
    /* The first rejected value is reported, and the other values are used. */
    list[0] = '\0';
    ck_assert(!tuning_section_read("{\"a\": \"!\", \"b\": \"2\"}", take_pair,
                                   list, why, sizeof(why)));
    ck_assert(strstr(list, "b=2,") != NULL);
    ck_assert_str_eq(why, "\"a\": \"!\"");
}

TEST(numbers_are_formatted_and_parsed)
{
    static const double values[] = {0, 0.001, 1, 1.5, 97.25, 4000, 123456.789,
                                    1e12, DECIMAL_MAX};
    setlocale(LC_ALL, "de_DE.UTF-8");
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        char text[64] = "";
        const char *at = text;
        double value;
        ck_assert(decimal_append_double(text, sizeof(text), values[i]));
        ck_assert(decimal_parse_double(&at, &value));
        ck_assert_double_eq_tol(value, values[i], values[i] * 1e-12 + 1e-15);
        ck_assert(*at == '\0' && strchr(text, ',') == NULL);
    }
    setlocale(LC_ALL, "C");
    char text[8] = "";
    ck_assert(!decimal_append_double(text, sizeof(text), -1));
    ck_assert(!decimal_append_double(text, sizeof(text), (double)NAN));
    ck_assert(!decimal_append_double(text, sizeof(text), (double)INFINITY));
    ck_assert(!decimal_append_double(text, 4, 1000));
    ck_assert(decimal_append_double(text, 5, 1000));
    ck_assert(!decimal_append_double(text, 5, 0));
    ck_assert_str_eq(text, "1000");
}

TEST_MAIN(tests_run("section"))
