/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seeded random numbers: the same seed gives the same sequence on every
 * machine.  A generator belongs to one thread.
 */
#ifndef TANDEM_CONFORMANCE_RANDOM_H
#define TANDEM_CONFORMANCE_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

struct random {
    uint64_t state;
};

void random_seed(struct random *random, uint64_t seed, const char *name);
uint64_t random_u64(struct random *random);
/* In [0, limit); limit 0 gives 0. */
uint64_t random_below(struct random *random, uint64_t limit);
/* In [low, high]. */
int64_t random_between(struct random *random, int64_t low, int64_t high);
/* True once in n. */
bool random_once_in(struct random *random, uint64_t n);
/* In [low, high). */
double random_uniform(struct random *random, double low, double high);
/* Mean 0, variance 1. */
double random_normal(struct random *random);
/* Any finite f32: all exponents equally often, subnormals included. */
float random_wide(struct random *random);

#endif
