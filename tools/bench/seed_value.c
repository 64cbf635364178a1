/* SPDX-License-Identifier: Apache-2.0 */
/* Values of the operands; see bench.h. */
#include <config.h>

#include "bench.h"

float seed_value(uint64_t index)
{
    return seed_floats()[index % SEED_COUNT];
}

int32_t seed_index(uint64_t index, int64_t limit)
{
    return (int32_t)(index * 2654435761u % (uint64_t)limit);
}
