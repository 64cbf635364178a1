/* SPDX-License-Identifier: Apache-2.0 */
/* The seed of tests with random input. */
#ifndef TANDEM_TESTS_SEED_H
#define TANDEM_TESTS_SEED_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Returns the seed in CONFORMANCE_SEED, or 1 if that is not set, and prints it,
 * so that the log of a failure tells how to repeat it. */
static inline uint64_t test_seed(void)
{
    const char *text = getenv("CONFORMANCE_SEED");
    uint64_t seed =
        text != NULL && text[0] != '\0' ? strtoull(text, NULL, 10) : 1;

    printf("seed %" PRIu64 "\n", seed);
    fflush(stdout); /* Before the test framework forks. */
    return seed;
}

#endif
