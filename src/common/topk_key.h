/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes and sort keys of the operator TOPK. Pure functions. */
#ifndef TANDEM_COMMON_TOPK_KEY_H
#define TANDEM_COMMON_TOPK_KEY_H

#include <stdbool.h>
#include <string.h>

#include <tandem/backend.h>

/* Integer attributes. */
enum topk_int { TOPK_AXIS, TOPK_K, TOPK_LARGEST, TOPK_SORTED };

static inline uint32_t topk_axis(const struct tandem_op *op, uint32_t rank)
{
    int64_t axis = op->ints[TOPK_AXIS];
    return (uint32_t)(axis < 0 ? axis + rank : axis);
}

/* Returns a key that is lower, the earlier the element is in the result. The
 * upper half orders the values, the lower half is the index. */
static inline uint64_t topk_key(float value, bool largest, uint32_t index)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
    bits = (bits & 0x7fffffffu) == 0 ? 0 : bits; /* -0 equals +0 */
    uint32_t order = (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
    order = is_nan ? UINT32_MAX : order;
    return (uint64_t)(largest ? ~order : order) << 32 | index;
}

#endif
