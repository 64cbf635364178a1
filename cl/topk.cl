/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the k largest or smallest elements of each row. Elements are compared
 * by keys of 64 bits: the upper half orders the values, the lower half is the
 * index. A lower key is earlier in the result. Keys differ, so that the result
 * does not depend on the order in which work-items add them.
 *
 * topk_select: a work-group reads a split of a row and keeps the lowest keys
 * sorted in local memory. It collects keys that are lower than the highest of
 * these in a buffer; when the buffer is full, it sorts and merges them. If a
 * row is not split, the work-group stores the result, else a list of keys.
 *
 * topk_merge: the place of a key in the result is the number of lower keys in
 * all lists of its row, each of which a binary search finds. */
#include "common/params.cl"

/* Elements that a work-item reads before it adds keys to the buffer. */
#define ITEM_ELEMENTS 4

struct topk_params {
    uint64_t rows, splits;
    uint64_t count, elements_per_split; /* elements of a row and of a split */
    uint64_t k, list_length;            /* elements of a result and of a list */
    uint64_t value_offset, index_offset, in_offset;
    int64_t value_stride, index_stride, in_stride; /* along the axis */
    uint32_t rank, largest;
    struct fast_divmod space;
    int64_t value_strides[MAX_AXES], index_strides[MAX_AXES];
    int64_t in_strides[MAX_AXES];
};
PARAMS_SIZE(topk_params, 424);

#ifdef __OPENCL_C_VERSION__
#include "common/indexing.cl"

/* Log2 of the number of keys that topk_select keeps, and of its buffer. */
#ifndef KEYS_LOG2
#define KEYS_LOG2 8
#endif
#define KEYS (1u << KEYS_LOG2)
/* Higher than every key of an element. */
#define NO_KEY 0xffffffffffffffffUL

/* 1 if topk_select stores the result. */
#ifndef IS_FINAL
#define IS_FINAL 1
#endif

/* Declare the offsets of a row in the input and in the outputs. */
#define DECLARE_IN_OFFSET(row)                                                 \
    long in_at = (long)p.in_offset;                                            \
    ADD_OFFSET(in_at, row, p.space, p.rank, p.in_strides);
#define DECLARE_OUT_OFFSETS(row)                                               \
    long value_at = (long)p.value_offset, index_at = (long)p.index_offset;     \
    ADD_OFFSET(value_at, row, p.space, p.rank, p.value_strides);               \
    ADD_OFFSET(index_at, row, p.space, p.rank, p.index_strides);

/* Stores the element with this key at a place of the result. */
#define STORE_RESULT(key, place)                                               \
    do {                                                                       \
        long index_ = (long)(uint)(key);                                       \
        values[value_at + (long)(place)*p.value_stride] =                      \
            in[in_at + index_ * p.in_stride];                                  \
        indices[index_at + (long)(place)*p.index_stride] = index_;             \
    } while (0)

#ifdef BUILD_topk_select
/* Equal to topk_key in src/common/topk_key.h. */
static inline ulong key_of(uint bits, uint largest, uint index)
{
    uint magnitude = bits & 0x7fffffffu;
    uint order = bits >> 31 ? ~bits : bits | 0x80000000u;
    order = magnitude == 0 ? 0x80000000u : order;
    order = magnitude > 0x7f800000u ? 0xffffffffu : order;
    return (ulong)(largest ? ~order : order) << 32 | index;
}

/* Compares and exchanges all pairs of keys at this distance. In blocks of
 * `block` keys, the order alternates; `block` 0 means ascending order. */
INLINE void keys_exchange(__local ulong *keys, uint count, uint distance,
                          uint block)
{
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = get_local_id(0); i < count / 2; i += GROUP_SIZE) {
        uint low = 2 * i - (i & (distance - 1)), high = low + distance;
        ulong a = keys[low], b = keys[high];
        bool ascending = (low & block) == 0;
        if ((a > b) == ascending) {
            keys[low] = b;
            keys[high] = a;
        }
    }
}

/* Merges the first `count` keys of the buffer into the sorted keys `best`. The
 * work-items of the work-group have the same count. */
INLINE void buffer_merge(__local ulong *best, __local ulong *buffer, uint count)
{
    uint id = get_local_id(0), sorted = 2;
    for (uint i = count + id; i < KEYS; i += GROUP_SIZE)
        buffer[i] = NO_KEY;
    while (sorted < count)
        sorted *= 2;
    for (uint block = 2; block <= sorted; block *= 2)
        for (uint distance = block / 2; distance > 0; distance /= 2)
            keys_exchange(buffer, sorted, distance, block);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = id; i < KEYS; i += GROUP_SIZE)
        best[i] = min(best[i], buffer[KEYS - 1 - i]);
    for (uint distance = KEYS / 2; distance > 0; distance /= 2)
        keys_exchange(best, KEYS, distance, 0);
    barrier(CLK_LOCAL_MEM_FENCE);
}

#if IS_FINAL
#define OUTPUTS __global float *values, __global long *indices,
#else
#define OUTPUTS __global ulong *lists,
#endif

KERNEL void topk_select(OUTPUTS __global const float *in,
                        const struct topk_params p)
{
    __local ulong best[KEYS], buffer[KEYS];
    __local uint added; /* keys that work-items tried to add to the buffer */
    uint id = get_local_id(0);
    index_t row = (index_t)get_group_id(0) / (index_t)max(p.splits, (ulong)1);
    ulong split = (ulong)get_group_id(0) - (ulong)row * p.splits;
    ulong begin = split * p.elements_per_split;
    ulong end = min(begin + p.elements_per_split, p.count);
    DECLARE_IN_OFFSET(row)
#if IS_FINAL
    DECLARE_OUT_OFFSETS(row)
#endif
    for (uint i = id; i < KEYS; i += GROUP_SIZE)
        best[i] = NO_KEY;
    if (id == 0)
        added = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (ulong first = begin; first < end;
         first += ITEM_ELEMENTS * GROUP_SIZE) {
        ulong keys[ITEM_ELEMENTS];
        uint count;
        REPEAT(e, ITEM_ELEMENTS)
        {
            ulong i = first + e * GROUP_SIZE + id;
            keys[e] = NO_KEY;
            if (i < end)
                keys[e] = key_of(as_uint(in[in_at + (long)i * p.in_stride]),
                                 p.largest, (uint)i);
        }
        do {
            ulong limit = best[p.list_length - 1];
            REPEAT(e, ITEM_ELEMENTS)
            {
                if (keys[e] < limit) {
                    uint place = atomic_inc(&added);
                    if (place < KEYS) {
                        buffer[place] = keys[e];
                        keys[e] = NO_KEY;
                    }
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            count = added;
            barrier(CLK_LOCAL_MEM_FENCE);
            if (count > KEYS) {
                buffer_merge(best, buffer, KEYS);
                if (id == 0)
                    added = 0;
                barrier(CLK_LOCAL_MEM_FENCE);
            }
        } while (count > KEYS);
    }
    uint count = added;
    if (count > 0)
        buffer_merge(best, buffer, count);
    for (uint i = id; i < p.list_length; i += GROUP_SIZE) {
#if IS_FINAL
        STORE_RESULT(best[i], i);
#else
        lists[(ulong)get_group_id(0) * p.list_length + i] = best[i];
#endif
    }
}
#endif

#ifdef BUILD_topk_merge
/* Returns the number of keys in the sorted list that are lower than `key`. */
static inline ulong lower_count(__global const ulong *list, ulong length,
                                ulong key)
{
    ulong low = 0, high = length;
    while (low < high) {
        ulong middle = (low + high) / 2;
        bool is_lower = list[middle] < key;
        low = is_lower ? middle + 1 : low;
        high = is_lower ? high : middle;
    }
    return low;
}

KERNEL void topk_merge(__global float *values, __global long *indices,
                       __global const ulong *lists, __global const float *in,
                       const struct topk_params p)
{
    ulong item = get_global_id(0);
    if (item >= p.rows * p.splits * p.list_length)
        return;
    ulong key = lists[item];
    /* Skips NO_KEY, and keys that no element has, because a trial launch runs
     * the kernel before the lists are written. */
    if ((ulong)(uint)key >= p.count)
        return;
    ulong list = item / p.list_length;
    ulong row_number = list / p.splits;
    ulong place = item - list * p.list_length;
    for (ulong i = row_number * p.splits;
         i < (row_number + 1) * p.splits && place < p.k; ++i)
        if (i != list)
            place += lower_count(lists + i * p.list_length, p.list_length, key);
    if (place >= p.k)
        return;
    index_t row = (index_t)row_number;
    DECLARE_IN_OFFSET(row)
    DECLARE_OUT_OFFSETS(row)
    STORE_RESULT(key, place);
}
#endif

#endif
