/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects a subset of the variants that contains each value of each part of a
 * key.
 */
#include <stdlib.h>
#include <string.h>

#include "opencl/plan/plan.h"
#include "variants.h"

#define PARTS 14u
#define VALUES 256u

/*
 * Splits a key into the parts that a kernel is built for. If parts share bits,
 * the wider one is used.
 */
static void key_split(uint64_t key, uint32_t *out_values)
{
    const uint32_t values[PARTS] = {
        KEY_OP(key),          KEY_TYPE(key, 0),
        KEY_TYPE(key, 1),     KEY_TYPE(key, 2),
        KEY_TYPE(key, 3),     KEY_64BIT_INDEX(key),
        KEY_GELU_TANH(key),   KEY_REGISTER_VEC4_LOG2(key),
        KEY_VEC4(key),        KEY_GEMM_KERNEL(key),
        KEY_A_LAYOUT(key),    KEY_B_LAYOUT(key),
        KEY_SECOND_VEC4(key), KEY_FORMAT(key)};

    memcpy(out_values, values, sizeof(values));
}

static uint64_t random_below(uint64_t *seed, uint64_t limit)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (*seed >> 33) % limit;
}

/* Returns true if the key has a value that no earlier key has. */
static bool key_has_new_value(bool (*seen)[PARTS][VALUES], uint64_t key)
{
    uint32_t values[PARTS];
    bool (*parts)[VALUES] = seen[KEY_KERNEL(key)];
    bool found = false;

    key_split(key, values);
    for (uint32_t i = 0; i < PARTS; i++) {
        found = found || !parts[i][values[i]];
        parts[i][values[i]] = true;
    }
    return found;
}

bool keys_choose(struct keys *keys, uint64_t seed)
{
    bool(*seen)[PARTS][VALUES] = calloc(KERNEL_COUNT, sizeof(*seen));
    uint32_t kept = 0;

    if (seen == NULL)
        return false;
    for (uint32_t i = 0; i < keys->count; i++) {
        uint32_t other = i + (uint32_t)random_below(&seed, keys->count - i);
        uint64_t key = keys->key[other];

        keys->key[other] = keys->key[i];
        if (key_has_new_value(seen, key))
            keys->key[kept++] = key;
    }
    keys->count = kept;
    free(seen);
    return true;
}
