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
/* Returns a number in [0, limit), or 0 if limit is 0. */
uint64_t random_below(struct random *random, uint64_t limit);
/* Returns a number in [low, high]. */
int64_t random_between(struct random *random, int64_t low, int64_t high);
/* Returns true with probability 1 / n. */
bool random_once_in(struct random *random, uint64_t n);
/* Returns a number in [low, high). */
double random_uniform(struct random *random, double low, double high);
/* Returns a normally distributed number with mean 0 and variance 1. */
double random_normal(struct random *random);
/* Returns a finite f32. All exponents, also subnormal, are equally likely. */
float random_wide(struct random *random);

/* Shuffles the items. */
void random_shuffle(struct random *random, uint32_t count, int64_t *items);

#endif
