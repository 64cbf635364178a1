/* SPDX-License-Identifier: Apache-2.0 */
/* Copies elements of `data` to `target`. An index vector of COMPONENTS elements
 * of `indices` holds their positions along as many axes of `data`. A negative
 * index counts from the end. For an index out of range, default_bits is stored.
 * If is_vec4 is set, a work-item copies four aligned elements along the
 * innermost axis, which must not be an indexed axis. */
#include "common/params.cl"

struct gather_params {
    uint64_t items;
    uint32_t rank, is_vec4;
    uint64_t target_offset, data_offset, index_offset;
    int64_t component_stride; /* elements between components in `indices` */
    int64_t axis_strides[MAX_AXES];
    int64_t axis_extents[MAX_AXES];
    uint64_t default_bits; /* value stored if an index is out of range */
    struct fast_divmod space;
    int64_t target_strides[MAX_AXES];
    int64_t data_strides[MAX_AXES];
    int64_t index_strides[MAX_AXES];
};
PARAMS_SIZE(gather_params, 504);

#ifdef __OPENCL_C_VERSION__
#include "common/indexing.cl"

#ifndef BITS
#define BITS uint
#define INDEX int
#define COMPONENTS 1
#endif

KERNEL void gather(__global BITS *target, __global const BITS *data,
                   __global const INDEX *indices, const struct gather_params p)
{
    index_t item = (index_t)get_global_id(0);
    if (item >= p.items)
        return;
    long to = 0, from = 0, index_position = 0;
    ADD_OFFSET(to, item, p.space, p.rank, p.target_strides);
    ADD_OFFSET(from, item, p.space, p.rank, p.data_strides);
    ADD_OFFSET(index_position, item, p.space, p.rank, p.index_strides);
    bool is_in_range = true;
    long selected = 0;
    index_position += p.index_offset;
    REPEAT(i, COMPONENTS)
    {
        long index = (long)indices[index_position + i * p.component_stride];
        index += (index >> 63) & p.axis_extents[i];
        is_in_range = is_in_range && (ulong)index < (ulong)p.axis_extents[i];
        selected += index * p.axis_strides[i];
    }
    from += is_in_range ? selected : 0;
    to += p.target_offset;
    from += p.data_offset;
    if (p.is_vec4) {
        CAT(BITS, 4) x = (CAT(BITS, 4))((BITS)p.default_bits);
        if (is_in_range)
            x = *(__global const CAT(BITS, 4) *)(data + from);
        *(__global CAT(BITS, 4) *)(target + to) = x;
    } else {
        BITS x = (BITS)p.default_bits;
        if (is_in_range)
            x = data[from];
        target[to] = x;
    }
}

#endif
