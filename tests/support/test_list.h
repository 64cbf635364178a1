/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests that are listed where they are defined, so that a program runs every
 * test of its source file:
 *
 *     TEST(sums_are_rounded)
 *     {
 *         ck_assert(...);
 *     }
 *
 *     TEST_MAIN(tests_run("sums"))
 *
 * Call the functions from one thread.
 */
#ifndef TANDEM_TESTS_TEST_LIST_H
#define TANDEM_TESTS_TEST_LIST_H

#include "support/check_runner.h"

struct test_entry {
    void (*add)(TCase *tests);
    int line;
    struct test_entry *next;
};

/* The tests of this source file, in the order of their lines. */
static struct test_entry *first_test;

static inline void test_insert(struct test_entry *entry)
{
    struct test_entry **place = &first_test;

    while (*place && (*place)->line < entry->line)
        place = &(*place)->next;
    entry->next = *place;
    *place = entry;
}

/* Defines a test. */
#define TEST(name) LOOP_TEST(name, 1)

/* Defines a test that runs with `_i` from 0 to count - 1. */
#define LOOP_TEST(name, count)                                               \
    static void name##_body(int _i);                                         \
    START_TEST(name)                                                         \
    {                                                                        \
        name##_body(_i);                                                     \
    }                                                                        \
    END_TEST                                                                 \
    static void name##_add(TCase *tests_)                                    \
    {                                                                        \
        tcase_add_loop_test(tests_, name, 0, (int)(count));                  \
    }                                                                        \
    __attribute__((constructor)) static void name##_list(void)               \
    {                                                                        \
        static struct test_entry entry = {.add = name##_add,                 \
                                          .line = __LINE__};                 \
                                                                             \
        test_insert(&entry);                                                 \
    }                                                                        \
    static void name##_body(int _i __attribute__((unused)))

/* Defines the main function of a program, which returns this result. */
#define TEST_MAIN(result)                                                    \
    int main(void)                                                           \
    {                                                                        \
        return result;                                                       \
    }

/* The number of elements of an array, for example of a table of cases. */
#define CASES_IN(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* Adds the tests of this source file to the test case. */
static inline void tests_add(TCase *tests)
{
    for (const struct test_entry *entry = first_test; entry;
         entry = entry->next)
        entry->add(tests);
}

/*
 * Runs the tests of this source file, with setup before and teardown after each
 * test. Both may be NULL. Returns main's result.
 */
static inline int tests_run_with(const char *name, SFun setup, SFun teardown)
{
    TCase *tests = tcase_create(name);

    tcase_add_checked_fixture(tests, setup, teardown);
    tests_add(tests);
    return runner_run_case(name, tests);
}

static inline int tests_run(const char *name)
{
    return tests_run_with(name, NULL, NULL);
}

/* Like tests_run_with, for OpenCL, which does not survive a fork. */
static inline int tests_run_without_fork(const char *name, SFun setup,
                                         SFun teardown)
{
    Suite *suite = suite_create(name);
    TCase *tests = tcase_create(name);

    tcase_add_checked_fixture(tests, setup, teardown);
    tests_add(tests);
    suite_add_tcase(suite, tests);
    return runner_run(suite, CK_NOFORK);
}

#endif
