/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds each kernel variant that the OpenCL plugin can build by planning every
 * kind of call, and writes the variants as source files for an offline
 * compiler. Call it from one thread.
 */
#ifndef TANDEM_TESTS_OFFLINE_VARIANTS_H
#define TANDEM_TESTS_OFFLINE_VARIANTS_H

#include <stdbool.h>
#include <stdint.h>

#include "opencl/plan/kernel_key.h"

struct platform_device;

/* Unique keys in the order in which they were found. */
struct keys {
    struct kernel_key *key;
    /* trial[i] is a launch of key[i], or of the same kernel with 32-bit
     * indices; see opencl/program/trial_launch.h. */
    struct trial_launch **trial;
    uint16_t *index; /* a hash table of the numbers of keys, from 1 */
    uint32_t count;
    uint32_t chosen; /* the first keys, which are to be used */
};

/*
 * Finds the keys that the planners use on this hardware with work-groups of 1
 * << group_log2 items. Returns false with a line on stderr if an operator, or
 * with work-groups of 256 items a kernel, has no key, because then the
 * generated calls do not cover it.
 */
bool keys_find(struct keys *out, const struct platform_device *hardware,
               uint32_t group_log2);

/* Frees the keys and trials. */
void keys_free(struct keys *keys);

/*
 * Chooses a random subset in which, for each kernel, each value of each part of
 * its keys occurs: operand dtype, index width, access pattern, tile and so on,
 * but not each combination. Each operator occurs with at least one kernel; the
 * kernels share the code of activations. Moves the subset to the first keys.
 * Returns false if memory runs out.
 */
bool keys_choose(struct keys *keys, uint64_t seed);

/*
 * Writes the .cl files of the chosen keys into the directory, which has none.
 * Prints "FILE OPTIONS" for each variant. The options give the kernel a name
 * that lists them. Returns false with a line on stderr on failure.
 */
bool variants_write(const char *directory, const struct keys *keys);

#endif
