/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every kernel variant that the OpenCL plugin can ask a driver for, found by
 * giving its planners every kind of call, and written as source files that an
 * offline compiler takes.  One thread.
 */
#ifndef TANDEM_TESTS_OFFLINE_VARIANTS_H
#define TANDEM_TESTS_OFFLINE_VARIANTS_H

#include <stdbool.h>
#include <stdint.h>

struct platform_device;

/* Keys of opencl/plan/plan.h, each once, in the order of their finding. */
struct keys {
    uint64_t *key;
    uint32_t count;
};

/* The keys that the planners make for hardware and work-groups of
 * 1 << group_log2.  false, with a line on stderr, where an operator or a kernel
 * has none: then what is tried here does not reach it. */
bool keys_find(struct keys *out, const struct platform_device *hardware,
               uint32_t group_log2);

/* Keeps a choice by chance in which, for each kernel, every value of each part
 * of its keys occurs: each operator, dtype of an operand, width of indices, way
 * of access, tile and so on, though not each with each.  false where there is
 * no memory. */
bool keys_choose(struct keys *keys, uint64_t seed);

/* Writes the keys' variants into directory, those of one .cl file with the
 * same options in one file; prints "FILE VARIANTS OPTIONS" for each.  false,
 * with a line on stderr, on failure. */
bool units_write(const char *directory, const struct keys *keys);

#endif
