/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A slowed-down monotonic clock for tests of timeouts. Timeouts do not expire,
 * however slow the machine is, except while a test waits for work that never
 * completes. Any thread may use the clock; only one thread calls
 * clock_set_real_speed.
 */
#ifndef TANDEM_TESTS_LAYER_CLOCK_H
#define TANDEM_TESTS_LAYER_CLOCK_H

#include <stdbool.h>

/* Lets the clock run at real speed, or slowly as at the start. */
void clock_set_real_speed(bool as_others);

/* Makes a call that must time out with this result, at real clock speed. */
#define EXPECT_TIMEOUT(call, want)                                             \
    do {                                                                       \
        clock_set_real_speed(true);                                            \
        ck_assert_int_eq(call, want);                                          \
        clock_set_real_speed(false);                                           \
    } while (0)

#endif
