/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small generator with a fixed sequence for each seed, so that a run can be
 * repeated on any machine.  One thread at a time for each state.
 */
#ifndef DIGITS_RANDOM_H
#define DIGITS_RANDOM_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

struct random_state {
    uint64_t state;
};

/* SplitMix64: Steele, Lea and Flood, "Fast splittable pseudorandom number
 * generators", 2014. */
static inline uint64_t random_next(struct random_state *random)
{
    uint64_t z = random->state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* In (0, 1). */
static inline double random_uniform(struct random_state *random)
{
    return ((double)(random_next(random) >> 11) + 0.5) / 9007199254740992.0;
}

/* Mean 0, variance 1. */
static inline double random_normal(struct random_state *random)
{
    double radius = sqrt(-2.0 * log(random_uniform(random)));

    return radius * cos(6.283185307179586 * random_uniform(random));
}

static inline void random_shuffle(struct random_state *random, int32_t *values,
                                  size_t count)
{
    for (size_t i = count; i > 1; i--) {
        size_t j = (size_t)(random_next(random) % i);
        int32_t value = values[i - 1];

        values[i - 1] = values[j];
        values[j] = value;
    }
}

#endif
