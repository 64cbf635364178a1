/* SPDX-License-Identifier: Apache-2.0 */
/* Seeded random numbers (the SplitMix64 sequence); see random.h. */
#include "random.h"

#include <math.h>
#include <string.h>

void random_seed(struct random *random, uint64_t seed, const char *name)
{
    uint64_t hash = 0xcbf29ce484222325u ^ seed;

    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
    random->state = hash ^ (seed * 0x9e3779b97f4a7c15u);
}

uint64_t random_u64(struct random *random)
{
    uint64_t z = random->state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t random_below(struct random *random, uint64_t limit)
{
    return limit == 0 ? 0 : random_u64(random) % limit;
}

int64_t random_between(struct random *random, int64_t low, int64_t high)
{
    return low + (int64_t)random_below(random, (uint64_t)(high - low) + 1u);
}

bool random_once_in(struct random *random, uint64_t n)
{
    return random_below(random, n) == 0;
}

double random_uniform(struct random *random, double low, double high)
{
    double unit = (double)(random_u64(random) >> 11) * 0x1p-53;

    return low + unit * (high - low);
}

double random_normal(struct random *random)
{
    double u = 1.0 - random_uniform(random, 0.0, 1.0);
    double v = random_uniform(random, 0.0, 1.0);

    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

float random_wide(struct random *random)
{
    uint32_t bits = (uint32_t)random_u64(random);
    float value;

    if ((bits & 0x7f800000u) == 0x7f800000u)
        bits ^= 0x40000000u;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

void random_shuffle(struct random *random, uint32_t count, int64_t *items)
{
    for (uint32_t i = count; i > 1; i--) {
        uint32_t j = (uint32_t)random_below(random, i);
        int64_t swapped = items[i - 1];

        items[i - 1] = items[j];
        items[j] = swapped;
    }
}
