/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TANDEM_COMMON_LOG2_FLOOR_H
#define TANDEM_COMMON_LOG2_FLOOR_H

#include <stdint.h>

/* Returns the largest i for which 2^i <= value, and 0 for 0. */
static inline uint32_t log2_floor(uint64_t value)
{
    return value == 0 ? 0 : 63u - (uint32_t)__builtin_clzll(value);
}

#endif
