/* SPDX-License-Identifier: Apache-2.0 */
/* A part of the variants in which no value of a key's part is missing. */
#include <stdlib.h>
#include <string.h>

#include "opencl/plan/plan.h"
#include "variants.h"

#define PARTS 14u
#define VALUES 256u

/* What a kernel is made for; of the parts that share bits, the wider. */
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

/* Whether the key has a value that no key before it has. */
static bool key_new(bool (*seen)[PARTS][VALUES], uint64_t key)
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
        if (key_new(seen, key))
            keys->key[kept++] = key;
    }
    keys->count = kept;
    free(seen);
    return true;
}
