/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target[...] = data[index along one axis]; a negative index counts from the
 * end, one outside gives p.outside.  Four elements an item where the
 * innermost axis is the data's own and aligned (vector).
 */
#include "common/indexing.cl"

#ifndef BITS
#define BITS uint
#endif
#ifndef INDEX
#define INDEX int
#endif

struct gather {
    ulong items;
    uint rank, vector;
    ulong target_offset, data_offset, index_offset;
    long axis_stride, axis_elements;
    ulong outside; /* the bits of an element */
    struct extents space;
    long target_strides[AXES];
    long data_strides[AXES];
    long index_strides[AXES];
};

KERNEL void gather(__global BITS *target, __global const BITS *data,
                   __global const INDEX *indices, const struct gather p)
{
    index_t item = (index_t)get_global_id(0);
    if (item >= p.items)
        return;
    long to = 0, from = 0, where = 0;
    WALK(to, item, p.space, p.rank, p.target_strides);
    WALK(from, item, p.space, p.rank, p.data_strides);
    WALK(where, item, p.space, p.rank, p.index_strides);
    long index = (long)indices[p.index_offset + where];
    index += (index >> 63) & p.axis_elements;
    bool inside = (ulong)index < (ulong)p.axis_elements;
    from += inside ? index * p.axis_stride : 0;
    to += p.target_offset;
    from += p.data_offset;
    if (p.vector) {
        CAT(BITS, 4) x = (CAT(BITS, 4))((BITS)p.outside);
        if (inside)
            x = *(__global const CAT(BITS, 4) *)(data + from);
        *(__global CAT(BITS, 4) *)(target + to) = x;
    } else {
        BITS x = (BITS)p.outside;
        if (inside)
            x = data[from];
        target[to] = x;
    }
}
