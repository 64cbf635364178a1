/* SPDX-License-Identifier: Apache-2.0 */
/* Copies a tensor and adds elements at both ends of its axes: copies of other
 * elements, or value_bits. If VECTOR is 1, a work-item stores four aligned
 * elements along the innermost axis, otherwise one. */
#include "common/params.cl"

struct pad_params {
    uint64_t items;
    uint64_t target_offset, source_offset;
    uint64_t value_bits;
    uint32_t rank, mode;
    /* 1 if the innermost axis is not padded and its vec4 are aligned in the
     * source, too. */
    uint64_t source_is_vec4;
    struct fast_divmod space; /* of the target, in items */
    int64_t target_strides[MAX_AXES], source_strides[MAX_AXES];
    /* Element i of the target is element i - begin of the source if that is in
     * [0, length). */
    int64_t begin[MAX_AXES], length[MAX_AXES];
};
PARAMS_SIZE(pad_params, 432);

#ifdef __OPENCL_C_VERSION__
#include "common/indexing.cl"

#ifndef BITS
#define BITS uint
#define VECTOR 0
#endif

/* Values of the parameter `mode`, as in the operator's attribute. */
#define CONSTANT 0
#define REFLECT 1
#define EDGE 2

/* Returns the index, in a source axis of n elements, of the element at index i.
 * Returns -1 if the element is an added constant. */
static inline offset_t source_index(offset_t i, offset_t n, uint mode)
{
    if (i >= 0 && i < n)
        return i;
    if (mode == CONSTANT)
        return -1;
    if (mode == EDGE || n < 2)
        return i < 0 ? 0 : n - 1;
    offset_t period = mode == REFLECT ? 2 * (n - 1) : n;
    offset_t rest = i % period;
    rest = rest < 0 ? rest + period : rest;
    return rest < n ? rest : period - rest;
}

static inline BITS load(__global const BITS *source, long row, long stride,
                        offset_t i, offset_t n, uint mode, BITS value)
{
    offset_t from = source_index(i, n, mode);
    return from < 0 ? value : source[row + (long)from * stride];
}

#ifdef BUILD_pad
KERNEL void pad(__global BITS *target, __global const BITS *source,
                const struct pad_params p)
{
    index_t left = (index_t)get_global_id(0);
    if (left >= p.items)
        return;
    BITS value = (BITS)p.value_bits;
    long to = (long)p.target_offset, from = (long)p.source_offset, inner = 0;
    bool is_added = false;
    _Pragma("unroll") for (uint axis = 0; axis < MAX_AXES; ++axis)
    {
        if (axis >= p.rank)
            continue;
        long at = (long)left;
        if (axis + 1 < p.rank)
            DIVMOD(left, p.space, axis, at);
        if (axis == 0) {
            inner = at;
            continue;
        }
        to += at * p.target_strides[axis];
        offset_t i = source_index((offset_t)(at - p.begin[axis]),
                                  (offset_t)p.length[axis], p.mode);
        is_added = is_added || i < 0;
        from += (long)i * p.source_strides[axis];
    }
    offset_t n = is_added ? 0 : (offset_t)p.length[0];
    uint mode = is_added ? CONSTANT : p.mode;
    long stride = p.source_strides[0];
#if VECTOR
    CAT(BITS, 4) x = (CAT(BITS, 4))(value);
    offset_t i = (offset_t)(inner * 4 - p.begin[0]);
    if (p.source_is_vec4) {
        if (!is_added)
            x = *(__global const CAT(BITS, 4) *)(source + from + inner * 4);
    } else {
        x.s0 = load(source, from, stride, i, n, mode, value);
        x.s1 = load(source, from, stride, i + 1, n, mode, value);
        x.s2 = load(source, from, stride, i + 2, n, mode, value);
        x.s3 = load(source, from, stride, i + 3, n, mode, value);
    }
    *(__global CAT(BITS, 4) *)(target + to + inner * 4) = x;
#else
    offset_t i = (offset_t)(inner - p.begin[0]);
    target[to + inner * p.target_strides[0]] =
        load(source, from, stride, i, n, mode, value);
#endif
}
#endif

#endif
