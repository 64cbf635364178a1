/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces elements of `target`, which index vectors of COMPONENTS elements
 * select, or combines them with `updates`. A negative index counts from the
 * end, and an update with an index out of range is skipped.
 *
 * Without a reduction, the update with the largest number wins: scatter_select
 * stores the largest number plus 1 of each slot in `winners`, which
 * scatter_clear has set to 0, and scatter_write writes the updates that won.
 * With a reduction, a work-item of scatter_reduce computes one element. The
 * work-item reads all index vectors that can select the element, so the time
 * grows with the product of the numbers of elements and of index vectors. */
#include "common/params.cl"

struct scatter_clear_params {
    uint64_t items;
};
PARAMS_SIZE(scatter_clear_params, 8);

/* For scatter_write and scatter_select. If is_vec4 is set, a work-item of
 * scatter_write copies four aligned elements, which have the same index. */
struct scatter_params {
    uint64_t items;
    uint32_t rank, is_vec4;
    uint64_t target_offset, update_offset, index_offset;
    int64_t component_stride; /* elements between components in `indices` */
    int64_t axis_strides[MAX_AXES];
    int64_t axis_slot_strides[MAX_AXES];
    int64_t axis_extents[MAX_AXES];
    struct fast_divmod space;
    int64_t target_strides[MAX_AXES];
    int64_t update_strides[MAX_AXES];
    int64_t index_strides[MAX_AXES];
    int64_t slot_strides[MAX_AXES];
    int64_t number_strides[MAX_AXES];
};
PARAMS_SIZE(scatter_params, 688);

struct scatter_reduce_params {
    uint64_t items, numbers;
    uint32_t rank, numbered_rank;
    uint64_t target_offset, update_offset, index_offset;
    int64_t component_stride;
    int64_t reduction; /* 1 add, 2 mul, 3 min, 4 max */
    int64_t axis_slot_strides[MAX_AXES];
    int64_t axis_extents[MAX_AXES];
    struct fast_divmod space;    /* of the elements that updates can address */
    struct fast_divmod numbered; /* of the updates of one element */
    int64_t target_strides[MAX_AXES];
    int64_t update_strides[MAX_AXES];
    int64_t index_strides[MAX_AXES];
    int64_t slot_strides[MAX_AXES];
    int64_t numbered_update_strides[MAX_AXES];
    int64_t numbered_index_strides[MAX_AXES];
};
PARAMS_SIZE(scatter_reduce_params, 832);

#ifdef __OPENCL_C_VERSION__
#include "common/indexing.cl"
#include "common/math.cl"

#ifndef BITS
#define BITS uint
#endif
#ifndef INDEX
#define INDEX int
#define COMPONENTS 1
#endif

/* Reads the index vector at `position`. Adds the product of the vector and
 * `strides` to `sum`, and clears is_in_range if an index is out of range. */
#define ADD_INDEX_VECTOR(sum, is_in_range, position, strides)                  \
    REPEAT(i_, COMPONENTS)                                                     \
    {                                                                          \
        long index_ = (long)indices[(position) + i_ * p.component_stride];     \
        index_ += (index_ >> 63) & p.axis_extents[i_];                         \
        is_in_range =                                                          \
            is_in_range && (ulong)index_ < (ulong)p.axis_extents[i_];          \
        sum += index_ * (strides)[i_];                                         \
    }

#ifdef BUILD_scatter_clear
KERNEL void scatter_clear(__global uint *winners,
                          const struct scatter_clear_params p)
{
    index_t item = (index_t)get_global_id(0);
    if (item < p.items)
        winners[item] = 0;
}
#endif

#ifdef BUILD_scatter_select
KERNEL void scatter_select(__global uint *winners,
                           __global const INDEX *indices,
                           const struct scatter_params p)
{
    index_t item = (index_t)get_global_id(0);
    if (item >= p.items)
        return;
    long slot = 0, number = 0, position = p.index_offset;
    bool is_in_range = true;
    ADD_OFFSET(slot, item, p.space, p.rank, p.slot_strides);
    ADD_OFFSET(number, item, p.space, p.rank, p.number_strides);
    ADD_OFFSET(position, item, p.space, p.rank, p.index_strides);
    ADD_INDEX_VECTOR(slot, is_in_range, position, p.axis_slot_strides);
    if (is_in_range)
        atomic_max(&winners[slot], (uint)number + 1);
}
#endif

#ifdef BUILD_scatter_write
KERNEL void scatter_write(__global BITS *target, __global const BITS *updates,
                          __global const INDEX *indices,
                          __global const uint *winners,
                          const struct scatter_params p)
{
    index_t item = (index_t)get_global_id(0);
    if (item >= p.items)
        return;
    long slot = 0, number = 0, position = p.index_offset;
    long to = p.target_offset, from = p.update_offset;
    bool is_in_range = true;
    ADD_OFFSET(slot, item, p.space, p.rank, p.slot_strides);
    ADD_OFFSET(number, item, p.space, p.rank, p.number_strides);
    ADD_OFFSET(position, item, p.space, p.rank, p.index_strides);
    ADD_OFFSET(to, item, p.space, p.rank, p.target_strides);
    ADD_OFFSET(from, item, p.space, p.rank, p.update_strides);
    ADD_INDEX_VECTOR(slot, is_in_range, position, p.axis_slot_strides);
    if (!is_in_range || winners[slot] != (uint)number + 1)
        return;
    ADD_INDEX_VECTOR(to, is_in_range, position, p.axis_strides);
    if (p.is_vec4)
        *(__global CAT(BITS, 4) *)(target + to) =
            *(__global const CAT(BITS, 4) *)(updates + from);
    else
        target[to] = updates[from];
}
#endif

#ifdef BUILD_scatter_reduce
static inline float combine(float a, float b, long reduction)
{
    if (reduction == 1)
        return a + b;
    if (reduction == 2)
        return a * b;
    return reduction == 3 ? nan_min(a, b) : nan_max(a, b);
}

KERNEL void scatter_reduce(__global float *target,
                           __global const float *updates,
                           __global const INDEX *indices,
                           const struct scatter_reduce_params p)
{
    index_t item = (index_t)get_global_id(0);
    if (item >= p.items)
        return;
    long own_slot = 0, first_index = p.index_offset;
    long to = p.target_offset, first_update = p.update_offset;
    ADD_OFFSET(own_slot, item, p.space, p.rank, p.slot_strides);
    ADD_OFFSET(first_index, item, p.space, p.rank, p.index_strides);
    ADD_OFFSET(to, item, p.space, p.rank, p.target_strides);
    ADD_OFFSET(first_update, item, p.space, p.rank, p.update_strides);
    float x = target[to];
    bool is_updated = false;
    for (index_t n = 0; n < p.numbers; ++n) {
        long slot = 0, position = first_index, from = first_update;
        bool is_in_range = true;
        ADD_OFFSET(position, n, p.numbered, p.numbered_rank,
                   p.numbered_index_strides);
        ADD_INDEX_VECTOR(slot, is_in_range, position, p.axis_slot_strides);
        if (!is_in_range || slot != own_slot)
            continue;
        ADD_OFFSET(from, n, p.numbered, p.numbered_rank,
                   p.numbered_update_strides);
        x = combine(x, updates[from], p.reduction);
        is_updated = true;
    }
    if (is_updated)
        target[to] = x;
}
#endif

#endif
