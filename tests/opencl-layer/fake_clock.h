/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process's monotonic clock, for tests of limits that run out: it goes so
 * much slower than others that no limit runs out by itself, however long the
 * machine takes to do what does end, but while a test waits for what does not.
 * Any thread but for clock_goes.
 */
#ifndef TANDEM_TESTS_LAYER_CLOCK_H
#define TANDEM_TESTS_LAYER_CLOCK_H

#include <stdbool.h>

/* As others do, or slowly, as from the start. */
void clock_goes(bool as_others);

/* The call gives up what does not end, or what it says of it. */
#define GIVES_UP(call, want)                                                 \
    do {                                                                     \
        clock_goes(true);                                                    \
        ck_assert_int_eq(call, want);                                        \
        clock_goes(false);                                                   \
    } while (0)

#endif
