/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects a subset of the variants that contains each value of each field of a
 * key, and each operator.
 */
#include <stddef.h>
#include <stdlib.h>

#include "opencl/plan/kernel_info.h"
#include "variants.h"

#define MAX_KERNELS 64u
/* The bytes of a key after the pointer to the kernel. */
#define FIRST_BYTE sizeof(const struct kernel_info *)
#define KEY_BYTES sizeof(struct kernel_key)

/* The values that occur in the keys of a kernel. The operator is not among
 * them. */
struct seen_values {
    const struct kernel_info *kernel;
    bool seen[KEY_BYTES][UINT8_MAX + 1];
};

struct coverage {
    struct seen_values of_kernel[MAX_KERNELS];
    bool op[UINT16_MAX + 1]; /* the operators of all kernels */
};

static uint64_t random_below(uint64_t *seed, uint64_t limit)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (*seed >> 33) % limit;
}

static struct seen_values *seen_of_kernel(struct coverage *coverage,
                                          const struct kernel_info *kernel)
{
    struct seen_values *values = coverage->of_kernel;

    while (values->kernel != NULL && values->kernel != kernel)
        values++;
    values->kernel = kernel;
    return values;
}

static bool byte_is_operator(size_t byte)
{
    const size_t begin = offsetof(struct kernel_key, op);
    return byte >= begin && byte < begin + sizeof(((struct kernel_key *)0)->op);
}

/* Returns how many values of the key are not covered yet. */
static uint32_t key_new_values(struct coverage *coverage,
                               const struct kernel_key *key)
{
    const struct seen_values *values = seen_of_kernel(coverage, key->kernel);
    const unsigned char *bytes = (const unsigned char *)key;
    uint32_t count = !coverage->op[key->op];

    for (size_t i = FIRST_BYTE; i < KEY_BYTES; i++)
        count += !byte_is_operator(i) && !values->seen[i][bytes[i]];
    return count;
}

static void coverage_add(struct coverage *coverage,
                         const struct kernel_key *key)
{
    struct seen_values *values = seen_of_kernel(coverage, key->kernel);
    const unsigned char *bytes = (const unsigned char *)key;

    coverage->op[key->op] = true;
    for (size_t i = FIRST_BYTE; i < KEY_BYTES; i++)
        values->seen[i][bytes[i]] = true;
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
    struct coverage *coverage = calloc(1, sizeof(*coverage));
    uint32_t kept = 0;

    if (coverage == NULL)
        return false;
    for (uint32_t i = 0; i < keys->count; i++)
        keys_swap(keys, i, i + (uint32_t)random_below(&seed, keys->count - i));
    /* Keys with many new values come first, so that few keys suffice. */
    for (uint32_t least = KEY_BYTES; least > 0; least--) {
        for (uint32_t i = kept; i < keys->count; i++) {
            if (key_new_values(coverage, &keys->key[i]) < least)
                continue;
            coverage_add(coverage, &keys->key[i]);
            keys_swap(keys, i, kept++);
        }
    }
    keys->chosen = kept;
    free(coverage);
    return true;
}
