/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects a subset of the variants that contains each value of each field of a
 * key.
 */
#include <stdlib.h>

#include "opencl/plan/kernel_info.h"
#include "variants.h"

#define MAX_KERNELS 64u
/* The bytes of a key after the pointer to the kernel. */
#define FIRST_BYTE sizeof(const struct kernel_info *)
#define KEY_BYTES sizeof(struct kernel_key)

/* The values that occur in the keys of a kernel. */
struct seen_values {
    const struct kernel_info *kernel;
    bool seen[KEY_BYTES][UINT8_MAX + 1];
};

static uint64_t random_below(uint64_t *seed, uint64_t limit)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (*seed >> 33) % limit;
}

/* Returns true if the key has a value that no earlier key has. */
static bool key_has_new_value(struct seen_values *values,
                              const struct kernel_key *key)
{
    const unsigned char *bytes = (const unsigned char *)key;
    bool found = false;

    while (values->kernel != NULL && values->kernel != key->kernel)
        values++;
    values->kernel = key->kernel;
    for (size_t i = FIRST_BYTE; i < KEY_BYTES; i++) {
        found = found || !values->seen[i][bytes[i]];
        values->seen[i][bytes[i]] = true;
    }
    return found;
}

static void keys_swap(struct keys *keys, uint32_t a, uint32_t b)
{
    struct kernel_key key = keys->key[a];
    struct trial_launch *trial = keys->trial[a];

    keys->key[a] = keys->key[b];
    keys->trial[a] = keys->trial[b];
    keys->key[b] = key;
    keys->trial[b] = trial;
}

bool keys_choose(struct keys *keys, uint64_t seed)
{
    struct seen_values *values = calloc(MAX_KERNELS, sizeof(*values));
    uint32_t kept = 0;

    if (values == NULL)
        return false;
    for (uint32_t i = 0; i < keys->count; i++) {
        keys_swap(keys, i, i + (uint32_t)random_below(&seed, keys->count - i));
        if (key_has_new_value(values, &keys->key[i]))
            keys_swap(keys, i, kept++);
    }
    keys->chosen = kept;
    free(values);
    return true;
}
